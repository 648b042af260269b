import functools
import inspect
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from tfeff.compat.layers import has_given_weights, present_autocast, sublayers
from tfeff.compat.saving import shared_config
from tfeff.layers.attention import Attention, accepts, declares, stands_for
from tfeff.layers.attention_inputs import AttentionInputs
from tfeff.layers.checks import (
    check_floats,
    check_has_blocks,
    check_hidden,
    check_padding_mask,
    given_mask,
)
from tfeff.layers.dropout import Dropout, draw_seeds, drawn_seeds
from tfeff.layers.head_masks import active_head_mask
from tfeff.layers.layer import Layer
from tfeff.layers.partitioned import Partitioned
from tfeff.layers.record_layers import active_recording
from tfeff.ops.kernels.backends import after
from tfeff.utils.checks import check_integer, check_positive, check_rate
from tfeff.utils.types import Config, Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class EncoderBlock(Layer):
    """One layer of an encoder: any attention, any feed-forward, post-norm.

        Y  = LayerNorm(X + dropout(attention(X)))
        X' = LayerNorm(Y + dropout(feedforward(Y)))

    Args:
        attention: attention layer, called
            `attention(hidden, padding_mask=..., training=...)`, `[B, T, D]` to
            `[B, T, D]` after its output projection.
        feedforward: layer from `[B, T, D]` to `[B, T, D]`.
        dropout: float in [0, 1), dropout rate of both branches. That of the attention
            scores is the attention's own.
        layer_norm_epsilon: float added to the variance.
        memory_efficient: what the backward pass recomputes instead of saving it:
            nothing (`False`), scores and weights of the attention (`"attention"`), or
            everything but the block's input (`"block"`, or `True`), in about a third
            more time. Values and gradients are the same, dropout included where each
            layer of it is called once. A block that is recomputed draws random numbers
            by `tfeff.layers.Dropout` alone, updates no moving means, as batch
            normalization does, and adds no losses, such as those of activity
            regularizers. Weights that `stateless_call` is given are recomputed with on
            JAX alone.
        layer_index: integer, the index that the attention gets in every call, instead
            of the block's index in its stack: so all layers of a stack may have the
            same partition. `None` for the block's.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` means Keras' mask of `hidden`; without one, all tokens are real.
        segment_ids: integer tensor `[B, T]`, passed to an attention that accepts it.
        layer_index: integer, the block's index in its stack, passed to an attention
            that accepts it, unless the block has one of its own.
        training: whether dropout is active.

    Returns:
        Float tensor `[B, T, D]`.

    Raises:
        TypeError: if `attention` or `feedforward` is not a Keras layer.
        ValueError: if `attention` takes no `padding_mask`, or a part gives vectors of
            another size; if `memory_efficient` is another value, `"attention"` for an
            attention without scores, or `"block"` for layers that draw random numbers
            otherwise, update moving means or add losses, or within `stateless_call` on
            another backend than JAX; and as the attention layer.

    Example:

    >>> from tfeff.layers import FeedForward, OneHeadAttention
    >>> block = EncoderBlock(OneHeadAttention(num_parts=4), FeedForward(32))
    >>> tuple(block(keras.ops.ones((2, 5, 8))).shape)
    (2, 5, 8)

    Reference:
        Devlin et al., "BERT", section 3.
    """

    def __init__(
        self,
        attention: keras.layers.Layer,
        feedforward: keras.layers.Layer,
        dropout: float = 0.0,
        layer_norm_epsilon: float = 1e-12,
        memory_efficient: bool | str = False,
        layer_index: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        for name, layer in (("attention", attention), ("feedforward", feedforward)):
            if not isinstance(layer, keras.layers.Layer):
                raise TypeError(
                    f"`{name}` must be a Keras layer. Received: {name}={layer!r:.80}"
                )
        parameters = inspect.signature(attention.call).parameters
        has_others = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        takes_mask = has_others or accepts(attention, "padding_mask")
        # A subclass may call it otherwise.
        if type(self).call is EncoderBlock.call and not takes_mask:
            raise ValueError(
                "`attention` must take a `padding_mask`, as the attentions of "
                "`tfeff.layers` do: a layer of your own can wrap another one. "
                f"Received: attention={attention!r}"
            )
        self.attention = attention
        self.feedforward = feedforward
        optional = "segment_ids", "layer_index", "recompute"
        self._accepted = frozenset(x for x in optional if accepts(attention, x))
        # Keras' layers cannot get it in `**kwargs`, beside tensors.
        if isinstance(attention, Partitioned) and "layer_index" not in self._accepted:
            raise ValueError(
                "`attention` must have `layer_index` among the arguments of its "
                "`call`, by name, as its partition depends on it. Received: "
                f"attention={attention!r}"
            )
        self.dropout = check_rate("dropout", dropout)
        self.layer_norm_epsilon = check_positive(
            "layer_norm_epsilon", layer_norm_epsilon
        )
        self.memory_efficient = check_memory_efficient(memory_efficient)
        if self.memory_efficient == "attention" and "recompute" not in self._accepted:
            raise ValueError(
                f"`memory_efficient` must be False or 'block' for a "
                f"{type(attention).__name__}, whose `call` has no `recompute`. "
                f"Received: memory_efficient={memory_efficient!r}"
            )
        if layer_index is not None:
            layer_index = check_integer("layer_index", layer_index, minimum=0)
        self.layer_index = layer_index

    def build(self, hidden_shape: Shape) -> None:
        self.input_dim = check_hidden("hidden", hidden_shape)
        if not self.attention.built:
            self.attention.build(hidden_shape)
        if not self.feedforward.built:
            self.feedforward.build(hidden_shape)
        self.attention_norm = self._norm(hidden_shape, "attention_norm")
        self.feedforward_norm = self._norm(hidden_shape, "feedforward_norm")
        self.attention_dropout = self._dropout("attention_dropout")
        self.feedforward_dropout = self._dropout("feedforward_dropout")

    def _norm(self, hidden_shape, name):
        norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )
        norm.build(hidden_shape)
        return norm

    def _dropout(self, name):
        return Dropout(self.dropout, dtype=self.dtype_policy, name=name)

    def call(
        self,
        hidden: Tensor,
        padding_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        layer_index: int | None = None,
        training: bool | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        self._check_hidden(hidden)
        # The attention may not look for Keras' mask.
        padding_mask = given_mask(padding_mask, hidden, mask)
        recording = active_recording(self)
        attend = self.attention
        if recording is not None:
            attend = functools.partial(recording.attend, self.attention)
        arguments = {
            "segment_ids": segment_ids,
            "layer_index": self.attention_index(layer_index),
            "recompute": self.memory_efficient == "attention",
        }
        tensors = {"hidden": hidden}
        head_mask = active_head_mask(self, layer_index)
        if head_mask is not None:  # The attention accepts one: that was checked.
            tensors["head_mask"] = head_mask
        arguments = {k: v for k, v in arguments.items() if k in self._accepted}

        def run(hidden, **tensors):
            output = attend(
                hidden,
                padding_mask=padding_mask,
                training=training,
                **arguments,
                **tensors,
            )
            return self._add(hidden, output, training)

        if recording is not None:
            recording.hidden_states.append(run(**tensors))
            return recording.hidden_states[-1]
        return self._run(run, tensors, training)

    def _run(self, function, tensors, training):
        """`function(**tensors)`, which `memory_efficient="block"` recomputes.

        Then only these tensors and weights get gradients.
        """
        if self.memory_efficient != "block" or not training:
            return function(**tensors)
        # JAX recomputes what it has traced; others call the layers again, afterwards.
        if keras.backend.backend() != "jax" and has_given_weights(self):
            raise ValueError(
                "`memory_efficient` must be False or 'attention' within "
                "`stateless_call` on another backend than JAX: a block that is "
                "recomputed would read its own weights instead of the given ones. "
                f"Received: memory_efficient='block', in {self.path}"
            )
        seeds, autocast = draw_seeds(self), present_autocast()
        losses = len(self.losses)

        def run_with_seeds(*values):
            with drawn_seeds(seeds), autocast, after(values):
                return function(**dict(zip(tensors, values)))

        output = keras.remat(run_with_seeds)(*tensors.values())
        if len(self.losses) > losses:
            raise ValueError(
                "`memory_efficient` must be False or 'attention' where layers of the "
                "block add losses, such as activity regularizers: a block that is "
                "recomputed gives them no gradients. Received: memory_efficient="
                f"'block', and {len(self.losses) - losses} losses added in "
                f"{self.path}"
            )
        return output

    def compute_output_spec(
        self,
        hidden: Tensor,
        padding_mask: Tensor | None = None,
        segment_ids: Tensor | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Tensor:
        # Keras would trace the call, which takes most of the time to build an encoder.
        # Only an attention that builds its layers in its call needs that, and one that
        # refuses the call.
        lacks_segments = declares(self.attention, "relative_segments")
        lacks_segments = lacks_segments and segment_ids is None
        if not lacks_segments and all(layer.built for layer in sublayers(self)):
            self._check_hidden(hidden)
            if padding_mask is not None:
                check_padding_mask(padding_mask, hidden)
            return keras.KerasTensor(hidden.shape, dtype=self.compute_dtype)
        return super().compute_output_spec(
            hidden, padding_mask, segment_ids, *args, **kwargs
        )

    def _check_hidden(self, hidden):
        check_hidden("hidden", hidden.shape, self.input_dim)
        check_floats("hidden", hidden)

    def attend(self, inputs: AttentionInputs) -> Tensor:
        """The block applied to any queries over a sequence.

        Args:
            inputs: queries `[B, M, D]`, the sequence and masks
                (`tfeff.layers.attention_inputs`).

        Returns:
            Float tensor `[B, M, D]`.

        Raises:
            ValueError: if the attention does not declare the ability that this needs,
                or computes in another dtype than the block.
        """
        if not isinstance(self.attention, Attention):
            raise ValueError(
                f"{type(self.attention).__name__} {self.attention.name!r} cannot "
                "compute single queries: it is not an attention of `tfeff.layers`."
            )
        if self.attention.compute_dtype != self.compute_dtype:
            raise ValueError(
                f"{type(self.attention).__name__} {self.attention.name!r} cannot "
                f"compute single queries in {self.attention.compute_dtype} within a "
                f"block in {self.compute_dtype}: their dtypes must be the same."
            )
        if inputs.head_mask is None:
            head_mask = active_head_mask(self, inputs.layer_index)
            inputs = inputs._replace(head_mask=head_mask)
        inputs = inputs._replace(
            layer_index=self.attention_index(inputs.layer_index),
            recompute=self.memory_efficient == "attention",
        )

        def run(**tensors):
            output, _ = self.attention.attend(inputs._replace(**tensors))
            return self._add(tensors["query"], output, inputs.training)

        tensors = {
            name: value
            for name in ("query", "hidden", "head_mask")
            if (value := getattr(inputs, name)) is not None
        }
        return self._run(run, tensors, inputs.training)

    def attention_index(self, layer_index: int | None) -> int | None:
        """The index that the attention gets in a call of the block with this one."""
        return layer_index if self.layer_index is None else self.layer_index

    def _add(self, hidden, output, training):
        """The residuals, norms and feed-forward network after the attention."""

        def own(x):
            # A map of policies may give a part of the block another dtype.
            return ops.cast(x, self.compute_dtype)

        _check_width("attention", output, hidden)
        output = self.attention_dropout(output, training=training)
        hidden = own(self.attention_norm(own(hidden) + own(output)))
        change = self.feedforward(hidden, training=training)
        _check_width("feedforward", change, hidden)
        change = self.feedforward_dropout(change, training=training)
        return own(self.feedforward_norm(hidden + own(change)))

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            attention=shared_config(self.attention),
            feedforward=shared_config(self.feedforward),
            dropout=self.dropout,
            layer_norm_epsilon=self.layer_norm_epsilon,
            memory_efficient=self.memory_efficient,
            layer_index=self.layer_index,
        )
        return config

    @classmethod
    def from_config(cls, config: Config) -> "EncoderBlock":
        config = dict(config)
        for name in ("attention", "feedforward"):
            config[name] = keras.layers.deserialize(config[name])
        return cls(**config)


def _check_width(name, output, hidden):
    """Raises unless a part of a block keeps the hidden size: it would be broadcast."""
    if output.shape[-1] not in (None, hidden.shape[-1]):  # It may be unknown.
        raise ValueError(
            f"`{name}` must give vectors of the hidden size {hidden.shape[-1]}. "
            f"Received: {name} with an output of shape {tuple(output.shape)}"
        )


def check_attend(name: str, blocks: Sequence[EncoderBlock]) -> None:
    """Raises where `attend` does not compute what `call` does, of a block's layers.

    Attentions that declare no ability to attend tell it themselves.
    """
    for block in blocks:
        layers = [block]
        if any(declares(block.attention, x) for x in ("any_mask", "can_pool")):
            layers.append(block.attention)
        for layer in layers:
            if not stands_for(layer, "attend", ("call",)):
                raise ValueError(
                    f"`{name}` must have layers whose `attend` computes what their "
                    "`call` does, for single queries. Received: a "
                    f"{type(layer).__name__}, which overrides `call` alone"
                )


def check_memory_efficient(memory_efficient) -> bool | str:
    """False, `"attention"` or `"block"`; `True` is `"block"`."""
    if memory_efficient is True:
        return "block"
    if memory_efficient is False:
        return False
    if memory_efficient not in ("attention", "block"):
        raise ValueError(
            "`memory_efficient` must be False, 'attention' or 'block'. "
            f"Received: memory_efficient={memory_efficient!r:.80}"
        )
    return memory_efficient


def blocks_of(encoder) -> list[EncoderBlock]:
    """The blocks of an encoder, or raises if it has none."""
    check_has_blocks(encoder)
    return check_blocks(encoder.blocks)


def check_blocks(blocks) -> list[EncoderBlock]:
    """Returns `blocks` as a list if they are an encoder's blocks, else raises."""
    if not isinstance(blocks, Sequence) or not blocks:
        raise ValueError(
            "`blocks` must be a list of at least one block. "
            f"Received: blocks={blocks!r}"
        )
    for block in blocks:
        if not isinstance(block, EncoderBlock):
            raise TypeError(
                "`blocks` must be `tfeff.layers.EncoderBlock`s. "
                f"Received: {block!r} among them"
            )
    return list(blocks)
