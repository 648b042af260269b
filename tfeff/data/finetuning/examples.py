"""Examples of tasks, as readers return them, and answers to them."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from tfeff.data.integers import check_int32
from tfeff.utils.checks import check_integer, check_iterable


@dataclasses.dataclass(frozen=True, eq=False)
class TextExamples:
    """Texts, or pairs of texts, to classify or to rate.

    Attributes:
        first: the texts, or the first ones of the pairs.
        second: the second ones; None where there are no pairs.
        labels: `[N]`, int32 indices of `label_names`, or float32 ratings; None where
            the file has none. It cannot be written to.
        label_names: as in the benchmark's files; None for ratings.
        ids: what the benchmark calls each example in predictions.
        skipped: what was wrong with each line that was left out.

    Raises:
        ValueError: if the columns are not equally long, or a label is no index of
            `label_names`.
        TypeError: if labels are no integers.

    Example: see `text_features`.
    """

    first: tuple[str, ...]
    second: tuple[str, ...] | None
    labels: np.ndarray | None
    label_names: tuple[str, ...] | None
    ids: tuple
    skipped: tuple[str, ...] = ()

    def __post_init__(self):
        _check_columns(self, "first", "second", "labels", "ids")

    def __len__(self) -> int:
        return len(self.first)

    def sample(self, count: int, seed: int = 0) -> "TextExamples":
        """So many of the examples, drawn at random, in their order.

        Raises:
            ValueError: if there are not so many, or `count` is below 1.
        """
        return _sample(self, count, seed)


@dataclasses.dataclass(frozen=True, eq=False)
class ChoiceExamples:
    """Questions about passages, each with options of which one is right.

    Attributes:
        passages: the passage of each question.
        questions: the questions; a "_" is a gap that the option fills.
        options: the options of each question, equally many for all.
        labels: `[N]` int32, the index of the right option; None where the files have
            none. It cannot be written to.
        label_names: `("A", "B", "C", "D")`.
        ids: `"high1.txt-0"` is the first question of the passage `high1.txt`.
        skipped: what was wrong with each question that was left out.

    Raises:
        ValueError: if the columns are not equally long, the questions have not
            equally many options, or a label is no index of `label_names`.
        TypeError: if labels are no integers.

    Example: see `read_race`.
    """

    passages: tuple[str, ...]
    questions: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    labels: np.ndarray | None
    label_names: tuple[str, ...]
    ids: tuple[str, ...]
    skipped: tuple[str, ...] = ()

    def __post_init__(self):
        _check_columns(self, "passages", "questions", "options", "labels", "ids")
        counts = {len(options) for options in self.options}
        if len(counts) > 1:
            raise ValueError(
                "`options` must be equally many for all questions. "
                f"Received: {sorted(counts)} of them"
            )

    def __len__(self) -> int:
        return len(self.questions)

    def sample(self, count: int, seed: int = 0) -> "ChoiceExamples":
        """So many of the examples, drawn at random, in their order.

        Raises:
            ValueError: if there are not so many, or `count` is below 1.
        """
        return _sample(self, count, seed)


@dataclasses.dataclass(frozen=True, eq=False)
class TokenExamples:
    """Sentences of words, each word with a label.

    Attributes:
        words: the words of each sentence.
        labels: for each sentence `[W]` int32, indices of `label_names`; None where the
            files have none. They cannot be written to.
        label_names: such as `("O", "B-PER", "I-PER")`.
        ids: what each sentence is called in predictions.
        skipped: what was wrong with each sentence that was left out.

    Raises:
        ValueError: if the columns are not equally long, a sentence has another number
            of labels than of words, or none, a word is empty, or a label is no index
            of `label_names`.
        TypeError: if labels are no integers.

    Example: see `token_features`.
    """

    words: tuple[tuple[str, ...], ...]
    labels: tuple[np.ndarray, ...] | None
    label_names: tuple[str, ...]
    ids: tuple[str, ...]
    skipped: tuple[str, ...] = ()

    def __post_init__(self):
        columns = {"words": self.words, "ids": self.ids}
        if self.labels is not None:
            labels = tuple(check_int32("labels", row) for row in self.labels)
            for row in labels:
                row.setflags(write=False)
            object.__setattr__(self, "labels", labels)
            columns["labels"] = labels
        _check_equally_long(columns)
        for index, sentence in enumerate(self.words):
            if not sentence or not all(sentence):
                raise ValueError(
                    "`words` must be sentences of at least one word, none of them "
                    f"empty. Received: {sentence!r} at {index}"
                )
            if self.labels is None:
                continue
            if len(self.labels[index]) != len(sentence):
                raise ValueError(
                    "`labels` must be one for each word. Received: "
                    f"{len(self.labels[index])} labels for the {len(sentence)} words "
                    f"of sentence {index}"
                )
            _check_indices(self.labels[index], self.label_names, f" of {index}")

    def __len__(self) -> int:
        return len(self.words)

    def sample(self, count: int, seed: int = 0) -> "TokenExamples":
        """So many of the sentences, drawn at random, in their order.

        Raises:
            ValueError: if there are not so many, or `count` is below 1.
        """
        return _sample(self, count, seed)


@dataclasses.dataclass(frozen=True, eq=False)
class SentenceExamples:
    """Texts to learn embeddings from, by contrast.

    Attributes:
        rows: a row an example, all of one size: `(text,)`, a text alone, which is its
            own partner; `(text, partner)`, a pair whose texts mean the same; or
            `(text, partner, negative, …)`, a triplet, or more, whose negatives mean
            something else.

    Raises:
        TypeError: if a row is no sequence of strings.
        ValueError: if there are no rows, they are not of one size, a text is empty, or
            a row has the same text twice.

    Example: see `sentence_features`.
    """

    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self):
        rows = []
        for index, row in enumerate(check_iterable("rows", self.rows, "rows of texts")):
            is_row = isinstance(row, Sequence) and not isinstance(row, str)
            if not is_row or not all(isinstance(text, str) for text in row):
                raise TypeError(
                    "`rows` must hold sequences of strings. "
                    f"Received: {row!r:.80} at {index}"
                )
            self._check_row(index, tuple(row), len(rows[0]) if rows else len(row))
            rows.append(tuple(row))
        if not rows:
            raise ValueError("`rows` must hold texts. Received: none")
        object.__setattr__(self, "rows", tuple(rows))

    @staticmethod
    def _check_row(index, row, size):
        if len(row) != size or not row:
            raise ValueError(
                f"`rows` must be of one size, {size or 'at least 1'}. "
                f"Received: {len(row)} texts at {index}"
            )
        for text in row:
            if not text.strip():
                raise ValueError(
                    f"`rows` must have no empty text. Received: {row!r:.80} at {index}"
                )
        if len(set(row)) < size:
            raise ValueError(
                "`rows` must have different texts: a text is a partner of itself where "
                f"it is given alone. Received: {row!r:.80} at {index}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def sample(self, count: int, seed: int = 0) -> "SentenceExamples":
        """So many of the examples, drawn at random, in their order.

        Raises:
            ValueError: if there are not so many, or `count` is below 1.
        """
        return _sample(self, count, seed)


@dataclasses.dataclass(frozen=True)
class Question:
    """A question that a span of a passage answers.

    Attributes:
        id: what the benchmark calls it.
        question: its text.
        passage: the text that holds the answer.
        answers: all texts that count as right; empty where there is no answer.
        spans: (start, end) of answers in the passage, in characters, end exclusive.

    Raises:
        ValueError: if a span is empty or not within the passage.

    Example: see `make_span_features`.
    """

    id: str
    question: str
    passage: str
    answers: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    def __post_init__(self):
        for start, end in self.spans:
            if not 0 <= start < end <= len(self.passage):
                raise ValueError(
                    f"`spans` must be within the {len(self.passage)} characters of the "
                    f"passage. Received: {(start, end)} of question {self.id!r}"
                )


@dataclasses.dataclass(frozen=True)
class SpanExamples:
    """Questions that spans of passages answer, as made by `tfeff.datasets`.

    Attributes:
        questions: in the order of the file.
        skipped: what was wrong with each question that was left out.

    Example: see `make_span_features`.
    """

    questions: tuple[Question, ...]
    skipped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.questions)


@dataclasses.dataclass(frozen=True)
class SpanAnswer:
    """The answer that a model gives.

    Attributes:
        id: of the question.
        text: the characters `start` to `end` of the passage; "" for no answer.
        start: its first character.
        end: the character behind it.
        score: of the best span, start logit + end logit.
        no_answer_probability: the softmax of that score and the one for no answer.

    Example: see `best_spans`.
    """

    id: str
    text: str
    start: int
    end: int
    score: float
    no_answer_probability: float


def check_questions(questions: SpanExamples | Sequence[Question]) -> tuple:
    """Returns the questions, at least one, or raises."""
    if isinstance(questions, SpanExamples):
        questions = questions.questions
    questions = tuple(check_iterable("questions", questions, "a list of `Question`s"))
    if not questions:
        raise ValueError("`questions` must hold questions. Received: none")
    for question in questions:
        if not isinstance(question, Question):
            raise TypeError(
                f"`questions` must be a list of `Question`s. Received: {question!r:.80}"
            )
    return questions


def _sample(examples, count, seed):
    total = len(examples)
    count = check_integer("count", count, 1, total)
    rows = np.sort(np.random.default_rng(seed).permutation(total)[:count])
    columns = {
        field.name: getattr(examples, field.name)
        for field in dataclasses.fields(examples)
        if field.name not in ("label_names", "skipped")
    }
    chosen = {
        name: column[rows]
        if isinstance(column, np.ndarray)
        else tuple(column[row] for row in rows)
        for name, column in columns.items()
        if column is not None
    }
    return dataclasses.replace(examples, **chosen)


def _check_columns(examples, *names):
    """Raises where columns do not fit each other; makes the labels read-only."""
    if examples.labels is not None:
        are_indices = examples.label_names is not None
        # A copy: the caller's stays as it is.
        labels = (
            check_int32("labels", examples.labels)
            if are_indices
            else np.array(examples.labels)
        )
        labels.setflags(write=False)
        object.__setattr__(examples, "labels", labels)
    columns = {name: getattr(examples, name) for name in names}
    _check_equally_long({name: c for name, c in columns.items() if c is not None})
    if examples.labels is not None and examples.label_names is not None:
        _check_indices(examples.labels, examples.label_names)


def _check_equally_long(columns):
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"Columns must be equally long. Received: {lengths}")


def _check_indices(labels, known, of=""):
    wrong = (labels < 0) | (labels >= len(known))
    if wrong.any():
        index = int(wrong.argmax())
        raise ValueError(
            f"`labels` must be from 0 to {len(known) - 1}, indices of {list(known)}. "
            f"Received: {labels[index]} at {index}{of}"
        )
