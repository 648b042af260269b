"""The attention between positions, summed over a data set."""

import dataclasses
from collections.abc import Iterable, Iterator

import keras
import numpy as np
from keras import ops

from tfeff.layers.attention import accepts
from tfeff.layers.encoder_block import blocks_of
from tfeff.layers.record_layers import PROBABILITIES, Recording, record_layers
from tfeff.utils.checks import check_finite_batches, check_integer

INPUTS = ("token_ids", "segment_ids", "padding_mask")


@dataclasses.dataclass(frozen=True)
class AttentionMaps:
    """Attention of each layer, summed over examples, padding left out.

    With `A[b, h, i, j]` the attention of position `i` to position `j`, and sums over
    the examples `b` in which both are real tokens:

        totals[i, j] = Σ_b mean_h A[b, h, i, j],   pairs[i, j] = Σ_b 1

    Args:
        totals: float64 array `[L, T, T]`.
        pairs: integer array `[T, T]`.

    Example: see `attention_maps`.
    """

    totals: np.ndarray
    pairs: np.ndarray

    def mean(self) -> np.ndarray:
        """Average over heads and examples, `[L, T, T]`; NaN where there is no pair."""
        return _divided(self.totals, self.pairs)

    def by_distance(self) -> np.ndarray:
        """Average over heads and all pairs with `j - i = x`.

        Returns:
            Float64 array `[L, 2T - 1]` for `x = 1 - T … T - 1`; NaN where there is
            no pair.
        """
        return _divided(_by_distance(self.totals), _by_distance(self.pairs))

    def over_layers(self) -> "AttentionMaps":
        """The average over the layers, as maps of one layer."""
        return AttentionMaps(self.totals.mean(0, keepdims=True), self.pairs)

    def concentration(self, distance: int = 4) -> np.ndarray:
        """The attention near the diagonal, over the attention far from it.

            C = Σ_{|j - i| ≤ w} totals[i, j] / Σ_{|j - i| > w} totals[i, j]

        Args:
            distance: integer `w ≥ 0` in tokens.

        Returns:
            Float64 array `[L]`; infinite where no attention is far.

        Raises:
            ValueError: if `distance` is below 0.
            TypeError: if it is not an integer.

        Reference:
            Jiang et al., "ConvBERT", section 6.5 and Table 8, with `w = 4`.
        """
        near, far = self._near_and_far(distance)
        return _divided(near, far)

    def near_share(self, distance: int = 4) -> np.ndarray:
        """The share of all attention that is near the diagonal, `C / (1 + C)`.

        Args and errors are those of `concentration`.

        Returns:
            Float64 array `[L]`, from 0 to 1.
        """
        near, far = self._near_and_far(distance)
        return _divided(near, near + far)

    def _near_and_far(self, distance):
        distance = check_integer("distance", distance, 0)
        positions = np.arange(len(self.pairs))
        near = np.abs(positions[None] - positions[:, None]) <= distance
        inside = np.where(near, self.totals, 0).sum((1, 2))
        return inside, np.where(near, 0, self.totals).sum((1, 2))


def attention_maps(encoder: keras.Model, batches: Iterable) -> AttentionMaps:
    """The attention of an encoder over examples, without dropout.

    The kernels of a convolution count as attention to the positions under them; of
    mixed attention, only the attention heads are counted.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches of the encoder's inputs, dicts with `token_ids`,
            `segment_ids` and `padding_mask` `[B, T]`, or tuples of them with labels, as
            `tfeff.data` makes. Lengths may differ. Special tokens count like others.

    Returns:
        `AttentionMaps`.

    Raises:
        ValueError: if an attention does not return its scores, a batch lacks an
            input, there is no batch or no real token, or `batches` is an infinite
            `tf.data.Dataset`.
        TypeError: if a batch is not a dict of inputs, or a tuple that starts with one.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=50)
    >>> ids = np.ones((2, 6), "int32")
    >>> batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    >>> maps = attention_maps(encoder, [batch])
    >>> maps.mean().shape, maps.by_distance().shape, maps.near_share(5)
    ((2, 6, 6), (2, 11), array([1., 1.]))
    """
    num_layers = len(blocks_of(encoder))
    totals, pairs = np.zeros((num_layers, 0, 0)), np.zeros((0, 0), "int64")
    for mask, recording in recordings(encoder, batches, PROBABILITIES):
        both = mask[:, :, None] & mask[:, None, :]
        length = max(len(pairs), mask.shape[1])
        totals, pairs = padded(totals, length), padded(pairs, length)
        seen = slice(mask.shape[1])
        pairs[seen, seen] += both.sum(0)
        for layer, scores in enumerate(recording.attention):
            heads = ops.mean(ops.cast(scores, "float32"), axis=1)
            heads = np.where(both, ops.convert_to_numpy(heads), 0)
            totals[layer, seen, seen] += heads.sum(0, dtype="float64")
    return AttentionMaps(totals, pairs)


def recordings(
    encoder, batches: Iterable, attention: str | None
) -> Iterator[tuple[np.ndarray, Recording]]:
    """Runs an encoder on batches, without dropout.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: as for `attention_maps`.
        attention: as for `tfeff.layers.record_layers`.

    Yields:
        `(mask, recording)` of each batch: a bool array `[B, T]`, true at real tokens,
        and a `Recording` of the encoder's call.

    Raises:
        TypeError, ValueError: as `attention_maps`.
    """
    check_finite_batches(batches)
    for block in blocks_of(encoder) if attention else ():
        if not accepts(block.attention, "return_attention_scores"):
            raise ValueError(
                "`encoder` must have attentions that take `return_attention_scores`, "
                "as all of tfeff's do. "
                f"Received: encoder with {type(block.attention).__name__}"
            )
    any_token = False
    for batch in batches:
        inputs = _inputs(batch)
        mask = np.asarray(ops.convert_to_numpy(inputs["padding_mask"])).astype(bool)
        any_token |= bool(mask.any())
        with record_layers(attention, encoder) as recording:
            encoder(inputs, training=False)
        yield mask, recording
    if not any_token:
        raise ValueError("`batches` must hold real tokens. Received: none")


def _inputs(batch) -> dict:
    """The encoder's inputs of a batch, with or without labels."""
    inputs = batch[0] if isinstance(batch, (tuple, list)) and batch else batch
    if not isinstance(inputs, dict):
        raise TypeError(
            "`batches` must hold dicts of inputs, or tuples that start with one. "
            f"Received: {type(inputs).__name__}"
        )
    missing = [name for name in INPUTS if name not in inputs]
    if missing:
        raise ValueError(
            f"`batches` must hold {', '.join(INPUTS)}. "
            f"Received: {sorted(inputs)}, without {', '.join(missing)}"
        )
    return {name: inputs[name] for name in INPUTS}


def padded(array: np.ndarray, length: int) -> np.ndarray:
    """Pads the last two axes with zeros up to the length."""
    more = length - array.shape[-1]
    return np.pad(array, [(0, 0)] * (array.ndim - 2) + [(0, more)] * 2)


def _by_distance(array):
    """Sums of the diagonals of `[..., T, T]`, `[..., 2T - 1]`, lowest first."""
    length = array.shape[-1]
    return np.stack(
        [
            np.trace(array, offset, axis1=-2, axis2=-1)
            for offset in range(1 - length, length)
        ],
        axis=-1,
    )


def _divided(totals, counts):
    """The quotients; NaN where both are 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return totals / counts
