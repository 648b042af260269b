"""A part of a task's data set: examples and rows, and what models predict of them."""

import dataclasses
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

import tfeff
from tfeff.data.finetuning.feature_rows import FeatureRows
from tfeff.recipes.answer_scores import score_answers, score_served
from tfeff.recipes.run_exports import export_options
from tfeff.recipes.task_scores import task_scores


def rows_of(
    examples: Any, tokenizer: keras_hub.tokenizers.Tokenizer, sequence_length: int
) -> FeatureRows:
    """The rows of tokens of texts, of questions with options, or of words."""
    if isinstance(examples, tfeff.data.TokenExamples):
        return tfeff.data.token_features(examples, tokenizer, sequence_length)
    return tfeff.data.text_features(examples, tokenizer, sequence_length)


@dataclasses.dataclass(frozen=True)
class TaskPart:
    """A part of a data set: its examples, and as rows of tokens.

    Attributes:
        dataset: the `Dataset`.
        examples: the examples.
        rows: their rows of tokens, from `rows_of`.
        pad_to_longest: whether batches are padded to their longest row alone.
    """

    dataset: tfeff.datasets.Dataset
    examples: Any
    rows: Any
    pad_to_longest: bool = False

    def batches(self, batch_size: int, seed: int | None) -> tf.data.Dataset:
        """Shuffled batches to train on, without an end."""
        return self.rows.dataset(batch_size, seed, pad_to_longest=self.pad_to_longest)

    def encoder_batches(self, batch_size: int, **options: Any) -> tf.data.Dataset:
        """Batches as an encoder reads them, each option of a question as a row."""
        batches = self.rows.dataset(batch_size, **options)
        if isinstance(self.examples, tfeff.data.TextExamples):
            return batches

        def flat(inputs, *_):
            rows = {n: tf.reshape(x, [-1, x.shape[-1]]) for n, x in inputs.items()}
            return (rows,)

        return batches.map(flat)

    def predictions(self, model: keras.Model) -> Any:
        """The class, rating or option of each example, or the classes of its words.

        None where the model diverged.
        """
        rows, pad_to_longest = self.rows, self.pad_to_longest
        if isinstance(model, tfeff.tasks.TokenClassifier):
            finite = tfeff.training.is_finite(model)
            return model.labels(rows, 32, pad_to_longest) if finite else None
        outputs = model.predicted(rows, 8 if rows.num_choices else 32, pad_to_longest)
        if not np.isfinite(outputs).all():
            return None
        return outputs if outputs.ndim == 1 else outputs.argmax(-1)

    def scores(self, predictions: Any) -> dict[str, float]:
        """The scores of predictions; undefined where there are none."""
        return task_scores(self.dataset, self.examples, predictions)

    def score(self, model: keras.Model) -> dict[str, float]:
        """The scores of a model; undefined where it has diverged."""
        return self.scores(self.predictions(model))

    def delivered(
        self, model: keras.Model, known: dict[str, float] | None = None
    ) -> tuple[dict[str, float], dict]:
        """The scores of a model as it is served, and the options of its export.

        These are those of `tfeff.export.save_for_serving`, but for the length. `known`
        are those of `score`, which are the same but for spans.
        """
        return known or self.score(model), export_options(self.examples)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SpanPart(TaskPart):
    """A part of questions that spans of passages answer, as windows of tokens.

    Attributes:
        rows: the windows, `tfeff.data.SpanFeatures`.
        stride: tokens between the starts of windows.
        max_answer_tokens: the most tokens of an answer.
    """

    stride: int
    max_answer_tokens: int

    def batches(self, batch_size, seed):
        return self.rows.dataset(batch_size, seed)

    def score(self, model):
        return score_answers(model, self.dataset, self.rows, self.max_answer_tokens)[0]

    def delivered(self, model, known=None):
        longest = self.max_answer_tokens
        scores, _, threshold = score_served(model, self.dataset, self.rows, longest)
        return scores, {
            "stride": self.stride,
            "max_answer_tokens": longest,
            "no_answer_threshold": threshold,
        }
