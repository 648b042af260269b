from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

from tfeff.compat.saving import untracked
from tfeff.encoders import Encoder
from tfeff.encoders.frozen_teachers import freeze_teacher
from tfeff.encoders.layer_states import layer_states, make_with_states
from tfeff.layers.record_layers import PROBABILITIES, SCORES
from tfeff.objectives.distillation.checks import (
    check_heads,
    check_inputs,
    check_maps,
    check_names_of_classes,
    check_tokenizers,
    paired_encoders,
)
from tfeff.objectives.distillation.comparison import Comparison
from tfeff.objectives.distillation.layer_map import make_layer_map
from tfeff.objectives.distillation.loss_weights import (
    check_layer_weights,
    check_loss_weights,
    weights_left,
)
from tfeff.objectives.distillation.losses import check_comparable
from tfeff.objectives.distillation.target_weights import (
    check_outputs,
    example_weights,
    position_counts,
    prediction_weights,
)
from tfeff.ops.ids import exact_inputs
from tfeff.training.losses import global_mean
from tfeff.training.model import DistributedModel
from tfeff.training.optimizers import adamw
from tfeff.training.target_metrics import update_mean
from tfeff.training.target_weights import check_targets
from tfeff.utils.checks import check_bool, check_choice, check_mapping, check_positive
from tfeff.utils.definitions import check_config, has_own
from tfeff.utils.types import Config, Tensor

# In this order their metrics are saved and reported.
_TERMS = ("embedding", "hidden", "attention", "prediction", "cosine", "label")


