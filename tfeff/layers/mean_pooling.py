import keras

from tfeff.layers.checks import as_floats, check_hidden, visible_keys
from tfeff.layers.layer import Layer
from tfeff.ops.pooling import visible_mean
from tfeff.utils.types import Shape, Tensor


@keras.saving.register_keras_serializable(package="tfeff")
class MeanPooling(Layer):
    """One vector for each sequence: the mean of its real tokens' hidden states.

        v = Σ_t m_t x_t / Σ_t m_t

    with `m_t` 1 at real tokens and 0 at padding; zeros where there is no real token.
    Sums are in float32 or better: half precision would round, and float16 overflow.

    Args:
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        hidden: float tensor `[B, T, D]`.
        padding_mask: bool or integer tensor `[B, T]`, nonzero at real tokens;
            `None` means Keras' mask of `hidden`; without one, all tokens are real.

    Returns:
        Float tensor `[B, D]`.

    Raises:
        ValueError: if `padding_mask` is of another shape.
        TypeError: if it is of floats.

    Example:

    >>> import numpy as np
    >>> hidden = np.array([[[1.0], [3.0], [100.0]]], "float32")
    >>> float(MeanPooling()(hidden, padding_mask=np.array([[1, 1, 0]]))[0, 0])
    2.0

    Reference:
        Reimers and Gurevych, "Sentence-BERT", 2019, section 3: the MEAN strategy.
    """

    keeps_positions = False

    def build(self, hidden_shape: Shape) -> None:
        """Has no weights: Keras takes the name of the shape from here."""

    def call(
        self,
        hidden: Tensor,
        padding_mask: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        check_hidden("hidden", hidden.shape)
        visible = visible_keys(padding_mask, hidden, mask)
        return visible_mean(as_floats(hidden, self.compute_dtype), visible)

    def compute_output_shape(
        self, hidden_shape: Shape, *_: Shape, **__: Shape
    ) -> Shape:
        return (hidden_shape[0], hidden_shape[-1])
