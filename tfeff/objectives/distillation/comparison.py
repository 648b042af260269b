"""The layer that runs student and teacher and compares their layers."""

import keras
from keras import ops

from tfeff.compat.layers import output_spec
from tfeff.encoders.encoder import encoder_of
from tfeff.layers import record_layers
from tfeff.layers.dense import bert_dense
from tfeff.objectives.distillation.losses import (
    cosine_distances,
    map_squares,
    prediction_divergence,
    state_squares,
)
from tfeff.objectives.distillation.target_weights import position_counts


class Comparison(keras.layers.Layer):
    """Runs student and teacher once and computes the terms of the loss.

    Args:
        student, teacher: encoders, or models with one as `.encoder`.
        layers: for each layer of the student, the index of the teacher's layer that
            it learns from, counted from 1.
        weights: the weight of each term that is computed, by name.
        layer_weights: λ_0 to λ_{M+1}.
        attention, reduction, temperature, soften: as in
            `tfeff.objectives.Distillation`.

    Call arguments:
        inputs: dict of the inputs of student and teacher.
        training: whether the student's dropout is active.

    Returns:
        Dict of float tensors by the names in `weights`, weighted: `[B]`, or `[B, C]` of
        questions with options, sums over real positions divided by `position_counts`;
        `prediction` as `prediction_divergence` gives it; and in place of `label` the
        student's own outputs.
    """

    def __init__(
        self,
        student,
        teacher,
        layers,
        *,
        weights,
        layer_weights,
        attention,
        reduction,
        temperature,
        soften,
    ):
        encoders = [encoder_of(model) for model in (student, teacher)]
        super().__init__(name="comparison", dtype=encoders[0].dtype_policy)
        self.student = student
        self.teacher = teacher
        self.layer_map = layers
        self.weights_of_terms = weights
        self.layer_weights = layer_weights
        self.attention = attention if "attention" in weights else None
        self.reduction = reduction
        self.temperature = temperature
        self.soften = soften
        self.rating_scale = getattr(student, "rating_scale", 1.0)
        widths = [encoder.hidden_dim for encoder in encoders]
        self.embedding_projection = self._projection("embedding", *widths)
        self.hidden_projection = self._projection("hidden", *widths)

    @property
    def terms(self) -> list[str]:
        """The names of the terms."""
        return list(self.weights_of_terms)

    def _projection(self, name, student_width, teacher_width):
        if name not in self.terms or student_width == teacher_width:
            return None
        projection = bert_dense(
            teacher_width,
            use_bias=False,
            dtype=self.dtype_policy,
            name=f"{name}_projection",
        )
        projection.build((None, None, student_width))
        return projection

    def build(self, input_shape=None):
        pass  # The constructor has built the projections.

    def call(self, inputs, training=None):
        student, student_output = self._run("student", self.student, inputs, training)
        teacher, teacher_output = self._run("teacher", self.teacher, inputs, False)
        for tensors in (teacher.hidden_states, teacher.attention):
            tensors[:] = [ops.stop_gradient(tensor) for tensor in tensors]
        # Options of a question are sequences of their own.
        padding_mask = inputs["padding_mask"]
        *rows, length = ops.shape(padding_mask)
        real = ops.not_equal(padding_mask, 0)
        if len(rows) > 1:
            real = ops.reshape(real, (rows[0] * rows[1], length))
        sums = self._sums(student, teacher, real)
        counts = position_counts(padding_mask, sums, self.reduction)
        terms = {}
        for name, value in sums.items():
            value = ops.reshape(value, rows) if len(rows) > 1 else value
            count = ops.cast(counts[name], value.dtype)
            terms[name] = ops.divide_no_nan(value, count)
        if "prediction" in self.terms:
            value = prediction_divergence(
                student_output,
                keras.tree.map_structure(ops.stop_gradient, teacher_output),
                self.temperature,
                self.soften,
                self.rating_scale,
            )
            terms["prediction"] = self.layer_weights[-1] * value
        terms = {name: self.weights_of_terms[name] * x for name, x in terms.items()}
        if "label" in self.terms:
            terms["label"] = student_output
        return terms

    def compute_output_spec(self, inputs, training=None):
        if keras.backend.backend() != "torch":
            return output_spec(self.call, inputs, training)
        # There Keras would call the encoders with a number for an unknown length, which
        # may be too long.
        rows = inputs["padding_mask"].shape[:-1]
        dtype = keras.backend.result_type(self.compute_dtype, "float32")
        terms = {
            name: keras.KerasTensor(rows, dtype)
            for name in ("embedding", "hidden", "attention", "cosine")
            if name in self.terms
        }
        if "prediction" in self.terms:
            outputs = self.student.output, self.teacher.output
            terms["prediction"] = prediction_divergence(
                *outputs, self.temperature, self.soften, self.rating_scale
            )
        if "label" in self.terms:
            terms["label"] = self.student.output
        return keras.tree.map_structure(
            lambda x: keras.KerasTensor(x.shape, x.dtype), terms
        )

    def _sums(self, student, teacher, real):
        """The sums over positions of the terms that compare layers."""
        first, *weights, _ = self.layer_weights
        layers = [
            (weight, m, n)
            for m, (weight, n) in enumerate(zip(weights, self.layer_map))
            if weight
        ]
        states = student.hidden_states, teacher.hidden_states
        sums = {}
        if "embedding" in self.terms:
            sums["embedding"] = first * self._compare_states(
                self.embedding_projection, states[0][0], states[1][0], real
            )
        if "hidden" in self.terms:
            sums["hidden"] = sum(
                weight
                * self._compare_states(
                    self.hidden_projection, states[0][m + 1], states[1][n], real
                )
                for weight, m, n in layers
            )
        if "attention" in self.terms:
            sums["attention"] = sum(
                weight
                * map_squares(student.attention[m], teacher.attention[n - 1], real)
                for weight, m, n in layers
            )
        if "cosine" in self.terms:
            sums["cosine"] = cosine_distances(states[0][-1], states[1][-1], real)
        return sums

    def _run(self, role, model, inputs, training):
        """A forward pass: the recording of its encoder's layers, and its output."""
        # It is not kept: attributes name the weights in a model's file.
        encoder = encoder_of(model)
        with record_layers(self.attention, encoder) as recording:
            output = model(inputs, training=training)
        if len(recording.hidden_states) != encoder.num_layers + 1:
            raise TypeError(
                f"`{role}` must call its encoder once, for its layers to be compared. "
                f"Received: {role}={model!r:.80}"
            )
        return recording, output

    def _compare_states(self, projection, student, teacher, real):
        if projection is not None:
            student = projection(student)
        average = self.reduction == "mean"
        return state_squares(student, teacher, real, average)
