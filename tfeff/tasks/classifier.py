from collections.abc import Sequence
from typing import Any

import keras

from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.tasks.task import SoftmaxTask, check_class_names
from tfeff.utils.checks import check_integer
from tfeff.utils.types import Config


@keras.saving.register_keras_serializable(package="tfeff")
class Classifier(SoftmaxTask):
    """Classification of a text or of a pair of texts.

    The encoder's output becomes one vector `v`, by BERT's pooler or by a query that
    passes through all layers (`tfeff.layers.LayerwisePooling`), and then logits:

        v = g(X^L[0] W + b)                     pooling="cls"
        v = g(X^L[last] W + b)                  pooling="last"
        v = g(MeanPooling(X^L) W + b)           pooling="mean"
        v = LayerwisePooling(X^0 … X^L)         pooling="layerwise"
        v = SegmentPooling(X^L)                 pooling="segments"
        z = dropout(v) W' + b'                  [num_classes]

    Trained on `tfeff.data.text_features(...).dataset(...)`. The loss is the mean
    cross-entropy over all weighted examples of the global batch, the same on one
    device and on many.

    Args:
        encoder: a `tfeff.encoders.Encoder`.
        num_classes: integer, at least 2.
        pooling: `"cls"`, the first position; `"last"`, the last that is not padding, as
            in XLNet; `"mean"`, over all that are not padding; `"layerwise"`; or
            `"segments"`, which compares the means of a pair's two texts. RoBERTa's and
            XLM-RoBERTa's tokenizers make rows of one segment, which leave the second
            mean 0.
        dropout: float in [0, 1), rate on `v`.
        pooler_activation: `g`, by a name of Keras'; `"gelu_tanh"` is GELU by tanh. It
            is BERT's tanh by default.
        label_names: the names of the classes, or `None`. Serving gives them.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of integer tensors `[B, T]`: `token_ids`, `segment_ids`,
            `padding_mask` (1 = real token).

    Returns:
        Logits `[B, num_classes]`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`, or `num_classes` is
            not an integer.
        ValueError: if an argument is out of range, or `pooling="layerwise"` and the
            encoder's attention is a convolution, which has no queries.

    Example:

    >>> import keras, tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> model = Classifier(encoder, num_classes=3, pooling="layerwise")
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> logits = model({"token_ids": ones, "segment_ids": ones, "padding_mask": ones})
    >>> tuple(logits.shape)
    (2, 3)

    Reference:
        Devlin et al., "BERT", section 4.1; Tian et al., "Shatter", section 3.4.
    """

    def __init__(
        self,
        encoder: Encoder,
        num_classes: int,
        pooling: str = "cls",
        dropout: float = 0.1,
        pooler_activation: str = "tanh",
        label_names: Sequence[str] | None = None,
        **kwargs: Any,
    ):
        check_encoder("encoder", encoder)
        num_classes = check_integer("num_classes", num_classes, 2)
        label_names = check_class_names(label_names, num_classes)
        super().__init__(
            encoder, num_classes, pooling, dropout, pooler_activation, **kwargs
        )
        self.num_classes = num_classes
        self.label_names = label_names

    def get_config(self) -> Config:
        names = self.label_names
        return {
            **super().get_config(),
            "num_classes": self.num_classes,
            "label_names": None if names is None else list(names),
        }
