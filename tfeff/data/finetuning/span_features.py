"""Questions and passages as windows of tokens, with the tokens of the answers."""

import dataclasses
import warnings
from collections.abc import Sequence

import keras_hub
import numpy as np
import tensorflow as tf

from tfeff.data.dataset_options import finalize
from tfeff.data.example_order import epoch_rows
from tfeff.data.finetuning.examples import (
    Question,
    SpanExamples,
    check_questions,
)
from tfeff.data.finetuning.packing import num_separators, pair_frame
from tfeff.data.finetuning.windows import PAIR_FRAME, window_inputs, windows_of
from tfeff.data.text.offset_tokenizer import encode_with_offsets
from tfeff.data.text.tokenizers import FRAME_NAMES, special_token_ids
from tfeff.utils.checks import check_integer

_WINDOWS_AT_ONCE = 4096  # They bound the memory beside the result.


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SpanFeatures:
    """Windows `[CLS] question [SEP] part of the passage [SEP]`, padded at the end.

    Attributes:
        token_ids: `[N, T]` int32.
        segment_ids: `[N, T]` int32, 1 for the passage and the `[SEP]` behind it; 0
            with RoBERTa's and XLM-RoBERTa's tokenizers, which put two `[SEP]` behind
            the question.
        padding_mask: `[N, T]` int32, 1 for real tokens.
        start_positions: `[N]` int32, where in the row the answer begins; 0, the
            position of `[CLS]`, if the window does not hold the whole answer.
        end_positions: `[N]` int32, its last token; 0 likewise.
        question_indices: `[N]` int32, the question of each window, in order.
        passage_positions: `[N]` int32, where in the row the passage begins.
        window_starts: `[N]` int32, the token of the passage that is there.
        offsets: for each question `[P, 2]` int32, (start, end) of each token of the
            whole passage, in characters.
        questions: the questions.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray
    padding_mask: np.ndarray
    start_positions: np.ndarray
    end_positions: np.ndarray
    question_indices: np.ndarray
    passage_positions: np.ndarray
    window_starts: np.ndarray
    offsets: tuple[np.ndarray, ...]
    questions: tuple[Question, ...]

    batches_by = "x.dataset(batch_size=16)"  # How batches of `x` are made.

    def __len__(self) -> int:
        return len(self.token_ids)

    def __repr__(self) -> str:
        return (
            f"<SpanFeatures of {len(self):,} windows: {len(self.questions):,} "
            f"questions, sequence_length={self.token_ids.shape[1]}>"
        )

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """The inputs of an encoder, by name."""
        return {
            "token_ids": self.token_ids,
            "segment_ids": self.segment_ids,
            "padding_mask": self.padding_mask,
        }

    def dataset(
        self,
        batch_size: int,
        seed: int = 0,
        *,
        shuffle: bool = True,
        repeat: bool = True,
    ) -> tf.data.Dataset:
        """Batches of windows to train `tfeff.tasks.SpanQA` on, or to evaluate.

        The order is a function of `(seed, epoch)` alone, a permutation of the windows.
        Epochs follow one another without a gap. All batches are of one size: where an
        epoch ends without another one, the last is filled up with windows of weight
        0: with `shuffle=False` and `repeat=False`, predictions are the first N of
        `model.predict`. A data set that is read again begins again, with the order of
        the first epoch.

        Args:
            batch_size: B, windows in a batch.
            seed: chooses the orders, in [−2⁶³, 2⁶³).
            shuffle: False gives the windows in their order.
            repeat: False gives one epoch.

        Returns:
            A `tf.data.Dataset` of `(inputs, labels, weights)` with static shapes:
            `inputs` as above, `[B, T]`; `labels` a dictionary of `start` and `end`,
            `[B]` int32; `weights` one of the same keys, `[B]` float32, 1 or 0.

        Raises:
            ValueError: if an argument is out of range.
            TypeError: if an argument has the wrong type.
        """
        untold = sum(bool(q.answers) and not q.spans for q in self.questions)
        if shuffle and untold:
            warnings.warn(
                f"{untold} of {len(self.questions)} questions have answers and no "
                "spans, where they stand in the passage: trained on, they have none",
                stacklevel=2,
            )
        labels = {"start": self.start_positions, "end": self.end_positions}
        columns = tf.nest.map_structure(tf.constant, (self.inputs, labels))

        def batch(rows):
            weight = tf.cast(rows < len(self), tf.float32)
            rows = tf.minimum(rows, len(self) - 1)
            found = tf.nest.map_structure(lambda x: tf.gather(x, rows), columns)
            return *found, {"start": weight, "end": weight}

        rows = epoch_rows(len(self), batch_size, seed, shuffle=shuffle, repeat=repeat)
        return finalize(rows.map(batch, num_parallel_calls=tf.data.AUTOTUNE))

    def window_offsets(self, row: int) -> np.ndarray:
        """The offsets of the passage's tokens in a row, from `passage_positions`."""
        # Nothing but the last [SEP] is behind the passage.
        count = self.padding_mask[row].sum() - self.passage_positions[row] - 1
        first = self.window_starts[row]
        return self.offsets[self.question_indices[row]][first : first + count]


