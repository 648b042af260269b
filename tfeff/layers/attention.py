"""The base of all attention layers: projections, abilities, configuration."""

import inspect
from collections.abc import Sequence

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.layers.attention_inputs import AttentionInputs
from tfeff.layers.checks import (
    check_disabled_heads,
    check_head_mask,
    check_initializer,
    check_last_axis,
)
from tfeff.layers.dense import Dense
from tfeff.layers.dropout import Dropout
from tfeff.layers.initializer import own_initializer
from tfeff.layers.layer import Layer
from tfeff.layers.separable_conv import SeparableConv1D
from tfeff.utils.checks import check_rate


class Attention(Layer):
    """Base class of the attention layers.

    It makes projections and declares the abilities of a layer. `ScoredAttention` is the
    base of the attentions that score pairs; a layer that does not, such as a
    convolution, has its own `call`.

    Args:
        dropout: float in [0, 1), dropout rate of the normalised scores.
        kernel_initializer: initializer of the projection kernels.
        bias_initializer: initializer of the projection biases.
        disabled_heads: indices of the heads, or parts, that are switched off: their
            outputs are 0, in training and in inference.
        **kwargs: arguments of `keras.layers.Layer`.
    """

    # Whether the layer can return scores before a softmax.
    has_softmax_scores = False
    # Whether the scores of all heads can be compared with another attention's.
    has_comparable_scores = True
    # Whether more padding changes the outputs of real tokens.
    length_dependent = False
    # Whether the vectors at padding change them, as in published ConvBERTs.
    reads_padding = False
    # Whether the layer supports single queries, and masks of pairs by rank.
    any_mask = False
    # Whether a few queries are computed alone; if not, all positions are.
    computes_few_queries = False
    # Whether the layer supports queries without a position.
    can_pool = False

    def __init__(
        self,
        dropout: float = 0.0,
        kernel_initializer="glorot_uniform",
        bias_initializer="zeros",
        disabled_heads: Sequence[int] = (),
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.dropout = check_rate("dropout", dropout)
        self.disabled_heads = check_disabled_heads(disabled_heads)
        self.kernel_initializer = check_initializer(
            "kernel_initializer", kernel_initializer
        )
        self.bias_initializer = check_initializer("bias_initializer", bias_initializer)

    @property
    def output_heads(self) -> int:
        """The number of heads, or parts, whose outputs the output projection takes."""
        return self.num_heads

    def build_projections(self, hidden_dim: int, names) -> None:
        """Makes a square projection of each name, the output's, and the dropout."""
        check_disabled_heads(self.disabled_heads, self.output_heads)
        for name in (*names, "output"):
            self.add_dense(name, hidden_dim, hidden_dim)
        self.dropout_layer = self.make_dropout()

    def add_dense(self, name: str, input_dim: int, units: int, use_bias=True) -> None:
        """Makes `self.<name>_dense`, from `input_dim` to `units`."""
        dense = Dense(
            units,
            use_bias=use_bias,
            kernel_initializer=own_initializer(self.kernel_initializer),
            bias_initializer=own_initializer(self.bias_initializer),
            dtype=self.dtype_policy,
            name=name,
        )
        dense.build((None, None, input_dim))
        setattr(self, f"{name}_dense", dense)

    def make_dropout(self) -> Dropout:
        """The dropout of normalised scores."""
        return Dropout(self.dropout, dtype=self.dtype_policy, name="dropout")

    def make_separable(
        self, name: str, input_dim: int, units: int, kernel_size: int
    ) -> keras.layers.Layer:
        """A depthwise and a pointwise convolution, with one bias after both."""
        convolution = SeparableConv1D(
            units,
            kernel_size,
            padding="same",
            data_format="channels_last",
            depthwise_initializer=own_initializer(self.kernel_initializer),
            pointwise_initializer=own_initializer(self.kernel_initializer),
            bias_initializer=own_initializer(self.bias_initializer),
            dtype=self.dtype_policy,
            name=name,
        )
        convolution.build((None, None, input_dim))
        return convolution

    def attend(self, inputs: AttentionInputs, return_scores=False):
        """The output for any queries over any sequence, if the layer supports them.

        Args:
            inputs: queries, sequence and masks.
            return_scores: whether to return the scores, which costs more; `"scores"`
                for those before the softmax.

        Returns:
            `(output, scores)`: `[B, M, D]`, and the normalised scores
            `[B, heads, M, S]` without dropout, or `None`; those before the softmax are
            0 where the key is masked.

        Raises:
            ValueError: if the layer does not declare the ability that this needs.
        """
        self.check_can(inputs)
        raise NotImplementedError

    def check_can(self, inputs: AttentionInputs) -> None:
        """Raises if the layer does not declare the ability that the inputs need."""
        if not inputs.positional and not self.can_pool:
            raise ValueError(
                f"{type(self).__name__} {self.name!r} cannot compute queries without a "
                "position, as in layerwise pooling: it has no scores for them. Softmax "
                "and one-head attentions can; a class of one's own declares `can_pool`."
            )
        if inputs.positional and not self.any_mask:
            raise ValueError(
                f"{type(self).__name__} {self.name!r} cannot compute single queries or "
                "masks of pairs, as in two streams: it computes all positions of a "
                "sequence under a padding mask. Softmax, partitioned, one-head, "
                "relative and sparse attentions can."
            )

    def mask_heads(self, context, head_mask=None):
        """The outputs of the heads, 0 for those that are switched off.

        Args:
            context: float tensor `[B, N, T, H]`, or `[B, T, D]` with the features of
                one head after those of another.
            head_mask: float tensor `[N]`, a factor for each head, or `None`.

        Returns:
            Float tensor of the shape of `context`.

        Raises:
            ValueError: if `head_mask` has another shape.
        """
        mask = self.head_factors(context.dtype, head_mask)
        if mask is None:
            return context
        heads = self.output_heads
        if len(context.shape) == 4 and context.shape[1] == heads:
            return context * mask[:, None, None]
        return context * ops.repeat(mask, context.shape[-1] // heads)

    def head_factors(self, dtype, head_mask=None):
        """The factor of each head's output, a tensor `[N]`; `None` if all are 1."""
        if head_mask is None and not self.disabled_heads:
            return None
        heads = self.output_heads
        mask = [float(head not in self.disabled_heads) for head in range(heads)]
        mask = ops.convert_to_tensor(mask, dtype)
        if head_mask is None:
            return mask
        check_head_mask("head_mask", head_mask, heads)
        return mask * ops.cast(head_mask, dtype)

    def project_output(self, context):
        """The output projection, from `[B, N, T, H]` or `[B, T, D]`."""
        if len(context.shape) == 4:
            return project_from_heads(self.output_dense, context)
        return self.output_dense(context)

    def get_config(self):
        config = super().get_config()
        config.update(
            dropout=self.dropout,
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            bias_initializer=keras.initializers.serialize(self.bias_initializer),
            disabled_heads=list(self.disabled_heads),
        )
        return config


def declares(layer: keras.layers.Layer, ability: str, undeclared=False) -> bool:
    """Whether an attention, of tfeff or not, has an ability, by what it declares."""
    return bool(getattr(layer, ability, undeclared))


def accepts(layer: keras.layers.Layer, argument: str) -> bool:
    """Whether a layer's `call` has an argument of this name."""
    return argument in inspect.signature(layer.call).parameters


def stands_for(layer: keras.layers.Layer, kernel: str, methods: Sequence[str]) -> bool:
    """Whether a method computes what other methods of the layer say.

    It does not where a class overrides one of them that is more derived than the class
    that has the kernel.
    """

    def depth(name):
        kinds = enumerate(type(layer).__mro__)
        return next(index for index, kind in kinds if name in vars(kind))

    return all(depth(kernel) <= depth(method) for method in methods)


class Ability:
    """An ability that a class of attentions has by its own methods.

    A subclass that overrides one of them does not have it, unless it declares it anew:
    as True, or by an `Ability` of its own.

    Args:
        *methods: the names of the methods.
    """

    def __init__(self, *methods: str):
        self._methods = methods

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, layer, owner=None):
        return self if layer is None else stands_for(layer, self._name, self._methods)


def project_to_heads(dense: keras.layers.Dense, x, num_heads: int, heads_first=True):
    """`dense(x)` in heads, `[B, T, D]` to `[B, N, T, H]`, or to `[B, T, N, H]`.

    This is one product with the kernel split into heads: splitting the result instead
    costs a copy on some devices.
    """
    if dense.quantization_mode is not None:
        heads = functional.split_heads(dense(x), num_heads)
        return ops.swapaxes(heads, 1, 2) if heads_first else heads
    # Keras' einsum on TensorFlow would silently reshape the batch.
    check_last_axis("hidden", x.shape, dense.kernel.shape[0])
    kernel, bias = dense.kernel, dense.bias
    size = kernel.shape[1] // num_heads
    kernel = ops.reshape(kernel, (kernel.shape[0], num_heads, size))
    equation = "btd,dnh->bnth" if heads_first else "btd,dnh->btnh"
    heads = ops.einsum(equation, x, kernel)
    if bias is None:
        return heads
    shape = (num_heads, 1, size) if heads_first else (num_heads, size)
    return heads + ops.reshape(bias, shape)


def project_from_heads(dense: keras.layers.Dense, x, kernel=None):
    """`dense` of merged heads, `[B, N, T, H]` to `[B, T, D]`, in one product.

    `kernel` `[N, H, D]` replaces that of `dense`.
    """
    if kernel is None:
        if dense.quantization_mode is not None:
            return dense(functional.merge_heads(ops.swapaxes(x, 1, 2)))
        kernel = ops.reshape(dense.kernel, (x.shape[1], x.shape[3], dense.units))
    return ops.einsum("bnth,nhd->btd", x, kernel) + ops.convert_to_tensor(dense.bias)
