import math
import numbers

import keras_hub
import tensorflow as tf

from tfeff.checks import check_integer
from tfeff.data.text_rows import padded_inputs
from tfeff.export.placed_tokens import PlacedTokens
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks import SpanQA

_FRAME = 3  # [CLS] question [SEP] passage [SEP]
_NO_SCORE = tf.float32.min  # of a passage without text


def answer_endpoint(
    model: SpanQA,
    text_encoder: TextEncoder,
    stride: int = 128,
    max_answer_tokens: int = 30,
    no_answer_threshold: float | None = None,
):
    """The function `answer` of questions and passages `[B]`."""
    text_encoder.answerer = Answerer(
        model,
        text_encoder.tokenizer,
        text_encoder.sequence_length,
        stride,
        max_answer_tokens,
        no_answer_threshold,
    )

    def answer(question, passage):
        return text_encoder.answerer(question, passage)

    return {"answer": answer}


class Answerer(tf.Module):
    """Answers questions from passages of any length, inside a TensorFlow graph.

    What `tfeff.data.make_span_features`, the model and `tfeff.data.best_spans` do for
    questions in Python.

    Args:
        model: a `tfeff.tasks.SpanQA`.
        tokenizer: a SentencePiece or WordPiece tokenizer of KerasHub.
        sequence_length: integer, most tokens of a window.
        stride: integer, tokens of the passage from one window to the next.
        max_answer_tokens: integer, most tokens of an answer.
        no_answer_threshold: by how much "no answer" must score higher than the best
            span to be the answer; None to answer always.

    Call arguments:
        question: string tensor `[B]`.
        passage: string tensor `[B]`.

    Returns:
        Dict of tensors `[B]`: `answer` string, cut out of the passage; `start` and
        `end` int32, its first character in the passage and the one behind its last,
        in Unicode code points; `score` float32, of the best span; and
        `no_answer_probability` float32, the softmax of that score and the one of no
        answer. No answer is "", 0 and 0. A passage without text has none, with
        probability 1 and the least float32 as its score.

    Raises:
        TypeError: if an integer or the tokenizer is of another type.
        ValueError: if an integer is out of range, or the threshold is no number.
    """

    def __init__(
        self,
        model: SpanQA,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
        stride: int = 128,
        max_answer_tokens: int = 30,
        no_answer_threshold: float | None = None,
    ):
        super().__init__()
        check_integer("sequence_length", sequence_length, _FRAME + 1)
        check_integer("stride", stride)
        check_integer("max_answer_tokens", max_answer_tokens)
        if no_answer_threshold is not None and (
            not isinstance(no_answer_threshold, numbers.Real)
            or math.isnan(no_answer_threshold)
        ):
            raise ValueError(
                "`no_answer_threshold` must be a number or None. Received: "
                f"no_answer_threshold={no_answer_threshold!r}"
            )
        self.model = model
        self.tokenizer = tokenizer
        self.placed_tokens = PlacedTokens(tokenizer)
        self.sequence_length = sequence_length
        self.padded_length = sequence_length if model.encoder.length_dependent else None
        self.stride = stride
        self.max_answer_tokens = max_answer_tokens
        self.no_answer_threshold = no_answer_threshold

    def __call__(self, question, passage):
        ids, starts, ends = self.placed_tokens(passage)
        windows = self._windows(self.tokenizer(question), ids)
        logits = self.model(windows["inputs"], training=False)
        # The sums of best_spans: in float32 other spans could be equally good.
        logits = {name: tf.cast(value, tf.float64) for name, value in logits.items()}
        # One token more than there are: for those of windows without a token.
        starts, ends = (tf.pad(place, [[0, 1]]) for place in (starts, ends))
        scores, first, last = self._best(logits, windows, starts < ends)
        per_question = tf.RaggedTensor.from_row_lengths(scores, windows["counts"])
        # One column more, as an empty batch has none to find the best of.
        columns = tf.pad(
            per_question.to_tensor(-math.inf),
            [[0, 0], [0, 1]],
            constant_values=-math.inf,
        )
        best = tf.argmax(columns, axis=1)
        window = per_question.row_starts() + best
        score = tf.gather(scores, window)
        answered = tf.math.is_finite(score)
        score = tf.where(answered, score, tf.constant(_NO_SCORE, tf.float64))
        # Not [:, 0], as the windows of an empty batch have no columns.
        cls = logits["start"][:, :1] + logits["end"][:, :1]
        none = tf.reduce_sum(cls, axis=1)
        none = tf.RaggedTensor.from_row_lengths(none, windows["counts"])
        none = tf.reduce_min(none.to_tensor(math.inf), axis=1)
        if self.no_answer_threshold is not None:
            answered &= none - score <= self.no_answer_threshold
        places = tf.gather(starts, tf.gather(first, window))
        behind = tf.gather(ends, tf.gather(last, window))
        return {
            **self._text(passage, places, behind, answered),
            "score": tf.cast(score, tf.float32),
            "no_answer_probability": tf.cast(tf.sigmoid(none - score), tf.float32),
        }

    def _windows(self, question, passage):
        """The model's inputs for all windows, and where their tokens are."""
        asked, held = question.row_lengths(), passage.row_lengths()
        room = self.sequence_length - _FRAME - asked
        tf.debugging.assert_positive(
            room,
            "question: must leave room for the passage in the model's "
            f"{self.sequence_length} tokens",
        )
        step = tf.minimum(room, self.stride)
        counts = -(-tf.maximum(held - room, 0) // step) + 1
        example = tf.repeat(tf.range(passage.nrows()), counts)
        begin = tf.ragged.range(counts).flat_values * tf.gather(step, example)
        size = tf.minimum(tf.gather(room, example), tf.gather(held, example) - begin)
        begin += tf.gather(passage.row_starts(), example)
        tokens = tf.ragged.range(begin, begin + size)
        ids = tokens.with_flat_values(
            tf.gather(passage.flat_values, tokens.flat_values)
        )
        one = [tf.size(example), 1]
        cls, sep = (
            tf.fill(one, id)
            for id in (self.tokenizer.cls_token_id, self.tokenizer.sep_token_id)
        )
        asked_ids = tf.gather(tf.cast(question, tf.int32), example)
        rows = tf.concat([cls, asked_ids, sep, ids, sep], axis=1)
        place = tf.gather(asked, example) + 2
        return {
            "inputs": padded_inputs(
                rows,
                tf.cast(place, tf.int32),
                self.tokenizer.pad_token_id,
                self.padded_length,
            ),
            "counts": counts,
            "place": place,
            "tokens": tokens,
        }

    def _best(self, logits, windows, visible):
        """Of each window the best span's score, first and last token."""
        # At least one column, so that there is a best one of it.
        width = tf.maximum(windows["tokens"].bounding_shape()[1], 1)
        none = tf.size(visible, tf.int64) - 1
        tokens = windows["tokens"].to_tensor(none, shape=[None, None])
        tokens = tf.pad(
            tokens,
            [[0, 0], [0, width - tf.shape(tokens, tf.int64)[1]]],
            constant_values=none,
        )
        column = windows["place"][:, tf.newaxis] + tf.range(width)
        last = tf.shape(logits["start"], tf.int64)[1] - 1
        column = tf.minimum(column, last)
        start, end = (
            tf.where(
                tf.gather(visible, tokens),
                tf.gather(logits[name], column, batch_dims=1),
                tf.constant(-math.inf, tf.float64),
            )
            for name in ("start", "end")
        )
        end = tf.pad(
            end, [[0, 0], [0, self.max_answer_tokens]], constant_values=-math.inf
        )
        # Shorter answers come first, as ties go to the first of all.
        scores = tf.concat(
            [start + end[:, n : n + width] for n in range(self.max_answer_tokens)],
            axis=1,
        )
        best = tf.argmax(scores, axis=1)
        first = tf.gather(tokens, best % width, batch_dims=1)
        return tf.reduce_max(scores, axis=1), first, first + best // width

    def _text(self, passage, start, end, answered):
        """The answer of places as `PlacedTokens` numbers them."""
        characters, offsets = self.placed_tokens.characters(passage)
        start, end = (
            tf.where(answered, place, characters.row_starts()) for place in (start, end)
        )
        begin, stop = (tf.gather(offsets.flat_values, p) for p in (start, end))
        first = characters.row_starts()
        return {
            "answer": tf.strings.substr(passage, begin, stop - begin),
            "start": tf.cast(start - first, tf.int32),
            "end": tf.cast(end - first, tf.int32),
        }
