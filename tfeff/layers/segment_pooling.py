import keras
from keras import ops

from tfeff.layers.checks import (
    as_floats,
    check_hidden,
    check_token_ids,
    visible_keys,
)
from tfeff.layers.layer import Layer
from tfeff.ops.masking import all_true, at_least_float32
from tfeff.ops.pooling import visible_mean
from tfeff.utils.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class SegmentPooling(Layer):
    """One vector for each pair of texts, which compares the means of both.

        u = MeanPooling(x where segment 0),  v = MeanPooling(x where segment 1)
        y = [u, v, |u - v|, u ⊙ v]

    The mean of a segment without a real token is zeros.

    Args:
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        segment_ids: integer tensor `[B, T]`, 0 in the first text, and 1 in the second.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` means Keras' mask of `hidden`; without one, all tokens are real.

    Returns:
        Float tensor `[B, 4 D]`.

    Raises:
        ValueError: if `padding_mask` or `segment_ids` is of another shape.
        TypeError: if `padding_mask` or `segment_ids` is of floats.

    Example:

    >>> import numpy as np
    >>> hidden = np.array([[[1.0], [3.0], [4.0], [100.0]]], "float32")
    >>> segments = np.array([[0, 0, 1, 0]])
    >>> mask = np.array([[1, 1, 1, 0]])
    >>> np.asarray(SegmentPooling()(hidden, segments, mask)).tolist()
    [[2.0, 4.0, 2.0, 8.0]]

    Reference:
        Conneau et al., "Supervised Learning of Universal Sentence Representations from
        Natural Language Inference Data", 2017, section 3.1.
    """

    keeps_positions = False

    def build(self, hidden_shape: Shape, *_: Shape, **__: Shape) -> None:
        """Has no weights: Keras takes the name of the shape from here."""

    def call(
        self,
        hidden: Tensor,
        segment_ids: Tensor,
        padding_mask: Tensor | None = None,
    ) -> Tensor:
        check_hidden("hidden", hidden.shape)
        segment_ids = check_token_ids("segment_ids", segment_ids, hidden.shape[:2])
        visible = visible_keys(padding_mask, hidden)
        # Means of like texts are almost equal: half precision would round u - v away.
        hidden = at_least_float32(as_floats(hidden, self.compute_dtype))
        u, v = (
            visible_mean(hidden, all_true(segment_ids == segment, visible))
            for segment in (0, 1)
        )
        features = ops.concatenate([u, v, ops.abs(u - v), u * v], axis=-1)
        return ops.cast(features, self.compute_dtype)

    def compute_output_shape(
        self, hidden_shape: Shape, *_: Shape, **__: Shape
    ) -> Shape:
        return (hidden_shape[0], 4 * hidden_shape[-1])
