import math
import numbers

import keras_hub
import tensorflow as tf

from tfeff.data.finetuning.packing import padded_inputs
from tfeff.data.text.offset_tokenizer import PlacedTokens
from tfeff.export.request_texts import (
    first_characters,
    most_characters,
    of_equal_rows,
    require,
    valid,
)
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks import SpanQA
from tfeff.utils.checks import check_integer

_FRAME = 3  # [CLS] question [SEP] passage [SEP]
_NO_SCORE = tf.float32.min  # of a passage without text
# SentencePiece's time for the places of a run of unknown characters is quadratic.
_LONGEST_WORD = 20_000
_WINDOWS_AT_ONCE = 64  # They bound the memory that a request takes.


def answer_endpoint(
    model: SpanQA,
    text_encoder: TextEncoder,
    stride: int = 128,
    max_answer_tokens: int = 30,
    no_answer_threshold: float | None = None,
    max_windows: int = 1024,
):
    """The function `answer` of questions and passages `[B]`."""
    text_encoder.answerer = Answerer(
        model,
        text_encoder.tokenizer,
        text_encoder.sequence_length,
        stride,
        max_answer_tokens,
        no_answer_threshold,
        max_windows,
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
        max_windows: integer, most windows of a passage.

    Call arguments:
        question: string tensor `[B]`.
        passage: string tensor `[B]`. What is not UTF-8 counts as U+FFFD.

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
        tf.errors.InvalidArgumentError: of a call, naming the input: if there are not
            as many questions as passages; if a question leaves no room for a passage;
            if a passage has more windows than `max_windows`, more characters than
            they can hold, or a word of more than 20,000 characters.
    """

    def __init__(
        self,
        model: SpanQA,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
        stride: int = 128,
        max_answer_tokens: int = 30,
        no_answer_threshold: float | None = None,
        max_windows: int = 1024,
    ):
        super().__init__()
        check_integer("sequence_length", sequence_length, _FRAME + 1)
        check_integer("stride", stride)
        check_integer("max_answer_tokens", max_answer_tokens)
        check_integer("max_windows", max_windows)
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
        self.max_windows = max_windows
        most_tokens = sequence_length + (max_windows - 1) * stride
        self.most_in_passage = most_characters(tokenizer, most_tokens)
        self.most_in_question = most_characters(tokenizer, sequence_length)

    def __call__(self, question, passage):
        question, passage = of_equal_rows(question=question, passage=passage)
        question = first_characters(question, self.most_in_question)
        passage = self._bounded(passage)
        ids, starts, ends = self.placed_tokens(passage)
        windows = self._windows(self.tokenizer(question), ids)
        # One token more than there are: for those of windows without a token.
        starts, ends = (tf.pad(place, [[0, 1]]) for place in (starts, ends))
        scores, first, last, none = self._best_of_all(windows, starts < ends)
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

    def _bounded(self, passage):
        """Passages that can be tokenized in a time in proportion to their length."""
        passage = valid(passage)
        size = tf.strings.length(passage, unit="UTF8_CHAR")
        checks = require(
            size <= self.most_in_passage,
            f"`passage` must have at most {self.most_in_passage} characters. Received: "
            "passages of so many:",
            size,
        )
        word = tf.strings.length(tf.strings.split(passage).values, unit="UTF8_CHAR")
        checks += require(
            word <= _LONGEST_WORD,
            f"`passage` must have no word of more than {_LONGEST_WORD} characters. "
            "Received: a word of so many:",
            tf.reduce_max(word),
        )
        with tf.control_dependencies(checks):
            return tf.identity(passage)

    def _windows(self, question, passage):
        """The model's inputs for all windows, and where their tokens are."""
        asked, held = question.row_lengths(), passage.row_lengths()
        room = self.sequence_length - _FRAME - asked
        leaves_room = require(
            room >= 1,
            "`question` must leave room for the passage in the model's "
            f"{self.sequence_length} tokens. Received: questions of so many tokens:",
            asked,
        )
        with tf.control_dependencies(leaves_room):
            step = tf.minimum(room, self.stride)
        counts = -(-tf.maximum(held - room, 0) // step) + 1
        are_few = require(
            counts <= self.max_windows,
            f"`passage` must have at most {self.max_windows} windows beside its "
            "question. Received: passages of so many windows:",
            counts,
        )
        with tf.control_dependencies(are_few):
            counts = tf.identity(counts)
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

    def _best_of_all(self, windows, visible):
        """As `_best` of all windows, few of them at once: a request may have many."""

        def is_left(begin, *_):
            # Once at least, so that no windows have shapes too.
            return (begin < tf.size(windows["place"])) | (begin == 0)

        def some_more(begin, *found):
            part = slice(begin, begin + _WINDOWS_AT_ONCE)
            inputs = {name: rows[part] for name, rows in windows["inputs"].items()}
            logits = self.model(inputs, training=False)
            # The sums of best_spans: in float32 other spans could be equally good.
            logits = {name: tf.cast(rows, tf.float64) for name, rows in logits.items()}
            best = self._best(
                logits, windows["place"][part], windows["tokens"][part], visible
            )
            joined = [tf.concat(pair, axis=0) for pair in zip(found, best)]
            return begin + _WINDOWS_AT_ONCE, *joined

        dtypes = (tf.float64, tf.int64, tf.int64, tf.float64)
        _, *found = tf.while_loop(
            is_left,
            some_more,
            [tf.constant(0), *(tf.zeros([0], dtype) for dtype in dtypes)],
            shape_invariants=[tf.TensorShape([]), *[tf.TensorShape([None])] * 4],
            parallel_iterations=1,
        )
        return found

    def _best(self, logits, place, tokens, visible):
        """Of each window the best span's score, first and last token; no answer's."""
        # At least one column, so that there is a best one of it.
        width = tf.maximum(tokens.bounding_shape()[1], 1)
        none = tf.size(visible, tf.int64) - 1
        tokens = tokens.to_tensor(none, shape=[None, None])
        tokens = tf.pad(
            tokens,
            [[0, 0], [0, width - tf.shape(tokens, tf.int64)[1]]],
            constant_values=none,
        )
        column = place[:, tf.newaxis] + tf.range(width)
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
        # Not [:, 0], as the windows of an empty batch have no columns.
        cls = tf.reduce_sum(logits["start"][:, :1] + logits["end"][:, :1], axis=1)
        return tf.reduce_max(scores, axis=1), first, first + best // width, cls

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
