from typing import Any

import keras

from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.tasks.groups import group_of, grouped_inputs
from tfeff.tasks.task import SoftmaxTask


@keras.saving.register_keras_serializable(package="tfeff")
class MultipleChoice(SoftmaxTask):
    """Choice among the options of a question, as in RACE.

    The encoder reads each option with its passage and question as a sequence, which
    gets one logit; a softmax compares the options:

        v_c = g(X_c^L[0] W + b)                 pooling="cls"
        v_c = g(X_c^L[last] W + b)              pooling="last"
        v_c = g(MeanPooling(X_c^L) W + b)       pooling="mean"
        v_c = LayerwisePooling(X_c^0 … X_c^L)   pooling="layerwise"
        v_c = SegmentPooling(X_c^L)             pooling="segments"
        z_c = dropout(v_c) w + a
        p   = softmax(z_1 … z_C)

    Trained on `tfeff.data.text_features(...).dataset(...)`. The loss is the mean
    cross-entropy over all weighted questions of the global batch.

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
        inputs: dict of integer tensors `[B, C, T]`, any number C of options:
            `token_ids`, `segment_ids`, `padding_mask` (1 = real token).

    Returns:
        Logits `[B, C]`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.
        ValueError: if an argument is out of range, or `pooling="layerwise"` and the
            encoder's attention is a convolution, which has no queries.

    Example:

    >>> import keras, tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> model = MultipleChoice(encoder)
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 4, 7), dtype="int32")
    >>> logits = model({"token_ids": ones, "segment_ids": ones, "padding_mask": ones})
    >>> tuple(logits.shape)
    (2, 4)

    Reference:
        Lai et al., "RACE: Large-scale ReAding Comprehension Dataset From
        Examinations", 2017; Devlin et al., "BERT", section 4.4, for the logits.
    """

    def __init__(
        self,
        encoder: Encoder,
        pooling: str = "cls",
        dropout: float = 0.1,
        pooler_activation: str = "tanh",
        **kwargs: Any,
    ):
        check_encoder("encoder", encoder)
        inputs, rows = grouped_inputs()
        super().__init__(
            encoder,
            1,
            pooling,
            dropout,
            pooler_activation,
            inputs=inputs,
            rows=rows,
            finish=lambda z: group_of(encoder)([z[:, 0], inputs["token_ids"]]),
            **kwargs,
        )
