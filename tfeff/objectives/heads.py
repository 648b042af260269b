"""The heads of models: their weights by name, as presets keep them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from tfeff.encoders.layer_names import weight_names


@dataclasses.dataclass(frozen=True)
class Head:
    """A part of a model beside its encoder, such as a pooler.

    Args:
        weights: its variables by their names in the part, such as `"kernel"`.
        settings: the arguments with which its weights compute what they were trained
            for: strings and numbers by name, such as `{"activation": "tanh"}`.

    Example:

    >>> dense = keras.layers.Dense(3)
    >>> dense.build((None, 8))
    >>> sorted(Head.of(dense, activation="tanh").arrays())
    ['activation', 'bias', 'kernel']
    """

    weights: Mapping[str, keras.Variable]
    settings: Mapping[str, str | float] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, layer: keras.layers.Layer, **settings: str | float) -> "Head":
        """A layer as a head.

        Args:
            layer: a layer that is built.
            **settings: `settings`.
        """
        return cls(weight_names(layer), settings)

    def arrays(self) -> dict[str, np.ndarray]:
        """The values of weights and settings by name, as a preset keeps them."""
        arrays = {name: weight_array(weight) for name, weight in self.weights.items()}
        return arrays | {name: np.array(x) for name, x in self.settings.items()}

    def fits(self, arrays: Mapping[str, np.ndarray]) -> bool:
        """Whether `arrays` are of a head of the same sizes and settings."""
        return not self.differences(arrays)

    def assign(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Assigns the weights of another head of the same sizes and settings.

        Raises:
            ValueError: if sizes or settings differ; no weight is changed.
        """
        if differences := self.differences(arrays):
            raise ValueError(
                "The head must have the sizes and settings of the model's. "
                f"Received: {'; '.join(differences)}"
            )
        for name, weight in self.weights.items():
            weight.assign(arrays[name])

    def differences(self, arrays: Mapping[str, np.ndarray]) -> list[str]:
        """The sizes and settings in which `arrays` differ from this head, as text."""
        expected = {name: tuple(w.shape) for name, w in self.weights.items()}
        found = {name: arrays[name].shape for name in arrays if name in expected}
        pairs: list[tuple[str, Any, Any]]
        pairs = [(name, found.get(name), expected[name]) for name in expected]
        for name in sorted(found):
            dtype = arrays[name].dtype.name
            # Weights are floats, or integers of a layer that is quantized.
            if ("float" in dtype) is not ("float" in self.weights[name].dtype):
                pairs.append((name, dtype, self.weights[name].dtype))
        for name in sorted(set(arrays) - set(expected)):
            pairs.append((name, arrays[name].tolist(), self.settings.get(name)))
        return [f"{n} {one}, not {other}" for n, one, other in pairs if one != other]


def trained_model(model: Any) -> Any:
    """The model that a training is for: of a distillation, its student."""
    return getattr(model, "student", model)


def heads_of(model: Any) -> dict[str, Head]:
    """The heads of a model by name; none of a model that is no objective."""
    return getattr(model, "heads", dict)()


def weights_beside(
    encoder: keras.layers.Layer, model: keras.Model
) -> list[keras.Variable]:
    """The weights of a model that are not its encoder's."""
    inside = {id(weight) for weight in encoder.weights}
    return [weight for weight in model.weights if id(weight) not in inside]


def weight_array(weight: keras.Variable) -> np.ndarray:
    """The values of a weight for a file: those of bfloat16 as float32."""
    array = keras.ops.convert_to_numpy(weight)
    # NumPy, and with it safetensors, has no bfloat16, whose values float32 has.
    return array.astype("float32") if array.dtype.name == "bfloat16" else array
