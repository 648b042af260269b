import keras

from tfeff.encoders import Encoder
from tfeff.objectives.objective import check_encoder
from tfeff.tasks.task import PooledTask
from tfeff.utils.checks import check_integer


@keras.saving.register_keras_serializable(package="tfeff")
class Classifier(PooledTask):
    """Classification of a text or of a pair of texts.

    The encoder's output becomes one vector `v`, by BERT's pooler or by a query that
    passes through all layers (`tfeff.layers.LayerwisePooling`), and then logits:

        v = tanh(X^L[0] W + b)                  pooling="cls"
        v = LayerwisePooling(X^0 … X^L)         pooling="layerwise"
        z = dropout(v) W' + b'                  [num_classes]

    Trained on `tfeff.data.text_features(...).dataset(...)`. The loss is the mean
    cross-entropy over all weighted examples of the global batch, the same on one
    device and on many.

    Args:
        encoder: a `tfeff.encoders.Encoder`.
        num_classes: integer, at least 2.
        pooling: `"cls"` or `"layerwise"`.
        dropout: float in [0, 1), rate on `v`.
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
        **kwargs,
    ):
        check_encoder("encoder", encoder)
        num_classes = check_integer("num_classes", num_classes, 2)
        super().__init__(encoder, num_classes, pooling, dropout, **kwargs)
        self.num_classes = num_classes

    def get_config(self):
        return {**super().get_config(), "num_classes": self.num_classes}