@keras.saving.register_keras_serializable(package="tfeff")
class Distillation(DistributedModel):
    """Distillation of a teacher's layers into a student (TinyBERT, DistilBERT).

    With M layers of the student, g the layer map, S and T for student and teacher:

        embedding   λ_0 |X_S^0 W_e - X_T^0|²
        hidden      Σ_m λ_m |X_S^m W_h - X_T^{g(m)}|²
        attention   Σ_m λ_m 1/h Σ_i |A_S^{m,i} - A_T^{g(m),i}|²
        prediction  λ_{M+1} Σ_c p_c (log p_c - log q_c),   p = softmax(z_T / t)
                                                           q = softmax(z_S / t)
        cosine      1 - cos(X_S^M, X_T^N)
        label       the student's own loss on the labels of the batch

    The loss is the sum of the chosen terms, each times its own weight. `W_e` and `W_h`
    are learnt and shared by all layers; models of equal width have no projection. The
    prediction loss is the soft cross-entropy minus the teacher's entropy, which has no
    gradient, so that it is 0 where both agree; it is that of an example's classes or
    options, of each masked token, of each token that has a label, or the mean of those
    of a span's start and end. For ratings it is the squared difference in units of the
    student's `scale`.

    Squares are averaged over features and over the real positions of the global
    batch (pairs of them for attention), cosines over its real positions; padding is
    ignored. Both networks run once a
    step, the teacher without dropout and without gradients: its `trainable` becomes
    False. The teacher is saved with the model, so that training resumes from a
    checkpoint alone.

    Train on any batches of `tfeff.data` for encoders (labels and weights of tokens are
    not read; `MaskedTokens(mask_share=0.0, random_share=0.0)` leaves the text as
    it is), on those of `MaskedTokens()` for masked language models, and on a task's
    for its models. Labels are not read without the term `label`; weights are those of
    the predictions, and weights of examples, `[B]` or `[B, 1]`, those of all terms.

    Args:
        student: a `tfeff.encoders.Encoder` (general distillation), or a model with
            `.encoder`: logits `[B, C]` or ratings `[B]`, such as
            `tfeff.tasks.Classifier`, `MultipleChoice` and `Regressor`; a dict of
            logits `[B, T]`, such as `SpanQA`, or logits `[B, T, C]` of tokens, such as
            `TokenClassifier` (task distillation); or logits `[B, M, V]` of masked
            tokens, such as `tfeff.objectives.MaskedLM`.
        teacher: another model of the same vocabulary, whose inputs the student has,
            too, and with `prediction` the same outputs. It is frozen as a whole, so
            that Keras forgets which weights its adapters had frozen: to train it again,
            load it again.
        layer_map: `"uniform"`, g(m) = m N / M; `"top"`, g(m) = m + N - M; `"bottom"`,
            g(m) = m; or a list of g(1) to g(M), counted from 1. It is not read where
            neither hidden states nor maps are compared.
        attention: which maps are compared: `"scores"` before the softmax,
            `"probabilities"`, or `None` for none; `tfeff.objectives.common_maps`
            returns the kind that both models have. If the numbers of heads differ,
            equal groups of heads are averaged.
        hidden: whether hidden states are compared.
        embedding: whether embeddings are compared.
        prediction: whether logits are compared; `None` means if the models have logits.
        reduction: `"mean"` as above, or `"sum_squares"`: squares are summed over
            features and positions, and averaged over heads and examples.
        temperature: float t of the softmax; 1 without the term `prediction`.
        soften: `"both"` logits are divided by the temperature, or the `"student"`'s
            alone; `"both"` without the term `prediction`.
        tokenizers: `(student's, teacher's)` KerasHub tokenizers, which must agree;
            they are not saved.
        cosine: whether the directions of the last hidden states are compared, which
            must be of one width.
        label: whether the student learns the labels, too.
        loss_weights: dict from names of the terms above to numbers of at least 0; 1 for
            those that are not named. A term of weight 0 is left out.
        layer_weights: λ_0 to λ_{M+1}, M + 2 numbers of at least 0: of the embedding, of
            each layer of the student, and of the predictions; `None` means 1 each.
        **kwargs: `name` and `trainable`.

    Call arguments:
        inputs: dict of the student's inputs, as `token_ids`, `segment_ids` and
            `padding_mask` `[B, T]`. Further entries are not read.

    Returns:
        Dict of float tensors `[B]`, by the names above: the terms of each example, with
        their weights; `[B, C]`, of each option, where examples have options;
        `prediction` is `[B, M]` for masked tokens, `[B, T]` for tokens, `[B, 2]` for
        spans; in place of
        `label` stand the student's own outputs. The model's loss is the sum of the
        terms' means, weighted by the numbers of positions.

    Raises:
        TypeError: if student or teacher is of another kind, the teacher has inputs that
            the student lacks, outputs that are to be compared are others, a switch is
            not a bool, or weights are no numbers.
        ValueError: if `prediction` or `label` is True for encoders, or `label` for a
            student without a loss of its own; if `temperature` is not a positive
            number, or it or `soften` is given without the term `prediction`; if
            `attention`, `reduction`, `soften` or a name of `loss_weights` is unknown;
            if they are the same model, their vocabularies, tokenizers, numbers of
            logits or orders of `label_names` differ, the map of layers that are
            compared does not fit, an attention lacks these maps, the heads cannot
            be paired, widths differ where cosines are compared, a weight is negative,
            or no term is chosen.

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
        section 3.1; Sanh et al., "DistilBERT, a distilled version of BERT", section 3,
        for masked tokens, cosine and label; Hinton et al., "Distilling the knowledge
        in a neural network", for the temperature.
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
        cosine: bool = False,
        label: bool = False,
        loss_weights: Mapping[str, float] | None = None,
        layer_weights: Sequence[float] | None = None,
        **kwargs: Any,
    ):
        encoders = paired_encoders(student, teacher)
        if tokenizers is not None:
            check_tokenizers(tokenizers)
        chosen = _chosen_terms(
            student,
            prediction,
            label,
            embedding=embedding,
            hidden=hidden,
            cosine=cosine,
            attention=attention,
        )
        layer_weights_given = layer_weights
        layer_weights = check_layer_weights(layer_weights, encoders[0].num_layers)
        weights = _weights_of_terms(chosen, loss_weights, layer_weights)
        _check_models(weights, student, teacher, encoders, attention)
        if "prediction" not in weights:
            _check_left_out(temperature=(temperature, 1.0), soften=(soften, "both"))
        settings = {
            "attention": attention,
            "reduction": check_choice("reduction", reduction, ("mean", "sum_squares")),
            "temperature": check_positive("temperature", temperature),
            "soften": check_choice("soften", soften, ("both", "student")),
        }
        depths = [encoder.num_layers for encoder in encoders]
        compares_layers = "hidden" in weights or "attention" in weights
        layers = make_layer_map(layer_map, *depths) if compares_layers else []
        if "attention" in weights:
            check_heads(*encoders, layers)
        freeze_teacher(teacher, encoders[1])
        comparison = Comparison(
            student,
            teacher,
            layers,
            weights=weights,
            layer_weights=layer_weights,
            **settings,
        )
        inputs = dict(student.input)
        super().__init__(inputs=inputs, outputs=comparison(inputs), **kwargs)
        self.student = student
        self.teacher = teacher
        self.encoder = encoders[0]
        self.comparison = comparison
        self.layer_map = layers
        self.settings: Config = {
            "layer_map": untracked(layer_map),
            **settings,
            **{name: chosen[name] for name in chosen if name != "attention"},
            "loss_weights": None if loss_weights is None else dict(loss_weights),
            "layer_weights": layer_weights_given and list(layer_weights_given),
        }
        self.dtype_policy = self.encoder.dtype_policy
        self.term_metrics = {
            name: keras.metrics.Mean(name=f"{name}_loss") for name in comparison.terms
        }

    def call(
        self, inputs: Tensor, training: bool | None = None, mask: Tensor | None = None
    ) -> Any:
        check_mapping("inputs", inputs, "names to tensors")
        inputs = exact_inputs(inputs, self.student.input)
        return super().call(inputs, training=training, mask=mask)

    def compile(  # type: ignore[override]
        self, optimizer: Any = "auto", **kwargs: Any
    ) -> None:
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
            if kwargs.get(name):  # A second `compile` saves that there are none.
                raise ValueError(
                    f"`{name}` must not be given: the arguments of Distillation "
                    f"determine it. Received: {name}={kwargs[name]!r:.80}"
                )
        if optimizer == "auto":
            optimizer = adamw(1e-4, warmup_steps=10_000, total_steps=1_000_000)
        super().compile(optimizer=optimizer, **kwargs)

    @property
    def reads_labels(self) -> bool:
        return "label" in self.comparison.terms

    def labelled(self) -> tuple[Sequence, Any]:
        if isinstance(self.student, Encoder):
            raise ValueError(
                "`class_weight` must be None for encoders, of which no labels are read"
            )
        loss = getattr(self.student, "default_loss", lambda: None)()
        return self.student.outputs, loss

    def compute_loss(
        self,
        x: Tensor | None = None,
        y: Tensor | None = None,
        y_pred: Tensor | None = None,
        sample_weight: Tensor | None = None,
        training: bool | None = True,
    ) -> Tensor:
        """This replica's share of the loss; the shares of all replicas add up to it."""
        weights = self.target_weights(x, y, sample_weight)
        losses = self._with_label_losses(y, y_pred)
        # This replica's share of what layers add, before another one's layers run.
        added = super().compute_loss(x) if self.losses else 0.0
        return added + sum(
            global_mean(ops.cast(values, keras.config.floatx()), weights[name])
            for name, values in losses.items()
        )

    def compute_metrics(
        self, x: Tensor, y: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None
    ) -> dict[str, Any]:
        weights = self.target_weights(x, y, sample_weight)
        losses = self._with_label_losses(y, y_pred)
        for name, metric in self.term_metrics.items():
            update_mean(metric, losses[name], weights[name])
        return self.get_metrics_result()

    def _with_label_losses(self, y, y_pred):
        """The terms, with losses in place of the student's outputs for the labels."""
        if "label" not in y_pred:
            return y_pred
        outputs, loss = y_pred["label"], self.student.default_loss()
        check_targets(y, loss if isinstance(loss, dict) else None)
        if isinstance(y, Mapping) != isinstance(loss, dict):
            names = f", by name: {', '.join(loss)}" if isinstance(loss, dict) else ""
            raise ValueError(
                f"`y` must be the targets of the student's outputs{names}. "
                f"Received: y of type {type(y).__name__}"
            )
        if not isinstance(loss, dict):
            value = loss.call(y, ops.cast(outputs, loss.dtype))
        else:
            parts = [
                part.call(y[name], ops.cast(outputs[name], part.dtype))
                for name, part in loss.items()
            ]
            value = ops.stack(parts, axis=-1)
        weight = self.comparison.weights_of_terms["label"]
        return {**y_pred, "label": weight * value}

    def target_weights(
        self, x: Tensor, y: Tensor | None = None, sample_weight: Tensor | None = None
    ) -> Any:
        """Weight of each sequence or target in the mean of each term, by name.

        A dictionary of the terms holds such weights already and is returned as it is.
        """
        terms = self.comparison.terms
        if isinstance(sample_weight, dict) and set(sample_weight) == set(terms):
            return sample_weight
        mask = x["padding_mask"]
        counts = position_counts(mask, terms, self.settings["reduction"])
        examples = example_weights(sample_weight, x)
        if len(mask.shape) > 2:
            examples = examples[:, None]
        weights = {name: count * examples for name, count in counts.items()}
        of_targets = {"prediction", "label"} & set(terms)
        if of_targets:
            given = prediction_weights(sample_weight, x, self.student)
            weights |= dict.fromkeys(of_targets, given)
        return weights

    @property
    def metrics(self) -> list[Any]:
        # Keras would add the metrics of student and teacher, behind its mean loss.
        terms = list(getattr(self, "term_metrics", {}).values())
        own = has_own(self, "compute_loss")
        return [*super().metrics[:1], *terms] if own else terms

    def get_metrics_result(self) -> dict[str, Any]:
        """Metrics by name; `loss` is the sum of the terms' means.

        Of a subclass with a `compute_loss` of its own it is that loss, as Keras has it.
        """
        logs = super().get_metrics_result()
        if not has_own(self, "compute_loss"):
            logs["loss"] = sum(metric.result() for metric in self.term_metrics.values())
        return logs

    def get_config(self) -> Config:
        check_config(self)
        return {
            "name": self.name,
            "trainable": self.trainable,
            "student": keras.saving.serialize_keras_object(self.student),
            "teacher": keras.saving.serialize_keras_object(self.teacher),
            **untracked(self.settings),
            **layer_states(self),
        }

    @classmethod
    def from_config(cls, config: Config) -> "Distillation":
        config = dict(config)
        for name in ("student", "teacher"):
            config[name] = keras.saving.deserialize_keras_object(config[name])
        return make_with_states(cls, config)


