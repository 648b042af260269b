"""The weights of an encoder and their tensors in a checkpoint, in both directions."""

import dataclasses
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import SimpleNamespace

import keras
import numpy as np


class NotKept(ValueError):
    """A head of a kind that tfeff does not have."""


@dataclasses.dataclass(frozen=True)
class Weight:
    """A weight of an encoder and its tensor in a checkpoint.

    The tensor `name` of shape `shape` loses its first `unused_rows`, is transposed by
    `axes`, then reshaped to the variable's shape, whose row `i` is then row `rows[i]`.

    Args:
        variable: the Keras variable.
        name: the tensor's name in the checkpoint.
        axes: order of the tensor's axes in the variable; `None` keeps their order.
        shape: the tensor's shape; `None` means the variable's, with `axes` inverted.
        rows: order of the rows in the variable; `None` keeps their order.
        unused_rows: the number of the tensor's first rows that the variable lacks.
    """

    variable: keras.Variable
    name: str
    axes: tuple[int, ...] | None = None
    shape: tuple[int, ...] | None = None
    rows: Sequence[int] | None = None
    unused_rows: int = 0

    @property
    def expected_shape(self) -> tuple[int, ...]:
        """The shape that the tensor must have."""
        rows, *others = self._used_shape()
        return (rows + self.unused_rows, *others)

    def value(self, tensor) -> np.ndarray:
        """The variable's value."""
        array = tensor.read()[self.unused_rows :]
        if self.axes is not None:
            array = np.transpose(array, self.axes)
        array = array.reshape(self.variable.shape)
        return array if self.rows is None else array[list(self.rows)]

    def tensor(self) -> np.ndarray:
        """The tensor of the variable, the inverse of `value`: unused rows are zeros."""
        array = keras.ops.convert_to_numpy(self.variable)
        if self.rows is not None:
            array = array[np.argsort(self.rows)]
        shape = self._used_shape()
        axes = range(len(shape)) if self.axes is None else self.axes
        array = array.reshape([shape[axis] for axis in axes])
        zeros = [(self.unused_rows, 0), *[(0, 0)] * (len(shape) - 1)]
        return np.pad(array.transpose(np.argsort(axes)), zeros)

    def _used_shape(self):
        """The tensor's shape without its unused rows."""
        shape = tuple(self.variable.shape)
        if self.shape is not None:
            return tuple(self.shape)
        return shape if self.axes is None else tuple(_permute(shape, self.axes))


def _permute(shape, axes):
    return [shape[place] for place in np.argsort(axes)]


def dense(layer, name: str) -> Iterator[Weight]:
    """A `Dense` layer from PyTorch's linear layer, which stores `W` transposed."""
    yield Weight(layer.kernel, f"{name}.weight", axes=(1, 0))
    yield Weight(layer.bias, f"{name}.bias")


def part(weights: Mapping, name: str = "") -> SimpleNamespace:
    """The weights of a head below a name as attributes, as a layer has them.

    Args:
        weights: by name, such as `dense/kernel`, of `tfeff.objectives.heads.Head`.
        name: such as `dense`; all if it is empty.
    """
    start = name and f"{name}/"
    return SimpleNamespace(
        **{k.removeprefix(start): w for k, w in weights.items() if k.startswith(start)}
    )


def dense_head(name: str) -> Callable[[Mapping], Iterator[Weight]]:
    """A head that is one `Dense` layer, from PyTorch's linear layer `name`.

    Returns:
        A function from the head's weights by name to those with their tensors.
    """
    return lambda weights: dense(part(weights), name)


def masked_lm_head(
    dense_name: str, norm_name: str, bias_name: str
) -> Callable[[Mapping], Iterator[Weight]]:
    """A masked language model head, from the names of PyTorch's layers and bias.

    Returns:
        As `dense_head`.
    """

    def describe(weights):
        yield from dense(part(weights, "dense"), dense_name)
        yield from norm(part(weights, "norm"), norm_name)
        yield Weight(weights["bias"], bias_name)

    return describe


