from collections.abc import Sequence

import keras
from keras import ops

from tfeff.compat import inputs_in_order
from tfeff.encoders import Encoder
from tfeff.encoders.quantization import make_quantized, quantization_config
from tfeff.objectives.distillation.comparison import Comparison, position_counts
from tfeff.objectives.distillation.layer_map import (
    check_maps,
    check_tokenizers,
    make_layer_map,
    paired_encoders,
)
from tfeff.training.losses import GlobalMean
from tfeff.training.model import DistributedModel
from tfeff.training.optimizers import adamw
from tfeff.utils.checks import check_choice, check_positive


@keras.saving.register_keras_serializable(package="tfeff")
class Distillation(DistributedModel):
    """Distillation of a teacher's layers into a student (TinyBERT).

    With M layers of the student, g the layer map, S and T for student and teacher:

        embedding   |X_S^0 W_e - X_T^0|²
        hidden      Σ_m |X_S^m W_h - X_T^{g(m)}|²
        attention   Σ_m 1/h Σ_i |A_S^{m,i} - A_T^{g(m),i}|²
        prediction  Σ_c p_c (log p_c - log q_c),   p = softmax(z_T / t)
                                                   q = softmax(z_S / t)

    The loss is the sum of the chosen terms. `W_e` and `W_h` are learnt and shared by
    all layers; models of equal width have no projection. The prediction loss is the
    soft cross-entropy minus the teacher's entropy, which has no gradient, so that it is
    0 where both agree. For ratings it is the squared difference.

    Squares are averaged over features and over the real positions of the global
    batch (pairs of them for attention); padding is ignored. Both networks run once a
    step, the teacher without dropout and without gradients: its `trainable` becomes
    False. The teacher is saved with the model, so that training resumes from a
    checkpoint alone.

    Train on any batches of `tfeff.data` for encoders (labels and weights are not
    read; `MaskedTokens(mask_share=0.0, random_share=0.0)` leaves the text as
    it is), and on a task's for classifiers (labels are not read, weights are those
    of the examples).

    Args:
        student: a `tfeff.encoders.Encoder` (general distillation), or a model with
            `.encoder` and logits `[B, C]` or ratings `[B]`, such as
            `tfeff.tasks.Classifier` (task distillation).
        teacher: another model of the same kind and the same vocabulary.
        layer_map: `"uniform"`, g(m) = m N / M; `"top"`, g(m) = m + N - M; `"bottom"`,
            g(m) = m; or a list of g(1) to g(M), counted from 1.
        attention: which maps are compared: `"scores"` before the softmax,
            `"probabilities"`, or `None` for none; `tfeff.objectives.common_maps`
            returns the kind that both models have. If the numbers of heads differ,
            equal groups of heads are averaged.
        hidden: whether hidden states are compared.
        embedding: whether embeddings are compared.
        prediction: whether logits are compared; `None` means if the models have logits.
        reduction: `"mean"` as above, or `"sum_squares"`: squares are summed over
            features and positions, and averaged over heads and examples.
        temperature: float t of the softmax.
        soften: `"both"` logits are divided by the temperature, or the `"student"`'s
            alone.
        tokenizers: `(student's, teacher's)` KerasHub tokenizers, which must agree;
            they are not saved.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of the student's inputs, as `token_ids`, `segment_ids` and
            `padding_mask` `[B, T]`. Further entries are not read.

    Returns:
        Dict of float tensors `[B]`, by the names above: the terms of each example. The
        model's loss is the sum of their means, weighted by the numbers of positions.

    Raises:
        TypeError: if student or teacher is of another kind.
        ValueError: if they are the same model, their vocabularies, tokenizers or
            numbers of logits differ, the layer map does not fit, an attention lacks
            these maps, the heads cannot be paired, or no term is chosen.

    Example:

    >>> import tfeff
    >>> teacher = tfeff.encoders.build("bert_tiny", vocabulary_size=100)
    >>> student = tfeff.encoders.build(
    ...     "bert_tiny", vocabulary_size=100, num_layers=1, hidden_dim=16
    ... )
    >>> model = Distillation(student, teacher, layer_map="top")
    >>> model.compile()
    >>> ones = keras.ops.ones((2, 7), dtype="int32")
    >>> terms = model({"token_ids": ones, "segment_ids": ones, "padding_mask": ones})
    >>> sorted(terms), tuple(terms["hidden"].shape)
    (['attention', 'embedding', 'hidden'], (2,))

    Reference:
        Jiao et al., "TinyBERT: distilling BERT for natural language understanding",
        section 3.1; Hinton et al., "Distilling the knowledge in a neural network",
        for the temperature.
    """

    def __init__(
        self,
        student: keras.Model,
        teacher: keras.Model,
        layer_map: str | Sequence[int] = "uniform",
        attention: str | None = "scores",
        hidden: bool = True,
        embedding: bool = True,
        prediction: bool | None = None,
        reduction: str = "mean",
        temperature: float = 1.0,
        soften: str = "both",
        tokenizers: tuple | None = None,
        **kwargs,
    ):
        encoders = paired_encoders(student, teacher)
        if tokenizers is not None:
            check_tokenizers(tokenizers)
        has_logits = not isinstance(student, Encoder)
        if prediction and not has_logits:
            raise ValueError(
                "`prediction` must be False for encoders, which have no logits. "
                f"Received: prediction={prediction!r}"
            )
        settings = {
            "attention": attention,
            "hidden": bool(hidden),
            "embedding": bool(embedding),
            "prediction": has_logits if prediction is None else bool(prediction),
            "reduction": check_choice("reduction", reduction, ("mean", "sum_squares")),
            "temperature": check_positive("temperature", temperature),
            "soften": check_choice("soften", soften, ("both", "student")),
        }
        if attention is not None:
            check_choice("attention", attention, ("scores", "probabilities"))
            check_maps("student", encoders[0], attention)
            check_maps("teacher", encoders[1], attention)
        sizes = [encoder.num_layers for encoder in encoders]
        layers = make_layer_map(layer_map, *sizes)
        # True first: a model that was loaded with False may have trainable weights.
        teacher.trainable = True
        teacher.trainable = False
        comparison = Comparison(student, teacher, layers, **settings)
        inputs = dict(student.input)
        super().__init__(inputs=inputs, outputs=comparison(inputs), **kwargs)
        self.student = student
        self.teacher = teacher
        self.encoder = encoders[0]
        self.comparison = comparison
        self.layer_map = layers
        self.settings = {"layer_map": layer_map, **settings}
        self.dtype_policy = self.encoder.dtype_policy
        self.term_metrics = {
            name: keras.metrics.Mean(name=f"{name}_loss") for name in comparison.terms
        }

    def call(self, inputs, training=None, mask=None):
        inputs = inputs_in_order(inputs, self.student.input)
        return super().call(inputs, training=training, mask=mask)

    def compile(self, optimizer="auto", **kwargs):
        """As `keras.Model.compile`, with its own loss.

        Args:
            optimizer: by default that of pretraining: `tfeff.training.adamw(1e-4,
                warmup_steps=10_000, total_steps=1_000_000)`.
            **kwargs: further arguments of `keras.Model.compile`, but no loss and no
                metrics.

        Raises:
            ValueError: if there is a loss or a metric.
        """
        for name in ("loss", "loss_weights", "metrics", "weighted_metrics"):
            if kwargs.get(name) is not None:
                raise ValueError(
                    f"`{name}` must not be given: the arguments of Distillation "
                    f"determine it. Received: {name}={kwargs[name]!r}"
                )
        if optimizer == "auto":
            optimizer = adamw(1e-4, warmup_steps=10_000, total_steps=1_000_000)
        super().compile(optimizer=optimizer, **kwargs)

    def compile_from_config(self, config):
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """This replica's share of the loss; the shares of all replicas add up to it."""
        weights = self.target_weights(x, y, sample_weight)
        mean = _GlobalMean("distillation")
        return sum(mean(None, y_pred[name], weights[name]) for name in y_pred)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        weights = self.target_weights(x, y, sample_weight)
        for name, metric in self.term_metrics.items():
            metric.update_state(y_pred[name], sample_weight=weights[name])
        return self.get_metrics_result()

    def target_weights(self, x, y=None, sample_weight=None):
        """Weight of each example in the mean of each term: `[B]` by name.

        A dictionary holds such weights already and is returned as it is.
        """
        if isinstance(sample_weight, dict):
            return sample_weight
        counts = position_counts(
            x["padding_mask"], self.comparison.terms, self.settings["reduction"]
        )
        if sample_weight is None or isinstance(self.student, Encoder):
            return counts
        sample_weight = ops.cast(sample_weight, "float32")
        if len(sample_weight.shape) != 1:
            raise ValueError(
                "`sample_weight` must have one weight for each example, [B]. "
                f"Received: shape {tuple(sample_weight.shape)}"
            )
        return {name: count * sample_weight for name, count in counts.items()}

    @property
    def metrics(self):
        # Keras would add the metrics of student and teacher.
        return list(getattr(self, "term_metrics", {}).values())

    def get_metrics_result(self):
        """Metrics by name; `loss` is the sum of the terms' means."""
        logs = super().get_metrics_result()
        logs["loss"] = sum(metric.result() for metric in self.term_metrics.values())
        return logs

    def get_config(self):
        return {
            "name": self.name,
            "trainable": self.trainable,
            "student": keras.saving.serialize_keras_object(self.student),
            "teacher": keras.saving.serialize_keras_object(self.teacher),
            **self.settings,
            **quantization_config(self),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in ("student", "teacher"):
            config[name] = keras.saving.deserialize_keras_object(config[name])
        return make_quantized(cls, config)


class _GlobalMean(GlobalMean):
    """The mean of values that are the losses of examples."""

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_pred, y_pred, sample_weight)

    def call(self, y_true, y_pred):
        return y_pred
