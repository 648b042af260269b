"""A part of a task's data set: examples and rows, and what models predict of them."""

import dataclasses
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import tfeff
from tfeff.recipes.answer_scores import score_answers, score_served
from tfeff.recipes.distill_settings import DistillSettings
from tfeff.recipes.run_exports import export_options
from tfeff.recipes.task_scores import task_scores


def predict(model, rows, pad_to_longest):
    """The class, rating or option of each example, or the classes of its words.

    None where the model diverged.
    """
    if isinstance(model, tfeff.tasks.TokenClassifier):
        finite = tfeff.training.is_finite(model)
        return model.labels(rows, 32, pad_to_longest) if finite else None
    outputs = model.predicted(rows, 8 if rows.num_choices else 32, pad_to_longest)
    if not np.isfinite(outputs).all():
        return None
    return outputs if outputs.ndim == 1 else outputs.argmax(-1)


def encoder_batches(rows, sequence_length, batch_size, **options):
    """Batches as the encoder reads them, each option of a question as a row."""

    def flat(inputs, *_):
        shape = [-1, sequence_length]
        return ({name: tf.reshape(x, shape) for name, x in inputs.items()},)

    return rows.dataset(batch_size, **options).map(flat)


@dataclasses.dataclass(frozen=True)
class TaskPart:
    """A part of a data set: its examples, and as rows of tokens.

    Attributes:
        dataset: the `Dataset`.
        examples: the examples.
        rows: `TextFeatures`, `SpanFeatures` of questions with spans, or `TokenFeatures`
            of labelled words.
        settings: the `DistillSettings`.
    """

    dataset: tfeff.datasets.Dataset
    examples: Any
    rows: Any
    settings: DistillSettings

    @property
    def has_spans(self) -> bool:
        """Whether spans answer questions."""
        return isinstance(self.examples, tfeff.data.SpanExamples)

    def encoder_batches(self, batch_size: int, **options) -> tf.data.Dataset:
        """Batches as an encoder reads them, each option of a question as a row."""
        if isinstance(self.examples, tfeff.data.TextExamples):
            return self.rows.dataset(batch_size, **options)
        length = self.settings.sequence_length
        return encoder_batches(self.rows, length, batch_size, **options)

    def score(self, model: keras.Model) -> dict[str, float]:
        """The scores of a model; undefined where it has diverged."""
        if self.has_spans:
            longest = self.settings.max_answer_tokens
            return score_answers(model, self.dataset, self.rows, longest)[0]
        predictions = predict(model, self.rows, pad_to_longest=False)
        return task_scores(self.dataset, self.examples, predictions)

    def delivered(
        self, model: keras.Model, known: dict[str, float] | None = None
    ) -> tuple[dict[str, float], dict]:
        """The scores of a model as it is served, and the options of its export.

        These are those of `tfeff.export.save_for_serving`, but for the length. `known`
        are those of `score`, which are the same but for spans.
        """
        if not self.has_spans:
            return known or self.score(model), export_options(self.examples)
        longest = self.settings.max_answer_tokens
        scores, _, threshold = score_served(model, self.dataset, self.rows, longest)
        return scores, {
            "stride": self.settings.stride,
            "max_answer_tokens": longest,
            "no_answer_threshold": threshold,
        }
