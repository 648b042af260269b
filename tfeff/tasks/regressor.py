from typing import Any

import keras
import numpy as np
from keras import ops

from tfeff.data.finetuning.text_features import TextFeatures
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.objectives.objective import TARGET_MEAN
from tfeff.tasks.task import PooledTask
from tfeff.training.losses import GlobalMean


@keras.saving.register_keras_serializable(package="tfeff")
def squared_error(y_true, y_pred):
    """(y - ŷ)² of each element; Keras' loss averages over the last axis.

    Args:
        y_true: ratings of the shape of `y_pred`, or a column of them `[..., 1]`.
        y_pred: float tensor `[...]`.

    Raises:
        ValueError: if `y_true` has another shape, which would be broadcast.
    """
    y_pred = ops.convert_to_tensor(y_pred)
    y_true = ops.cast(y_true, y_pred.dtype)
    shape, expected = tuple(y_true.shape), tuple(y_pred.shape)
    if len(shape) == len(expected) + 1 and shape[-1] == 1:
        y_true = ops.squeeze(y_true, -1)
    elif len(shape) != len(expected) or any(
        None not in (a, b) and a != b for a, b in zip(shape, expected)
    ):
        raise ValueError(
            f"`y_true` must have the shape of the outputs, {expected}, or be a column "
            f"of one axis more. Received: shape {shape}"
        )
    return ops.square(y_pred - y_true)


@keras.saving.register_keras_serializable(package="tfeff")
class GlobalMeanSquaredError(GlobalMean):
    """Squared error averaged over every weighted example of the global batch.

        loss = Σ_r Σ_i w_i (y_i - ŷ_i)² / Σ_r Σ_i w_i

    with `r` over the replicas, as in `tfeff.objectives.GlobalMeanCrossentropy`.

    Call arguments:
        y_true: float tensor `[...]`, or a column `[..., 1]`.
        y_pred: float tensor `[...]`.
        sample_weight: float tensor `[...]`; `None` means 1 everywhere.

    Returns:
        Scalar: this replica's share of the loss. The replicas' shares add up to it.

    Raises:
        ValueError: if `y_true` has another shape.

    Example:

    >>> loss = GlobalMeanSquaredError()
    >>> float(loss([1.0, 5.0], [3.0, 0.0], sample_weight=[1.0, 0.0]))
    4.0
    """

    def __init__(self, name: str = "squared_error", dtype=None):
        super().__init__(name=name, dtype=dtype)

    def call(self, y_true, y_pred):
        return squared_error(y_true, y_pred)


@keras.saving.register_keras_serializable(package="tfeff")
class Regressor(PooledTask):
    """Regression: rates a text or a pair of texts by one number.

    As `tfeff.tasks.Classifier`, with one output and the mean squared error:

        v = g(X^L[0] W + b)                     pooling="cls"
        v = g(X^L[last] W + b)                  pooling="last"
        v = g(MeanPooling(X^L) W + b)           pooling="mean"
        v = LayerwisePooling(X^0 … X^L)         pooling="layerwise"
        v = SegmentPooling(X^L)                 pooling="segments"
        ŷ = dropout(v) w + c

    Args:
        encoder: a `tfeff.encoders.Encoder`.
        pooling: `"cls"`, the first position; `"last"`, the last that is not padding, as
            in XLNet; `"mean"`, over all that are not padding; `"layerwise"`; or
            `"segments"`, which compares the means of a pair's two texts. RoBERTa's and
            XLM-RoBERTa's tokenizers make rows of one segment, which leave the second
            mean 0.
        dropout: float in [0, 1), rate on `v`.
        pooler_activation: `g`, by a name of Keras'; `"gelu_tanh"` is GELU by tanh. It
            is BERT's tanh by default.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of integer tensors `[B, T]`: `token_ids`, `segment_ids`,
            `padding_mask` (1 = real token).

    Returns:
        Ratings `[B]`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.
        ValueError: if an argument is out of range, or `pooling="layerwise"` and the
            encoder's attention is a convolution, which has no queries.

    Example:

    >>> import keras, tfeff
    >>> model = Regressor(tfeff.encoders.build("shatter_tiny", vocabulary_size=100))
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> scores = model({"token_ids": ones, "segment_ids": ones, "padding_mask": ones})
    >>> tuple(scores.shape)
    (2,)

    Reference:
        Devlin et al., "BERT", section 4.1; Tian et al., "Shatter", section 3.4.
    """

    def __init__(
        self,
        encoder: Encoder,
        pooling: str = "cls",
        dropout: float = 0.1,
        pooler_activation: str = "tanh",
        **kwargs: Any,
    ):
        super().__init__(
            check_encoder("encoder", encoder),
            1,
            pooling,
            dropout,
            pooler_activation,
            finish=lambda z: z[:, 0],
            **kwargs,
        )

    def ratings(
        self,
        features: TextFeatures,
        batch_size: int = 32,
        pad_to_longest: bool | None = None,
    ) -> np.ndarray:
        """The rating ŷ of each example.

        Args:
            features: from `tfeff.data.text_features`.
            batch_size: integer, examples in a batch.
            pad_to_longest: whether rows are as long as the longest of their batch. By
                default they are, unless the encoder depends on the padded length or
                the model is compiled for each length, as on a TPU.

        Returns:
            `[N]` float32, in the order of the examples.

        Raises:
            TypeError: if `features` are others.
            ValueError: if `batch_size` is below 1, or `features` have ids that the
                encoder has no rows for.
        """
        return self.predicted(features, batch_size, pad_to_longest)

    def default_loss(self) -> Any:
        return GlobalMeanSquaredError()

    def default_metrics(self) -> Any:
        return [keras.metrics.MeanMetricWrapper(squared_error, name=TARGET_MEAN)]