def attention_by_heads(attention, encoder, kernel: str, bias: str) -> Iterator[Weight]:
    """An attention from Keras', whose tensors have an axis of heads.

    Args:
        attention: the layer.
        encoder: the encoder that it is in.
        kernel, bias: their names, with `{}` for `query`, `key`, `value` and `output`.
    """
    heads = (encoder.num_heads, encoder.hidden_dim // encoder.num_heads)
    for name in ("query", "key", "value"):
        layer = getattr(attention, f"{name}_dense")
        shape = (encoder.hidden_dim, *heads)
        yield Weight(layer.kernel, kernel.format(name), shape=shape)
        yield Weight(layer.bias, bias.format(name), shape=heads)
    shape = (*heads, encoder.hidden_dim)
    yield Weight(attention.output_dense.kernel, kernel.format("output"), shape=shape)
    yield Weight(attention.output_dense.bias, bias.format("output"))


def grouped(layer, name: str) -> Iterator[Weight]:
    """A `GroupedDense` layer from one that stores `(groups, in, out)`."""
    yield Weight(layer.dense.kernel, f"{name}.weight")
    yield Weight(layer.bias, f"{name}.bias")


def norm(layer, name: str) -> Iterator[Weight]:
    """A layer norm from PyTorch's."""
    yield Weight(layer.gamma, f"{name}.weight")
    yield Weight(layer.beta, f"{name}.bias")


def check_names(weights: Iterable[Weight], tensors: Mapping) -> None:
    """Raises if a model around it has the weights, whose names all begin with its own.

    Args:
        weights: some of the weights.
        tensors: as `assign` gets them.
    """
    used = {weight.name for weight in weights}
    _check_unwrapped(sorted(used - set(tensors)), set(tensors) - used)


def _check_unwrapped(missing, unknown):
    """Raises if the names of all missing tensors are there behind a common prefix."""
    if not missing:
        return
    first = missing[0]
    starts = (n.removesuffix(first) for n in unknown if n.endswith(f".{first}"))
    found = set(unknown)
    wrapper = next(
        (s for s in starts if found.issuperset(s + m for m in missing)), None
    )
    if wrapper:
        raise ValueError(
            "The checkpoint must hold its weights by the names of their layers. All "
            f"begin with {wrapper!r}, of a model around it, such as "
            f"{wrapper + first!r}: save the inner model, or rename them"
        )


def assign(
    weights: Iterable[Weight], tensors: Mapping, left_out: Mapping[str, str]
) -> Counter:
    """Assigns the tensors to the weights; every tensor must be used or known.

    Args:
        weights: the weights, with the tensors' names.
        tensors: name to tensor with `shape` and `read()`.
        left_out: the kinds of known tensors that may have no weight, by regular
            expressions of their names.

    Returns:
        The number of tensors of each kind that no weight uses.

    Raises:
        ValueError: if tensors are missing, unknown, not of floating point, beyond
            float32, or of another shape; all of them are listed, and no weight is
            changed.
    """
    weights = list(weights)
    used = {weight.name for weight in weights}
    skipped: Counter[str] = Counter()
    unknown = []
    for name in sorted(set(tensors) - used):
        kinds = [kind for pattern, kind in left_out.items() if re.match(pattern, name)]
        skipped.update(kinds[:1])
        unknown += [] if kinds else [name]
    missing = sorted(used - set(tensors))
    _check_unwrapped(missing, unknown)
    if missing or unknown:
        raise ValueError(
            "The checkpoint must hold the weights that its configuration implies, and "
            f"no others. Missing: {missing}. Unknown: {unknown}"
            f"{_of_ignored_positions(missing)}"
        )
    wrong = [
        f"{w.name} has shape {tuple(tensors[w.name].shape)}, not {w.expected_shape}"
        for w in weights
        if tuple(tensors[w.name].shape) != w.expected_shape
    ]
    wrong += [
        f"{name} has dtype {tensors[name].dtype}, not a floating-point one"
        for name in sorted(used)
        if not keras.backend.is_float_dtype(str(tensors[name].dtype))
    ]
    wrong += [
        f"{name} has values that float32 does not hold"
        for name in sorted(used)
        if tensors[name].dtype == np.float64 and _overflows(tensors[name].read())
    ]
    if wrong:
        raise ValueError(
            "The checkpoint's tensors must have the shapes that its configuration "
            f"implies, and floating-point dtypes. Received: {'; '.join(wrong)}"
        )
    not_finite = []
    for weight in weights:
        value = weight.value(tensors[weight.name]).astype("float32")
        if not np.all(np.isfinite(value)):
            not_finite.append(weight.name)
        weight.variable.assign(value)
    if not_finite:
        warnings.warn(
            f"The checkpoint has numbers that are not finite: {', '.join(not_finite)}",
            stacklevel=1,
        )
    return skipped


def _of_ignored_positions(missing):
    """Advice where the tables of relative positions alone are missing."""
    if not missing or not all("distance_embedding" in name for name in missing):
        return ""
    return (
        ". transformers 5 ignores `position_embedding_type`: a checkpoint that it has "
        'saved has "absolute" positions, which `config.json` must say'
    )


def _overflows(array):
    """Whether numbers of an array are finite, and beyond those of float32."""
    return np.any(np.isfinite(array) & (np.abs(array) > np.finfo(np.float32).max))
