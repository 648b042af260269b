import math

import tensorflow as tf

from tfeff.data.finetuning.packing import pair_frame, separated
from tfeff.data.finetuning.span_decoding import (
    best_in_windows,
    best_of_questions,
    check_threshold,
)
from tfeff.data.finetuning.windows import (
    PAIR_FRAME,
    window_inputs,
    windows,
    windows_of,
)
from tfeff.data.text.offset_tokenizer import offset_tokenizer
from tfeff.export.parts import by_parts
from tfeff.export.request_texts import (
    check_equal_rows,
    checked,
    few_characters,
    first_characters,
    most_characters,
    require,
    short_words,
    spaces_in_words,
    valid,
)
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks import SpanQA
from tfeff.tasks.span_qa import OUTPUTS
from tfeff.utils.checks import check_integer

_NO_SCORE = tf.float32.min  # of a passage without text


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
        model, text_encoder, stride, max_answer_tokens, no_answer_threshold, max_windows
    )

    def answer(question, passage):
        return text_encoder.answerer(question, passage)

    return {"answer": answer}


class Answerer(tf.Module):
    """Answers questions from passages of any length, inside a TensorFlow graph.

    It does what `tfeff.data.make_span_features`, the model and `tfeff.data.best_spans`
    do in Python.

    Args:
        model: a `tfeff.tasks.SpanQA`.
        text_encoder: the `TextEncoder` of its encoder, whose `sequence_length` is the
            most tokens of a window. Its tokenizer is a SentencePiece or WordPiece
            tokenizer of KerasHub, or a `tfeff.data.RobertaTokenizer`.
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
        probability 1 and the least float32 as its score; so has one whose logits are
        no numbers.

    Raises:
        TypeError: if an integer or the tokenizer is of another type.
        ValueError: if an integer is out of range, or the threshold is no number.
        tf.errors.InvalidArgumentError: of a call, naming the input: if there are not
            as many questions as passages; if a question leaves no room for a passage;
            if a passage has more windows than `max_windows`, more characters than
            they can hold, or with SentencePiece a word of more than 20,000.
    """

    def __init__(
        self,
        model: SpanQA,
        text_encoder: TextEncoder,
        stride: int,
        max_answer_tokens: int,
        no_answer_threshold: float | None,
        max_windows: int,
    ):
        super().__init__()
        tokenizer = text_encoder.tokenizer
        sequence_length = text_encoder.sequence_length
        check_integer("sequence_length", sequence_length, pair_frame(tokenizer) + 1)
        check_integer("stride", stride)
        check_integer("max_answer_tokens", max_answer_tokens)
        check_integer("max_windows", max_windows)
        self.model = model
        self.tokenizer = tokenizer
        self.offset_tokenizer = offset_tokenizer(tokenizer)
        self.sequence_length = sequence_length
        self.padded_length = text_encoder.padded_length
        self.stride = stride
        self.max_answer_tokens = min(max_answer_tokens, sequence_length)
        self.no_answer_threshold = check_threshold(no_answer_threshold)
        self.max_windows = max_windows
        most_tokens = sequence_length + (max_windows - 1) * stride
        self.spaces_in_words = spaces_in_words(tokenizer)
        self.most_in_passage = most_characters(tokenizer, most_tokens)
        self.most_in_question = most_characters(tokenizer, sequence_length)

    def __call__(self, question, passage):
        question, passage = check_equal_rows(question=question, passage=passage)
        question = first_characters(question, self.most_in_question)
        passage = self._bounded(passage)
        ids, starts, ends = self.offset_tokenizer(passage)
        # One more token stands for no answer.
        starts, ends = (tf.pad(x.flat_values, [[0, 1]]) for x in (starts, ends))
        question = separated(self.tokenizer(question), self.tokenizer)
        counts, *windows = self._windows(question, ids)
        scores, first, last, none = self._best_of_all(
            question, ids.flat_values, starts < ends, *windows
        )
        window, score, none = best_of_questions(scores, none, counts)
        answered = tf.math.is_finite(score)
        score = tf.where(answered, score, tf.constant(_NO_SCORE, tf.float64))
        if self.no_answer_threshold is not None:
            answered &= none - score <= self.no_answer_threshold
        start, end = (
            tf.gather(
                offsets,
                tf.where(
                    answered, tf.gather(token, window), tf.size(offsets, tf.int64) - 1
                ),
            )
            for offsets, token in ((starts, first), (ends, last))
        )
        return {
            "answer": tf.strings.substr(passage, start, end - start, "UTF8_CHAR"),
            "start": start,
            "end": end,
            "score": tf.cast(score, tf.float32),
            "no_answer_probability": tf.cast(tf.sigmoid(none - score), tf.float32),
        }

    def _bounded(self, passage):
        """Passages that can be tokenized in a time in proportion to their length."""
        passage = few_characters("passage", valid(passage), self.most_in_passage)
        parts = passage
        if self.spaces_in_words:
            parts = tf.strings.regex_replace(parts, f"[{self.spaces_in_words}]", "_")
        words = tf.strings.split(parts).values
        return checked(passage, *short_words("passage", words, self.tokenizer))

    def _windows(self, question, passage):
        """The number of windows of each question; then of each window its question,
        the first of all passages' tokens in it, and how many of them it has."""
        question_sizes, passage_sizes = question.row_lengths(), passage.row_lengths()
        leaves_room = require(
            question_sizes < self.sequence_length - PAIR_FRAME,
            "`question` must leave room for the passage in the model's "
            f"{self.sequence_length} tokens. Received: one of so many tokens:",
            tf.reduce_max(question_sizes),
        )
        question_sizes = checked(question_sizes, leaves_room)
        room = self.sequence_length - PAIR_FRAME - question_sizes
        counts = windows(room, passage_sizes, self.stride)
        are_few = require(
            counts <= self.max_windows,
            f"`passage` must have at most {self.max_windows} windows beside its "
            "question. Received: one of so many windows:",
            tf.reduce_max(counts),
        )
        room = checked(room, are_few)
        example, begin, size = windows_of(room, passage_sizes, self.stride)
        return counts, example, begin + tf.gather(passage.row_starts(), example), size

    def _best_of_all(self, question, passages, visible, *windows):
        """For each window: score, first and last token of its best span, and the
        no-answer score."""

        def best(example, begin, size):
            asked = tf.gather(tf.cast(question, tf.int32), example)
            inputs = window_inputs(
                asked, passages, begin, size, self.tokenizer, self.padded_length
            )
            logits = self.model(inputs, training=False)
            # These are the sums of best_spans: float32 could make other spans equal.
            start, end = (tf.cast(logits[n], tf.float64) for n in OUTPUTS)
            shift = begin - asked.row_lengths() - 2
            tokens = tf.range(tf.shape(start, tf.int64)[1]) + shift[:, tf.newaxis]
            inside = tokens >= begin[:, tf.newaxis]
            inside &= tokens < (begin + size)[:, tf.newaxis]
            tokens = tf.where(inside, tokens, tf.size(visible, tf.int64) - 1)
            score, first, last = best_in_windows(
                start, end, tf.gather(visible, tokens), self.max_answer_tokens
            )
            # [:, 0] would fail for an empty batch, whose windows have no columns.
            none = tf.reduce_sum(start[:, :1] + end[:, :1], axis=1)
            # A window that overflowed has no answer, but others may have one.
            none = tf.where(
                tf.math.is_finite(none), none, tf.constant(math.inf, none.dtype)
            )
            return score, first + shift, last + shift, none

        example, _, size = windows
        sizes = tf.gather(question.row_lengths(), example) + size + PAIR_FRAME
        longest = self.padded_length or tf.reduce_max(tf.concat([[0], sizes], axis=0))
        # Windows are built where they are computed: many may repeat a long question.
        return by_parts(best, longest, *windows)
