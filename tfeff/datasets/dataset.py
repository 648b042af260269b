"""A data set as one object: its reader, metrics and file of predictions."""

import dataclasses
import os
from collections.abc import Callable
from typing import Any

from tfeff.data.finetuning.examples import ChoiceExamples, SpanExamples, TextExamples
from tfeff.datasets.baselines import baseline_predictions
from tfeff.datasets.checks import (
    check_classes,
    check_different,
    check_names,
    check_range,
    check_ratings,
    check_same_number,
)
from tfeff.datasets.kinds import KINDS, AnyExamples, Predictions
from tfeff.datasets.metrics import METRICS, OF_RATINGS
from tfeff.datasets.submissions import new_file, predicted_texts, write_tsv
from tfeff.storage.arguments import ADD, READ, paths
from tfeff.utils.checks import (
    check_best_metric,
    check_bool,
    check_callable,
    check_choice,
    check_scores,
)
from tfeff.utils.near_misses import near_miss
from tfeff.utils.paths import check_path, is_name

# Each example has one label or rating.
_LABELLED = (TextExamples, ChoiceExamples)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Dataset:
    """A data set for fine-tuning: its splits, reader, metrics and submission.

    Attributes:
        name: the name that it is registered under.
        reader: `reader(split, folder, **options)`, a function that returns the
            examples of one split.
        options: the keyword arguments that `reader` takes, such as `"skip_malformed"`.
        kind: the class of its examples: `tfeff.data.TextExamples`, `ChoiceExamples`,
            `SpanExamples` or `TokenExamples`.
        label_names: all labels, in the order of their ids; None for ratings and for
            spans.
        ratings: the least and the highest rating that can be predicted; None for any.
        splits: the published splits.
        more_tests: whether `reader` reads other files, too, as splits whose names begin
            with "test", such as "test_new".
        dev_splits: the splits that models are evaluated on; the best model is chosen
            on the first one.
        metric_names: the official metrics; the best model is the one with the highest
            value of the first.
        scorer: `scorer(examples, predictions)`, a function that returns the metrics by
            name; of an error, to choose by, its negative under another name. None if
            they are all among `tfeff.datasets.accuracy`, `f1`, `macro_f1`,
            `matthews_correlation`, `pearson` and `spearman`; not for spans.
        writer: `writer(split, examples, predictions, folder)`, a function that writes
            predictions in the benchmark's format and returns the paths. None for one
            file `name.tsv` in GLUE's format; not for spans.

    Raises:
        TypeError, ValueError: if an attribute has another type or value, the first of
            `metric_names` is that of an error or a loss, or there is no `scorer` and a
            metric is unknown or does not fit `label_names`.

    Example:
    ```python
    import tfeff

    def read(split, folder):
        return tfeff.data.TextExamples(
            first=("It rains.", "It shines."),
            second=None,
            labels=[1, 0],
            label_names=("dry", "wet"),
            ids=("a", "b"),
        )

    weather = tfeff.datasets.Dataset(
        name="Weather", reader=read, label_names=("dry", "wet")
    )
    dev = weather.read("dev", ".")
    assert weather.metrics(dev, [1, 1]) == {"accuracy": 0.5}
    (path,) = weather.write_predictions("dev", dev, [1, 1], "submission")
    with open(path) as file:
        assert file.read() == "index\\tprediction\\na\\twet\\nb\\twet\\n"
    ```
    """

    name: str
    reader: Callable
    options: tuple[str, ...] = ()
    kind: type[Any] = TextExamples
    label_names: tuple[str, ...] | None = None
    ratings: tuple[float, float] | None = None
    splits: tuple[str, ...] = ("train", "dev", "test")
    more_tests: bool = False
    dev_splits: tuple[str, ...] = ("dev",)
    metric_names: tuple[str, ...] = ("accuracy",)
    scorer: Callable | None = None
    writer: Callable | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise TypeError(
                f"`name` must be a string. Received: name={self.name!r:.80}"
            )
        for field in ("options", "splits", "dev_splits", "metric_names", "label_names"):
            value = getattr(self, field)
            if field != "label_names" or value is not None:
                object.__setattr__(self, field, check_names(field, value))
        check_bool("more_tests", self.more_tests)
        for field in ("reader", "scorer", "writer"):
            value = getattr(self, field)
            if field == "reader" or value is not None:
                check_callable(field, value)
        if self.kind not in KINDS:
            known = [kind.__name__ for kind in KINDS]
            raise ValueError(
                f"`kind` must be one of {known}. Received: {self.kind!r:.80}"
            )
        if not self.dev_splits or not set(self.dev_splits) <= set(self.splits):
            raise ValueError(
                "`dev_splits` must be among `splits`, at least one. Received: "
                f"splits={self.splits}, dev_splits={self.dev_splits}"
            )
        if not self.metric_names:
            raise ValueError("`metric_names` must name a metric. Received: none")
        check_best_metric("metric_names", self.metric_names[0])
        if self.kind not in _LABELLED and None in (self.scorer, self.writer):
            raise ValueError(
                "`scorer` and `writer` must be given for spans (`span_dataset`) and "
                "words (`conll_dataset`). "
                f"Received: scorer={self.scorer!r}, writer={self.writer!r}"
            )
        if self.ratings is not None:
            if self.kind is not TextExamples or self.label_names is not None:
                raise ValueError(
                    "`ratings` must be left out but for texts without `label_names`. "
                    f"Received: ratings={self.ratings!r:.80}, "
                    f"kind={self.kind.__name__}, "
                    f"label_names={self.label_names}"
                )
            object.__setattr__(self, "ratings", check_range("ratings", self.ratings))
        if self.scorer is None:
            for name in self.metric_names:
                check_choice("metric_names", name, METRICS)
                self._check_metric(name)

    def _check_metric(self, name):
        """Raises unless a metric that is no scorer's fits the labels."""
        labels = self.label_names
        if labels is None and name not in OF_RATINGS:
            expected = f"of {list(OF_RATINGS)} for ratings, without `label_names`"
        elif name == "f1" and labels is not None and len(labels) > 2:
            expected = (
                "of ['accuracy', 'macro_f1', 'matthews_correlation'], or a `scorer`'s, "
                "for more than two `label_names`: f1 is that of the second of two"
            )
        else:
            return
        raise ValueError(
            f"`metric_names` must be {expected}. Received: "
            f"metric_names={self.metric_names}, label_names={labels}"
        )

    @paths(folder=READ)
    def read(
        self, split: str, folder: str | os.PathLike, **options: Any
    ) -> AnyExamples:
        """Reads one split.

        Args:
            split: one of `splits`, or with `more_tests` another name that begins with
                "test".
            folder: the folder of the published files; for spans also one file.
            **options: arguments of `reader`, of those in `options`.

        Returns:
            The examples, of the class `kind`.

        Raises:
            ValueError: if there is no such split or file, or a file is malformed.
            TypeError: if there is no such option.
        """
        self._check_split(split)
        folder = check_path("folder", folder)
        for name, value in options.items():
            if name not in self.options:
                raise TypeError(
                    f"{self.name} is read with the options {list(self.options)}. "
                    f"Received: {name}={value!r}.{near_miss(name, self.options)}"
                )
        examples = self.reader(split, folder, **options)
        if not isinstance(examples, self.kind):
            raise TypeError(
                f"`reader` must return `{self.kind.__name__}`. Received: "
                f"{examples!r:.80}"
            )
        return examples

    def metrics(
        self, examples: AnyExamples, predictions: Predictions
    ) -> dict[str, float]:
        """The official metrics of predictions for examples with labels.

        Args:
            examples: as from `read`.
            predictions: `[N]`, integers, the index in `label_names` that is predicted
                for each example; or `[N]`, ratings; for spans, answers as from
                `tfeff.tasks.SpanQA.answers`, or a text for each question's id; for
                words, `[W]` integers for each sentence.

        Returns:
            The metrics by name, between -1 and 1, in the order of `metric_names`; NaN
            where one is undefined. Of SQuAD 2.0, answers give the F1 and the exact
            matches each with its own best threshold (`best_f1` and `best_exact` of the
            official script), and as `no_answer_threshold` the probability that is the
            best one for F1; texts, which have no probabilities, give both as they are.

        Raises:
            ValueError: if there are no labels, the lengths differ, or a prediction is
                not among the labels, not finite or missing.
            TypeError: if the examples are not of `kind`, or the predictions have the
                wrong type for it.
        """
        self._check_examples(examples)
        labels: Any = examples.labels
        predicted: Any = predictions
        if self.kind in _LABELLED:
            if labels is None:
                raise ValueError(
                    "`examples` must have labels. Received: none, as in test splits"
                )
            self._check_labels("labels", labels)
            predicted = self._check_labels("predictions", predictions)
            check_same_number(labels, predicted)
        if self.scorer is None:
            return {
                name: METRICS[name](labels, predicted) for name in self.metric_names
            }
        scores = check_scores("scorer", self.scorer(examples, predicted))
        if not scores or tuple(scores) != self.metric_names[: len(scores)]:
            raise ValueError(
                f"`scorer` must return the metrics {list(self.metric_names)}. "
                f"Received: {list(scores)}"
            )
        return scores

    def clip(self, predictions: Predictions) -> Predictions:
        """Ratings clipped to `ratings`, as they are written; others as they are.

        Args:
            predictions: as for `metrics`.

        Raises:
            TypeError, ValueError: if what is clipped are not finite numbers `[N]`.
        """
        if self.ratings is None:
            return predictions
        given: Any = predictions
        return check_ratings("predictions", given).clip(*self.ratings)

    def baseline(self, train: AnyExamples, examples: AnyExamples) -> dict[str, float]:
        """The official metrics of what training labels alone predict.

        Args:
            train: examples with labels.
            examples: those to score, with labels.

        Returns:
            The metrics of `tfeff.datasets.baseline_predictions` by name; NaN where one
            is undefined, as the correlation of constant ratings is.

        Raises:
            ValueError: if there are no labels.
            TypeError: if the examples are not of `kind`.
        """
        self._check_examples(train, "train")
        self._check_examples(examples)
        return self.metrics(examples, baseline_predictions(train, examples))

    @paths(folder=ADD)
    def write_predictions(
        self,
        split: str,
        examples: AnyExamples,
        predictions: Predictions,
        folder: str | os.PathLike,
    ) -> tuple[str, ...]:
        """Writes predictions in the benchmark's format; overwrites no file.

        Ratings are clipped to `ratings` before.

        Args:
            split: the split of the examples.
            examples: its examples, with or without labels.
            predictions: as for `metrics`.
            folder: the folder of the files; it is created if it does not exist.

        Returns:
            The paths of the files.

        Raises:
            ValueError: if there is no such split, the lengths differ, ids repeat, a
                prediction is not among the labels or not finite, or a file exists.
            TypeError: as for `metrics`.
        """
        self._check_split(split)
        self._check_examples(examples)
        folder = check_path("folder", folder)
        given: Any = examples
        predicted: Any = predictions
        if self.kind in _LABELLED:
            predicted = self._check_labels("predictions", self.clip(predictions))
            if len(predicted) == 0 or len(predicted) != len(given):
                raise ValueError(
                    "`examples` and `predictions` must be equally many, at least 1. "
                    f"Received: {len(given)} and {len(predicted)}"
                )
            check_different(
                "ids", given.ids, "differ (of a table, the column index or id)"
            )
        if self.writer is not None:
            return tuple(self.writer(split, given, predicted, folder))
        path = new_file(folder, f"{self.name}.tsv")
        return (write_tsv(predicted_texts(given, predicted), path),)

    def _check_split(self, split):
        """Raises unless it is one of `splits`, or the name of a further test."""
        # An array would be compared to each of the splits, element by element.
        is_known = isinstance(split, str) and split in self.splits
        is_new = self.more_tests and is_name(split) and split.startswith("test")
        if not (is_known or is_new):
            new = ", or a new file's name that begins with 'test'" * self.more_tests
            raise ValueError(
                f"`split` must be one of {list(self.splits)}{new}. Received: "
                f"split={split!r:.80}.{near_miss(split, self.splits)}"
            )

    def _check_examples(self, examples, name="examples"):
        if not isinstance(examples, self.kind):
            raise TypeError(
                f"`{name}` must be `{self.kind.__name__}` of {self.name}. "
                f"Received: {examples!r:.80}"
            )
        if self.kind is not SpanExamples:
            names = examples.label_names and tuple(examples.label_names)
            if names != self.label_names:
                raise ValueError(
                    f"`{name}` must be of {self.name}, with the labels "
                    f"{self.label_names}. Received: {names}"
                )

    def _check_labels(self, name, values):
        if self.label_names is None:
            return check_ratings(name, values)
        return check_classes(name, values, self.label_names)
