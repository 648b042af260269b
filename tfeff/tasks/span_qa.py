from typing import Any

import keras
from keras import ops

from tfeff.data.finetuning.examples import SpanAnswer
from tfeff.data.finetuning.span_decoding import (
    best_spans,
    check_features,
    check_threshold,
)
from tfeff.data.finetuning.span_features import SpanFeatures
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import INPUTS, check_encoder
from tfeff.layers.dense import bert_dense
from tfeff.layers.dropout import Dropout
from tfeff.objectives.heads import Head
from tfeff.objectives.objective import token_metrics
from tfeff.ops.masking import MASKED
from tfeff.tasks.encoder_limits import check_known_ids
from tfeff.tasks.task import Task, logits_dtype
from tfeff.training.losses import GlobalMeanCrossentropy
from tfeff.utils.checks import check_integer, check_rate
from tfeff.utils.types import Config

OUTPUTS = ("start", "end")


@keras.saving.register_keras_serializable(package="tfeff")
class _SpanHead(keras.layers.Layer):
    """Two logits for each token, -1e30 where no answer can be.

    The passage is segment 1; in rows of one segment, what lies behind a separator.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = bert_dense(2, dtype=self.dtype_policy, name="dense")

    def build(self, hidden_shape, *input_shapes):
        self.dense.build(hidden_shape)

    def call(self, hidden, token_ids, segment_ids, is_token):
        real = ops.cast(is_token != 0, "int32")
        # A token of the passage is followed by another token: the last [SEP] is not.
        followed = real * ops.pad(real[:, 1:], [[0, 0], [0, 1]])
        second = real * ops.cast(segment_ids == 1, "int32")
        of_one_segment = 1 - ops.max(second, axis=1, keepdims=True, initial=0)
        second += of_one_segment * _behind_separator(token_ids, real - followed)
        passage = followed * second
        is_cls = real * ops.cast(ops.cumsum(ops.ones_like(real), axis=1) == 1, "int32")
        allowed = (passage + is_cls) > 0
        logits = self.dense(hidden)
        return {
            name: ops.where(allowed, logits[..., index], MASKED)
            for index, name in enumerate(OUTPUTS)
        }

    def compute_output_spec(self, hidden, token_ids, segment_ids, is_token):
        shape, dtype = hidden.shape[:-1], self.compute_dtype
        return {name: keras.KerasTensor(shape, dtype) for name in OUTPUTS}


def _behind_separator(token_ids, is_last):
    """1 for tokens behind a separator that are none; the last token is a separator."""
    separator = ops.max(token_ids * is_last, axis=1, keepdims=True, initial=0)
    is_separator = ops.cast(token_ids == separator, "int32")
    return ops.cast(ops.cumsum(is_separator, axis=1) > 0, "int32") * (1 - is_separator)


@keras.saving.register_keras_serializable(package="tfeff")
class SpanQA(Task):
    """Extractive question answering: predicts the answer's span in the passage.

    From the last hidden state, each token gets one logit for the start and one for the
    end of the answer, independently of each other:

        s = X^L w_s + b_s        e = X^L w_e + b_e        [T]

    over `[CLS]` and the passage's tokens; the others' logits are -1e30. The loss is
    the mean of the cross-entropies of the answer's first and last token over the
    global batch. A window without the answer has both at `[CLS]`.

    Trained on `SpanFeatures.dataset(...)`.

    Args:
        encoder: a `tfeff.encoders.Encoder`. One with fewer than two segments tells
            question and passage apart by the `[SEP]` between them.
        dropout: float in [0, 1), dropout rate of the last hidden state; BERT has none
            here.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of integer tensors `[B, T]`: `token_ids`, `segment_ids`, 1 for
            the passage and the `[SEP]` after it, and `padding_mask`; rows are
            `[CLS] question [SEP] passage [SEP]`, padded at the end. In rows of one
            segment, such as those of RoBERTa's tokenizer, the passage is what lies
            behind the first `[SEP]`; the row's last token tells its id.

    Returns:
        Dict of `start` and `end`, logits `[B, T]`, float32 in half precision too.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.
        ValueError: if `dropout` is out of range.

    Example:

    >>> import keras, tfeff
    >>> encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
    >>> model = SpanQA(encoder)
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> logits = model({"token_ids": ones, "segment_ids": ones, "padding_mask": ones})
    >>> tuple(logits["start"].shape), tuple(logits["end"].shape)
    ((2, 7), (2, 7))

    Reference:
        Devlin et al., "BERT", sections 4.2 and 4.3.
    """

    def __init__(self, encoder: Encoder, dropout: float = 0.0, **kwargs: Any):
        check_encoder("encoder", encoder)
        dropout = check_rate("dropout", dropout)
        inputs = encoder.input
        hidden = encoder(inputs)["sequence_output"]
        dtype = encoder.dtype_policy
        hidden = Dropout(dropout, dtype=dtype, name="dropout")(hidden)
        head = _SpanHead(dtype=logits_dtype(encoder), name="head")
        outputs = head(hidden, *(inputs[name] for name in INPUTS))
        super().__init__(encoder, inputs, outputs, **kwargs)
        self.head = head
        self.dropout = float(dropout)
        self.output_weights = dict.fromkeys(OUTPUTS, 0.5)

    def heads(self) -> dict[str, Head]:
        return {"span_logits": Head.of(self.head.dense)}

    def default_loss(self) -> Any:
        return {name: GlobalMeanCrossentropy() for name in OUTPUTS}

    def default_metrics(self) -> Any:
        return {name: token_metrics() for name in OUTPUTS}

    def answers(
        self,
        features: SpanFeatures,
        batch_size: int = 16,
        max_answer_tokens: int = 30,
        no_answer_threshold: float | None = None,
    ) -> tuple[SpanAnswer, ...]:
        """The best answer to each question, over all windows of its passage.

        Args:
            features: from `tfeff.data.make_span_features`.
            batch_size: integer, windows in a batch.
            max_answer_tokens: the largest number of tokens of an answer.
            no_answer_threshold: as in `tfeff.data.best_spans`.

        Returns:
            One `SpanAnswer` for each of `features.questions`.

        Raises:
            TypeError: if `features` are others, or an integer is none.
            ValueError: if a number is out of range, or `features` have ids that the
                encoder has no rows for.
        """
        check_features(features)
        check_known_ids(features.token_ids, self.encoder)
        batch_size = check_integer("batch_size", batch_size)
        max_answer_tokens = check_integer("max_answer_tokens", max_answer_tokens)
        no_answer_threshold = check_threshold(no_answer_threshold)
        dataset = features.dataset(batch_size, shuffle=False, repeat=False)
        logits = self.predict(dataset, verbose=0)
        # The last batch is padded with empty windows.
        start, end = (logits[name][: len(features)] for name in OUTPUTS)
        return best_spans(features, start, end, max_answer_tokens, no_answer_threshold)

    def get_config(self) -> Config:
        return {**super().get_config(), "dropout": self.dropout}
