"""Examples of tasks, as readers return them, and answers to them."""

import dataclasses
import reprlib
import string
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from tfeff.data.finetuning.columns import (
    check_column,
    check_equally_long,
    check_label_names,
    check_rows,
    check_texts,
    label_column,
    rating_column,
)
from tfeff.utils.checks import (
    check_integer,
    check_seed,
    check_string,
    is_integer,
)

_S = TypeVar("_S", bound="_Sampled")
_SHORT = reprlib.Repr()
_SHORT.maxtuple, _SHORT.maxstring, _SHORT.maxother = 3, 40, 60


class _Sampled:
    """Examples of which samples can be drawn: the base of dataclasses of columns."""

    # How batches of `x` are made.
    batches_by = "tfeff.data.text_features(x, tokenizer, 128).dataset(16)"
    labels: Any = None
    # Whether labels are ratings, not classes.
    is_rated = False

    @property
    def is_labelled(self) -> bool:
        """Whether there are labels to train on, or to score by."""
        return self.labels is not None

    def contents(self) -> Iterable[tuple]:
        """What models read of each example: all but its label and its id."""
        raise NotImplementedError

    def __repr__(self) -> str:
        examples: Any = self  # A dataclass.
        columns = (
            f"{field.name}={_SHORT.repr(value)}"
            for field in dataclasses.fields(examples)
            if (value := getattr(self, field.name)) is not None
            and value is not field.default
            and len(value)
        )
        count = len(examples)
        return f"<{type(self).__name__} of {count:,}: {', '.join(columns)}>"

    def _set_ids(self):
        ids = self.ids
        if isinstance(ids, tuple) and not ids:
            ids = range(len(self))
        _set(self, ids=check_column("ids", ids, "ids"))

    def sample(self: _S, count: int, seed: int = 0) -> _S:
        """So many of the examples, drawn at random, in their order.

        Raises:
            ValueError: if there are not so many, `count` is below 1, or `seed` below 0.
            TypeError: if one of them is no integer.
        """
        total = len(self)  # type: ignore[arg-type]
        count = check_integer("count", count, 1, total)
        seed = check_seed(seed)
        rows = np.sort(np.random.default_rng(seed).permutation(total)[:count])
        return take(self, rows)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TextExamples(_Sampled):
    """Texts, or pairs of texts, to classify or to rate.

    Columns may be lists, arrays or columns of a data frame; they are kept as tuples.

    Attributes:
        first: the texts, or the first ones of the pairs.
        second: the second ones; None where there are no pairs.
        labels: `[N]`, int32 indices of `label_names`, or float32 ratings; None where
            there are none, as of texts to predict. It cannot be written to.
        label_names: as in the benchmark's files; None for ratings.
        ids: what the benchmark calls each example in predictions; by default numbers
            from 0.
        skipped: what was wrong with each line that was left out.

    Raises:
        ValueError: if the columns are not equally long, a label is no index of
            `label_names`, a rating is not finite, names of labels repeat, or a text
            has half a character (a lone surrogate).
        TypeError: if a column is no sequence, such as a string or a set, a text is no
            string, or labels are no integers, ratings no numbers.

    Example: see `text_features`.
    """

    first: tuple[str, ...]
    second: tuple[str, ...] | None = None
    labels: np.ndarray | None = None
    label_names: tuple[str, ...] | None = None
    ids: tuple = ()
    skipped: tuple[str, ...] = ()

    def __post_init__(self):
        _set(
            self,
            first=check_texts("first", self.first),
            second=None if self.second is None else check_texts("second", self.second),
            skipped=check_texts("skipped", self.skipped),
        )
        if self.label_names is not None:
            _set(self, label_names=check_label_names(self.label_names))
        self._set_ids()
        if self.labels is not None:
            labels = (
                rating_column(self.labels)
                if self.is_rated
                else label_column(self.labels, self.label_names)
            )
            _set(self, labels=labels)
        check_equally_long(
            first=self.first, second=self.second, labels=self.labels, ids=self.ids
        )

    def __len__(self) -> int:
        return len(self.first)

    @property
    def is_rated(self) -> bool:  # type: ignore[override]
        """Whether labels are ratings, which have no names."""
        return self.label_names is None

    def contents(self) -> Iterable[tuple]:
        return zip(self.first, self.second or self.first)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class ChoiceExamples(_Sampled):
    """Questions about passages, each with options of which one is right.

    Columns may be lists, arrays or columns of a data frame; they are kept as tuples.

    Attributes:
        passages: the passage of each question.
        questions: the questions; a "_" is a gap that the option fills.
        options: the options of each question, equally many for all.
        labels: `[N]` int32, the index of the right option; None where there are none,
            as of questions to predict. It cannot be written to.
        label_names: what the options are called; by default `("A", "B", …)`.
        ids: what each question is called in predictions; by default numbers from 0.
        skipped: what was wrong with each question that was left out.

    Raises:
        ValueError: if the columns are not equally long, the questions do not have
            equally many options, at least one, a label is no index of `label_names` and
            of the options, names of labels repeat, or a text has half a character.
        TypeError: if a column or the options of a question are no sequence, such as a
            string or a set, a text is no string, or labels are no integers.

    Example: see `read_race`.
    """

    passages: tuple[str, ...]
    questions: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    labels: np.ndarray | None = None
    label_names: tuple[str, ...] = ()
    ids: tuple = ()
    skipped: tuple[str, ...] = ()

    def __post_init__(self):
        _set(
            self,
            passages=check_texts("passages", self.passages),
            questions=check_texts("questions", self.questions),
            options=check_rows("options", self.options),
            skipped=check_texts("skipped", self.skipped),
        )
        self._set_ids()
        counts = {len(options) for options in self.options}
        if len(counts) > 1 or 0 in counts:
            raise ValueError(
                "`options` must be equally many for all questions, at least 1. "
                f"Received: {sorted(counts)} of them"
            )
        names: Any = self.label_names
        if isinstance(names, tuple) and not names:
            if max(counts, default=1) > len(string.ascii_uppercase):
                raise ValueError(
                    "`label_names` must be given for more than 26 options. "
                    f"Received: {max(counts)} options"
                )
            names = tuple(string.ascii_uppercase[: max(counts, default=1)])
        _set(self, label_names=check_label_names(names))
        if max(counts, default=0) > len(self.label_names):
            raise ValueError(
                "`label_names` must name all options. Received: label_names="
                f"{self.label_names}, for {max(counts)} options"
            )
        if self.labels is not None:
            known = self.label_names[: max(counts, default=None)]
            _set(self, labels=label_column(self.labels, known))
        check_equally_long(
            passages=self.passages,
            questions=self.questions,
            options=self.options,
            labels=self.labels,
            ids=self.ids,
        )

    def __len__(self) -> int:
        return len(self.questions)

    def contents(self) -> Iterable[tuple]:
        return zip(self.passages, self.questions, self.options)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TokenExamples(_Sampled):
    """Sentences of words, each word with a label.

    Columns may be lists, arrays or columns of a data frame; they are kept as tuples.

    Attributes:
        words: the words of each sentence.
        labels: for each sentence `[W]` int32, indices of `label_names`; None where
            there are none, as of sentences to predict. They cannot be written to.
        label_names: such as `("O", "B-PER", "I-PER")`; it may be left out where there
            are no labels.
        ids: what each sentence is called in predictions; by default numbers from 0.
        skipped: what was wrong with each sentence that was left out.

    Raises:
        ValueError: if the columns are not equally long, a sentence has another number
            of labels than of words, or none, a word is empty or has half a character, a
            label is no index of `label_names`, or names of labels repeat.
        TypeError: if a column or a sentence is no sequence, such as a string or a set,
            a word is no string, or labels are no integers.

    Example: see `token_features`.
    """

    words: tuple[tuple[str, ...], ...]
    labels: tuple[np.ndarray, ...] | None = None
    label_names: tuple[str, ...] | None = None
    ids: tuple = ()
    skipped: tuple[str, ...] = ()

    def __post_init__(self):
        _set(
            self,
            words=check_rows("words", self.words),
            skipped=check_texts("skipped", self.skipped),
        )
        self._set_ids()
        if self.label_names is not None or self.labels is not None:
            _set(self, label_names=check_label_names(self.label_names))
        if self.labels is not None:
            labels = tuple(
                label_column(row, self.label_names, f" of {index}")
                for index, row in enumerate(
                    check_column("labels", self.labels, "labels of sentences")
                )
            )
            _set(self, labels=labels)
        check_equally_long(words=self.words, labels=self.labels, ids=self.ids)
        for index, sentence in enumerate(self.words):
            if not sentence or not all(sentence):
                raise ValueError(
                    "`words` must be sentences of at least one word, none of them "
                    f"empty. Received: {sentence!r} at {index}"
                )
            if self.labels is not None and len(self.labels[index]) != len(sentence):
                raise ValueError(
                    "`labels` must be one for each word. Received: "
                    f"{len(self.labels[index])} labels for the {len(sentence)} words "
                    f"of sentence {index}"
                )

    def __len__(self) -> int:
        return len(self.words)

    def contents(self) -> Iterable[tuple]:
        return self.words


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class SentenceExamples(_Sampled):
    """Texts to learn embeddings from, by contrast.

    Attributes:
        rows: a row an example, all of one size: `(text,)`, a text alone, which is its
            own partner; `(text, partner)`, a pair whose texts mean the same; or
            `(text, partner, negative, …)`, a triplet, or more, whose negatives mean
            something else.

    Raises:
        TypeError: if a row is no sequence of strings.
        ValueError: if there are no rows, they are not of one size, a text is empty or
            has half a character, or a row has the same text twice.

    Example: see `sentence_features`.
    """

    rows: tuple[tuple[str, ...], ...]

    def __post_init__(self):
        rows = check_rows("rows", self.rows)
        if not rows:
            raise ValueError("`rows` must hold texts. Received: none")
        for index, row in enumerate(rows):
            self._check_row(index, row, len(rows[0]))
        _set(self, rows=rows)

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

    def contents(self) -> Iterable[tuple]:
        return self.rows


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
        ValueError: if a span is empty or not within the passage, or a text has half a
            character.
        TypeError: if a text is no string, answers are no sequence of strings, such as a
            string alone, or spans no pairs of integers.

    Example: see `make_span_features`.
    """

    id: str
    question: str
    passage: str
    answers: tuple[str, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    def __post_init__(self):
        for name in ("id", "question", "passage"):
            check_string(name, getattr(self, name))
        spans = tuple(map(_check_span, check_column("spans", self.spans, "pairs")))
        _set(self, answers=check_texts("answers", self.answers), spans=spans)
        for start, end in spans:
            if not 0 <= start < end <= len(self.passage):
                raise ValueError(
                    f"`spans` must be within the {len(self.passage)} characters of "
                    f"`passage`. Received: {(start, end)} of question {self.id!r}"
                )


@dataclasses.dataclass(frozen=True, repr=False)
class SpanExamples(_Sampled):
    """Questions that spans of passages answer, as made by `tfeff.datasets`.

    Attributes:
        questions: in the order of the file.
        skipped: what was wrong with each question that was left out.
        mismatched: those of the left out questions that can be predicted: an answer
            does not stand at its offset, and has no span.

    Raises:
        TypeError: if `questions` or `mismatched` is no sequence of `Question`s.

    Example: see `make_span_features`.
    """

    questions: tuple[Question, ...]
    skipped: tuple[str, ...] = ()
    mismatched: tuple[Question, ...] = ()

    def __post_init__(self):
        for name in ("questions", "mismatched"):
            questions = check_column(name, getattr(self, name), "`Question`s")
            for index, question in enumerate(questions):
                if not isinstance(question, Question):
                    raise TypeError(
                        f"`{name}` must be a sequence of `Question`s. "
                        f"Received: {question!r:.80} at {index}"
                    )
            _set(self, **{name: questions})
        _set(self, skipped=check_texts("skipped", self.skipped))

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def is_labelled(self) -> bool:
        """Whether there are answers to train on, or to score by."""
        return any(question.answers for question in self.questions)

    def contents(self) -> Iterable[tuple]:
        return [(question.question, question.passage) for question in self.questions]


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
    given: Any = questions
    examples = given if isinstance(given, SpanExamples) else SpanExamples(given)
    if not examples.questions:
        raise ValueError("`questions` must hold questions. Received: none")
    return examples.questions


def _set(examples, **columns):
    """Gives an example of a frozen class other values."""
    for name, column in columns.items():
        object.__setattr__(examples, name, column)


def _check_span(span):
    pair = check_column("spans", span, "pairs of integers")
    if len(pair) != 2 or not all(map(is_integer, pair)):
        raise TypeError(
            f"`spans` must be pairs of integers, start and end. Received: {span!r:.80}"
        )
    return int(pair[0]), int(pair[1])


def take(examples, rows):
    """The examples of these numbers."""
    columns = {
        field.name: getattr(examples, field.name)
        for field in dataclasses.fields(examples)
        if field.name not in ("label_names", "skipped", "mismatched")
    }
    found = {
        name: tuple(column[row] for row in rows)
        for name, column in columns.items()
        if column is not None
    }
    return dataclasses.replace(examples, **found)
