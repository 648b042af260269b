import dataclasses
from typing import Any

import keras
import numpy as np
from keras import ops

from tfeff.data.finetuning.text_features import TextFeatures
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.objectives.heads import Head
from tfeff.objectives.objective import TARGET_MEAN, as_columns
from tfeff.tasks.task import PooledTask, without_defaults
from tfeff.training.losses import GlobalMean
from tfeff.utils.checks import check_number, check_positive, shapes_agree
from tfeff.utils.types import Config


@keras.saving.register_keras_serializable(package="tfeff")
def squared_error(y_true, y_pred, scale=1.0):
    """((y - ŷ) / s)² of each element; Keras' loss averages over the last axis.

    Args:
        y_true: ratings of the shape of `y_pred`, or a column of them `[..., 1]`.
        y_pred: float tensor `[...]`.
        scale: float s, the unit that errors are measured in.

    Raises:
        ValueError: if `y_true` has another shape, which would be broadcast.
    """
    y_pred = ops.convert_to_tensor(y_pred)
    y_true = ops.cast(y_true, y_pred.dtype)
    shape, expected = tuple(y_true.shape), tuple(y_pred.shape)
    if len(shape) == len(expected) + 1 and shape[-1] == 1:
        y_true = ops.squeeze(y_true, -1)
    elif not shapes_agree(shape, expected):
        raise ValueError(
            f"`y_true` must have the shape of the outputs, {expected}, or be a column "
            f"of one axis more. Received: shape {shape}"
        )
    return ops.square((y_pred - y_true) / scale)


@keras.saving.register_keras_serializable(package="tfeff")
class GlobalMeanSquaredError(GlobalMean):
    """Squared error averaged over every weighted example of the global batch.

        loss = Σ_r Σ_i w_i ((y_i - ŷ_i) / s)² / Σ_r Σ_i w_i

    with `r` over the replicas, as in `tfeff.objectives.GlobalMeanCrossentropy`.

    Args:
        name: what the loss is called in logs.
        dtype: dtype of the computation; `None` means Keras' default, float32.
        scale: float s, the unit that errors are measured in.

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

    def __init__(self, name: str = "squared_error", dtype=None, scale: float = 1.0):
        super().__init__(name=name, dtype=dtype)
        self.scale = scale

    def call(self, y_true, y_pred):
        return squared_error(y_true, y_pred, self.scale)

    def get_config(self):
        return {**super().get_config(), **without_defaults(scale=(self.scale, 1.0))}


@keras.saving.register_keras_serializable(package="tfeff")
class Regressor(PooledTask):
    """Regression: rates a text or a pair of texts by one number.

    As `tfeff.tasks.Classifier`, with one output and the mean squared error:

        v = g(X^L[0] W + b)                     pooling="cls"
        v = g(X^L[last] W + b)                  pooling="last"
        v = g(MeanPooling(X^L) W + b)           pooling="mean"
        v = LayerwisePooling(X^0 … X^L)         pooling="layerwise"
        v = SegmentPooling(X^L)                 pooling="segments"
        ŷ = s (dropout(v) w + c) + m

    Losses and metrics of Keras get ratings, labels and weights as columns `[B, 1]`,
    since they take means over the last axis. Correlations are of all ratings at once:
    compute them from `ratings`.

    The scale `s` and the offset `m` are not trained. With the deviation and the mean of
    the labels, as `tfeff finetune` gives them for data sets of one's own, ratings of
    any size train like those from -1 to 1. The loss is that of errors in units of `s`.

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
        scale: float above 0, `s`.
        offset: float, `m`.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of integer tensors `[B, T]`: `token_ids`, `segment_ids`,
            `padding_mask` (1 = real token).

    Returns:
        Ratings `[B]`, in float32 at least.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`, or a number is none.
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
        scale: float = 1.0,
        offset: float = 0.0,
        **kwargs: Any,
    ):
        check_encoder("encoder", encoder)
        scale = check_positive("scale", scale)
        offset = check_number("offset", offset)
        super().__init__(
            encoder,
            1,
            pooling,
            dropout,
            pooler_activation,
            finish=lambda z: _scaled(z[:, 0], scale, offset),
            **kwargs,
        )
        self.scale = scale
        self.offset = offset

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

    @property
    def rating_scale(self) -> float:  # type: ignore[override]
        return self.scale

    def default_loss(self) -> Any:
        return GlobalMeanSquaredError(scale=self.scale)

    def default_metrics(self) -> Any:
        unit = without_defaults(scale=(self.scale, 1.0))
        return [keras.metrics.MeanMetricWrapper(squared_error, TARGET_MEAN, **unit)]

    def _as_columns(self, y, y_pred, sample_weight):
        return as_columns(y, y_pred, sample_weight)

    def heads(self) -> dict[str, Head]:
        heads = super().heads()
        logits = dataclasses.replace(heads["logits"], settings=self._units())
        return {**heads, "logits": logits}

    def get_config(self) -> Config:
        return {**super().get_config(), **self._units()}

    def _units(self):
        """Scale and offset, but for 1 and 0."""
        return without_defaults(scale=(self.scale, 1.0), offset=(self.offset, 0.0))


def _scaled(ratings, scale, offset):
    if (scale, offset) == (1.0, 0.0):
        return ratings
    return ratings * scale + offset
