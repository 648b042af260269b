"""Hidden states and attention maps of an encoder call."""

import contextlib
import contextvars
from collections.abc import Iterator, Sequence

import keras

from tfeff.layers.attention import accepts, declares
from tfeff.layers.checks import check_has_blocks
from tfeff.utils.checks import check_choice
from tfeff.utils.types import Tensor

SCORES = "scores"
PROBABILITIES = "probabilities"

_ACTIVE: contextvars.ContextVar["Recording | None"] = contextvars.ContextVar(
    "recording", default=None
)


class Recording:
    """Hidden states and attention maps of one encoder call, in order.

    Attributes:
        hidden_states: the input of the first block, then the output of each:
            `L + 1` tensors `[B, T, D]`.
        attention: a map `[B, heads, T, T]` of each of the `L` blocks; empty if none
            was requested.
    """

    def __init__(self, attention: str | None, blocks: Sequence | None = None):
        self.hidden_states: list[Tensor] = []
        self.attention: list[Tensor] = []
        self._kind = attention
        self._blocks = blocks
        self._has_begun = False

    def begin(self) -> None:
        """Notes the call of an encoder; raises where there may be a second one."""
        if self._blocks is not None:
            return
        if self._has_begun:
            raise ValueError(
                "`encoder` must be given where several encoders are called, or one is "
                "called twice, while layers are recorded. Received: encoder=None and a "
                "second call of an encoder"
            )
        self._has_begun = True

    def records(self, block) -> bool:
        """Whether calls of the block are recorded."""
        return self._blocks is None or any(own is block for own in self._blocks)

    def attend(self, attention, hidden, **arguments):
        """`attention(hidden, ...)`, with its map recorded."""
        if not accepts(attention, "return_attention_scores") and self._kind:
            raise ValueError(
                "`attention` must be None for an attention that returns no scores. "
                f"Received: attention={self._kind!r} for {type(attention).__name__}"
            )
        if not self.hidden_states:
            self.hidden_states.append(hidden)
        elif self._blocks and len(self.hidden_states) > len(self._blocks):
            raise ValueError(
                "`encoder` must be called once while its layers are recorded. "
                "Received: another call of its first layer"
            )
        if self._kind is None:
            return attention(hidden, **arguments)
        before_softmax = self._kind == SCORES
        if before_softmax and not declares(attention, "has_softmax_scores"):
            raise ValueError(
                "`attention` must be 'probabilities' or None for a "
                f"{type(attention).__name__}, which has no scores before a softmax. "
                "Received: attention='scores'"
            )
        context, scores = attention(
            hidden,
            return_attention_scores=SCORES if before_softmax else True,
            **arguments,
        )
        self.attention.append(scores)
        return context


@contextlib.contextmanager
def record_layers(
    attention: str | None = PROBABILITIES, encoder: keras.Model | None = None
) -> Iterator[Recording]:
    """Records hidden states and attention maps of one encoder call.

    The encoder may be called alone or in a model, but not by the model's `fit`,
    `evaluate` or `predict`, which run what is compiled once, and in this thread:
    replicas of `tf.distribute.Strategy.run` are called in others. `memory_efficient`
    has no effect meanwhile.

    Args:
        attention: `"probabilities"`, the normalised scores without dropout;
            `"scores"`, those before the softmax, scaled, 0 where the key is hidden;
            or `None` for no maps.
        encoder: the `tfeff.encoders.Encoder` whose call is recorded, in a model with
            several, such as a generator and a discriminator; `None` if it has one.
            An encoder that a model calls several times is to be called alone.

    Yields:
        A `Recording`, filled when the encoder has run.

    Raises:
        TypeError: if `encoder` has no blocks.
        ValueError: if `attention` is something else. The encoder's call raises where
            an attention has no such map, where `encoder` is called again, and where
            encoders are called twice and none is given.

    Example:

    >>> import keras, tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> inputs = {name: ones for name in ("token_ids", "segment_ids", "padding_mask")}
    >>> with tfeff.layers.record_layers() as recording:
    ...     outputs = encoder(inputs)
    >>> tuple(recording.attention[1].shape)
    (2, 2, 7, 7)
    """
    if attention is not None:
        check_choice("attention", attention, (SCORES, PROBABILITIES))
    blocks = None
    if encoder is not None:
        check_has_blocks(encoder)
        blocks = tuple(encoder.blocks)
    recording = Recording(attention, blocks)
    token = _ACTIVE.set(recording)
    try:
        yield recording
    finally:
        _ACTIVE.reset(token)


def begin_recording() -> None:
    """Tells the current recording, if there is one, that an encoder is called."""
    recording = _ACTIVE.get()
    if recording is not None:
        recording.begin()


def active_recording(block) -> Recording | None:
    """The current recording, if there is one that records calls of the block."""
    recording = _ACTIVE.get()
    return recording if recording is not None and recording.records(block) else None
