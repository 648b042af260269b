"""The layer that runs student and teacher and compares their layers."""

import keras
from keras import ops

from tfeff.encoders import Encoder
from tfeff.layers import record_layers
from tfeff.layers.dense import Dense
from tfeff.layers.initializer import bert_initializer
from tfeff.objectives.distillation.losses import (
    map_squares,
    prediction_divergence,
    state_squares,
)

_TERMS = ("embedding", "hidden", "attention", "prediction")


class Comparison(keras.layers.Layer):
    """Runs student and teacher once and computes the terms of the loss.

    Args:
        student, teacher: encoders, or models with one as `.encoder`.
        layers: for each layer of the student, the index of the teacher's layer that
            it learns from, counted from 1.
        attention, hidden, embedding, prediction, reduction, temperature, soften: as in
            `tfeff.objectives.Distillation`.

    Call arguments:
        inputs: dict of the inputs of student and teacher.
        training: whether the student's dropout is active.

    Returns:
        Dict of float tensors `[B]`, by the names in `terms`: sums over real positions,
        divided by `position_counts`.
    """

    def __init__(self, student, teacher, layers, **settings):
        encoders = [
            model if isinstance(model, Encoder) else model.encoder
            for model in (student, teacher)
        ]
        super().__init__(name="comparison", dtype=encoders[0].dtype_policy)
        self.terms = [name for name in _TERMS if settings[name]]
        if not self.terms:
            raise ValueError(
                "At least one of `attention`, `hidden`, `embedding` and `prediction` "
                "must be set. Received: none of them"
            )
        self.student = student
        self.teacher = teacher
        self.layer_map = layers
        self.settings = settings
        widths = [encoder.hidden_dim for encoder in encoders]
        self.embedding_projection = self._projection("embedding", *widths)
        self.hidden_projection = self._projection("hidden", *widths)

    def _projection(self, name, student_width, teacher_width):
        if name not in self.terms or student_width == teacher_width:
            return None
        projection = Dense(
            teacher_width,
            use_bias=False,
            kernel_initializer=bert_initializer(),
            dtype=self.dtype_policy,
            name=f"{name}_projection",
        )
        projection.build((None, None, student_width))
        return projection

    def build(self, input_shape=None):
        pass  # The constructor has built the projections.

    def call(self, inputs, training=None):
        student, student_output = self._run(self.student, inputs, training)
        teacher, teacher_output = self._run(self.teacher, inputs, False)
        for tensors in (teacher.hidden_states, teacher.attention):
            tensors[:] = [ops.stop_gradient(tensor) for tensor in tensors]
        padding_mask = inputs["padding_mask"]
        real = ops.not_equal(padding_mask, 0)
        layers = list(enumerate(self.layer_map))
        sums = {}
        if "embedding" in self.terms:
            sums["embedding"] = self._compare_states(
                self.embedding_projection,
                student.hidden_states[0],
                teacher.hidden_states[0],
                real,
            )
        if "hidden" in self.terms:
            sums["hidden"] = sum(
                self._compare_states(
                    self.hidden_projection,
                    student.hidden_states[m + 1],
                    teacher.hidden_states[n],
                    real,
                )
                for m, n in layers
            )
        if "attention" in self.terms:
            sums["attention"] = sum(
                map_squares(student.attention[m], teacher.attention[n - 1], real)
                for m, n in layers
            )
        if "prediction" in self.terms:
            sums["prediction"] = prediction_divergence(
                student_output,
                ops.stop_gradient(teacher_output),
                self.settings["temperature"],
                self.settings["soften"],
            )
        counts = position_counts(padding_mask, self.terms, self.settings["reduction"])
        return {
            name: ops.divide_no_nan(value, ops.cast(counts[name], value.dtype))
            for name, value in sums.items()
        }

    def _run(self, model, inputs, training):
        """A forward pass: the recording of its layers, and its output."""
        with record_layers(self.settings["attention"]) as recording:
            output = model(inputs, training=training)
        return recording, output

    def _compare_states(self, projection, student, teacher, real):
        if projection is not None:
            student = projection(student)
        average = self.settings["reduction"] == "mean"
        return state_squares(student, teacher, real, average)


def position_counts(padding_mask, terms, reduction: str) -> dict:
    """Number of positions behind each example's sum, by term: `[B]`.

    Sums are divided by it, and it is the example's weight in the mean over examples.
    With the reduction `"sum_squares"` it is 1 for every example that is not empty.
    """
    tokens = ops.sum(ops.cast(ops.not_equal(padding_mask, 0), "float32"), axis=-1)
    examples = ops.cast(tokens > 0, "float32")
    counts = dict.fromkeys(terms, examples)
    if reduction == "mean":
        own = {"embedding": tokens, "hidden": tokens, "attention": tokens**2}
        counts.update({name: own[name] for name in terms if name in own})
    return counts