def make_span_features(
    questions: SpanExamples | Sequence[Question],
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
    stride: int = 128,
) -> SpanFeatures:
    """Cuts passages into windows that overlap, each with its question before it.

    With room for r tokens of the passage, window w begins at its token
    w · min(stride, r), up to the first window that reaches the passage's end. The
    answer's tokens are all those that share a character with it; of several answers,
    a window's target is the first that lies in it.

    Args:
        questions: the questions, as from `read_squad`, `read_mrqa` or a list.
        tokenizer: a SentencePiece or WordPiece tokenizer of KerasHub, or a
            `tfeff.data.RobertaTokenizer`.
        sequence_length: the length T of all rows.
        stride: tokens from one window's begin to the next one's.

    Returns:
        The windows, those of one question one after another.

    Raises:
        ValueError: if there are no questions, `sequence_length` leaves no room for the
            passage behind a question, a passage has no text, or the tokenizer pads,
            truncates, adds marks by itself or gives strings.
        TypeError: if they are none, or the tokenizer is of another kind, or has no
            `[CLS]`, `[SEP]` or padding.

    Example:
    ```python
    import tfeff

    question = tfeff.data.Question("q1", "Who?", "Ada wrote it.", spans=((0, 3),))
    tokenizer = tfeff.data.train_tokenizer(["Who wrote it? Ada."], 18)
    features = tfeff.data.make_span_features([question], tokenizer, sequence_length=40)
    start, end = features.start_positions[0], features.end_positions[0]
    first = features.passage_positions[0]
    offsets = features.window_offsets(0)
    assert offsets[start - first][0] == 0 and offsets[end - first][1] == 3
    ```

    Reference:
        Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", 2019, section 4.2.
    """
    special_token_ids(tokenizer, FRAME_NAMES)
    # The special tokens of a row, and one of the passage.
    frame = pair_frame(tokenizer) + 1
    sequence_length = check_integer("sequence_length", sequence_length, frame)
    stride = check_integer("stride", stride)
    questions = check_questions(questions)
    distinct = dict.fromkeys(question.passage for question in questions)
    passages = {passage: index for index, passage in enumerate(distinct)}
    texts = [*passages, *(question.question for question in questions)]
    ids, offsets = zip(*encode_with_offsets(tokenizer, texts))
    passage_ids, question_ids = ids[: len(passages)], ids[len(passages) :]
    passage_of = np.array([passages[question.passage] for question in questions])
    has_text = [(pairs[:, 0] < pairs[:, 1]).any() for pairs in offsets]
    for question, passage, ids in zip(questions, passage_of, question_ids):
        if not has_text[passage]:
            raise ValueError(
                "`questions` must have passages with text. Received: question "
                f"{question.id!r} with {question.passage[:60]!r}"
            )
        if (needed := len(ids) + frame) > sequence_length:
            raise ValueError(
                f"`sequence_length` must be at least {needed} for "
                f"question {question.id!r} of {len(ids)} tokens. Received: "
                f"{sequence_length=}"
            )
    more = [tokenizer.sep_token_id] * (num_separators(tokenizer) - 1)
    question_ids = [np.append(ids, more).astype(np.int32) for ids in question_ids]
    question_sizes, passage_sizes = (
        np.array([len(row) for row in rows], np.int64)
        for rows in (question_ids, passage_ids)
    )
    begins = (np.cumsum(passage_sizes) - passage_sizes)[passage_of]
    passage_ids = np.concatenate(passage_ids)
    with tf.device("CPU"):
        room = sequence_length - PAIR_FRAME - question_sizes
        windows = windows_of(room, passage_sizes[passage_of], stride)
        index, first, size = (tensor.numpy() for tensor in windows)
        asked = tf.RaggedTensor.from_row_lengths(
            np.concatenate(question_ids), question_sizes
        )
        inputs = {
            name: np.empty((len(index), sequence_length), np.int32)
            for name in ("token_ids", "segment_ids", "padding_mask")
        }
        for row in range(0, len(index), _WINDOWS_AT_ONCE):
            part = slice(row, row + _WINDOWS_AT_ONCE)
            rows = window_inputs(
                tf.gather(asked, index[part]),
                passage_ids,
                begins[index[part]] + first[part],
                size[part],
                tokenizer,
                sequence_length,
            )
            for name, array in inputs.items():
                array[part] = rows[name]
    positions = question_sizes[index] + 2
    offsets = tuple(offsets[passage] for passage in passage_of)
    targets = _targets(questions, offsets, index, first, size)
    targets = np.where(targets < 0, 0, targets + positions[:, np.newaxis])
    return SpanFeatures(
        **inputs,
        start_positions=targets[:, 0].astype(np.int32),
        end_positions=targets[:, 1].astype(np.int32),
        question_indices=index.astype(np.int32),
        passage_positions=positions.astype(np.int32),
        window_starts=first.astype(np.int32),
        offsets=offsets,
        questions=questions,
    )


def token_span(offsets: np.ndarray, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last token that share a character with `[start, end)`."""
    visible = offsets[:, 0] < offsets[:, 1]
    shared = visible & (offsets[:, 0] < end) & (offsets[:, 1] > start)
    (indices,) = shared.nonzero()
    return (int(indices[0]), int(indices[-1])) if len(indices) else None


def _targets(questions, offsets, index, first, size):
    """`[W, 2]`, the first answer that lies in a window, from its begin; else -1."""
    answers = [
        [token_span(pairs, *span) for span in question.spans]
        for question, pairs in zip(questions, offsets)
    ]
    targets = np.full((len(index), 2), -1)
    for row, (question, begin, count) in enumerate(zip(index, first, size)):
        for answer in answers[question]:
            if answer and begin <= answer[0] and answer[1] < begin + count:
                targets[row] = np.subtract(answer, begin)
                break
    return targets