def _chosen_terms(student, prediction, label, *, attention, **switches):
    """Whether each term is chosen, by its name."""
    has_logits = not isinstance(student, Encoder)
    for name, value in (("prediction", prediction), ("label", label)):
        if value and not has_logits:
            raise ValueError(
                f"`{name}` must be False for encoders, which have no logits. "
                f"Received: {name}={value!r:.80}"
            )
    if label and not hasattr(student, "default_loss"):
        raise ValueError(
            "`label` must be False for a student that has no `default_loss`. "
            f"Received: label={label!r:.80}, student={student!r:.80}"
        )
    if attention is not None:
        check_choice("attention", attention, (SCORES, PROBABILITIES))
    switches |= {
        "prediction": has_logits if prediction is None else prediction,
        "label": label,
    }
    chosen = {name: check_bool(name, value) for name, value in switches.items()}
    chosen["attention"] = attention is not None
    return {name: chosen[name] for name in _TERMS}


def _check_models(weights, student, teacher, encoders, attention):
    """Raises where the models cannot be compared by the terms that have weights."""
    check_inputs(student, teacher)
    if "prediction" in weights or "label" in weights:
        check_outputs(student)
    if "prediction" in weights:
        check_comparable(student.output, teacher.output)
        check_names_of_classes(student, teacher)
    if "attention" in weights:
        for name, encoder in zip(("student", "teacher"), encoders):
            check_maps(name, encoder, str(attention))
    widths = [encoder.hidden_dim for encoder in encoders]
    if "cosine" in weights and widths[0] != widths[1]:
        raise ValueError(
            "`cosine` must be False for hidden states of different widths. "
            f"Received: {widths[0]} in the student, {widths[1]} in the teacher"
        )


def _check_left_out(**settings):
    """Raises unless settings of predictions, which are not compared, are default."""
    for name, (given, default) in settings.items():
        if given != default:
            raise ValueError(
                f"`{name}` must be left out where no predictions are compared "
                f"(`prediction`). Received: {name}={given!r:.80}"
            )


def _weights_of_terms(chosen, loss_weights, layer_weights):
    """The weight of each term that is computed, by name."""
    terms = [name for name, wanted in chosen.items() if wanted]
    weights = weights_left(check_loss_weights(loss_weights, terms), layer_weights)
    if not weights:
        raise ValueError(
            "At least one of `attention`, `hidden`, `embedding`, `prediction`, "
            "`cosine` and `label` must be set, with weights above 0 (`layer_weights`). "
            f"Received: {terms or 'none of them'}, layer_weights={layer_weights}"
        )
    return weights
