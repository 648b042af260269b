"""The base class of pretraining objectives and tasks."""

import os
from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from tfeff.compat.layers import StaysFrozen
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.encoders.frozen_teachers import was_teacher
from tfeff.encoders.layer_states import layer_states, make_with_states
from tfeff.encoders.own_calls import symbolic_outputs
from tfeff.formats.export_model import export_outputs
from tfeff.objectives.heads import Head
from tfeff.objectives.of_logits import (
    broadcasts_ids,
    check_metrics,
    loss_of_probabilities,
)
from tfeff.ops.ids import check_range, exact_inputs
from tfeff.training.losses import GlobalMean, GlobalMeanCrossentropy
from tfeff.training.model import DistributedModel
from tfeff.training.optimizers import adamw
from tfeff.training.target_metrics import (
    SparseAccuracy,
    SparseCrossEntropy,
)
from tfeff.training.target_weights import check_targets, check_weights
from tfeff.utils.checks import shapes_agree
from tfeff.utils.definitions import check_config, has_own
from tfeff.utils.types import Config, Tensor

# The metric that replaces a loss in reports: its mean over all targets seen.
TARGET_MEAN = "mean_loss"


def token_metrics() -> list[keras.metrics.Metric]:
    """Cross-entropy and accuracy over weighted targets."""
    return [
        SparseCrossEntropy(from_logits=True, name=TARGET_MEAN),
        SparseAccuracy(name="accuracy"),
    ]


class OptionError(ValueError):
    """An option of `tfeff.tasks.load_task` that a model cannot be loaded with."""


class Objective(StaysFrozen, DistributedModel):
    """Base of objectives and tasks: defaults of `compile`, reports, config.

    Subclasses with several outputs set `output_weights`, the weight of each output's
    loss by the output's name, and override `default_loss` and `default_metrics`, which
    then are dicts of the same names. Those that are made of the encoder by another
    argument than `encoder` set `encoder_argument`; those that run its blocks in another
    way than its call does set `calls_encoder`. docs/EXTENDING.md has a whole one.

    Args:
        encoder: the `tfeff.encoders.Encoder` to pretrain or to fine-tune.
        inputs: dict of `keras.KerasTensor`.
        outputs: a `keras.KerasTensor` or a dict of them.
        **kwargs: `name` and `trainable`.

    Raises:
        TypeError: if `encoder` is not a `tfeff.encoders.Encoder`.

    Example: which of two words each token is.

    >>> import tfeff
    >>> class Two(Objective):
    ...     def __init__(self, encoder, **kwargs):
    ...         hidden = encoder(encoder.input)["sequence_output"]
    ...         logits = keras.layers.Dense(2)(hidden)
    ...         super().__init__(encoder, encoder.input, logits, **kwargs)
    >>> model = Two(tfeff.encoders.build("shatter_tiny", vocabulary_size=100))
    >>> model.output_shape
    (None, None, 2)
    """

    encoder_argument = "encoder"
    calls_encoder = True
    output_weights: Any = None
    rating_scale = 1.0  # The unit that errors of ratings are measured in.
    _weights_of_means: tuple | None = None
    _is_loading = False

    def __init__(self, encoder: Encoder, inputs: Any, outputs: Any, **kwargs: Any):
        check_encoder("encoder", encoder)
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        self.encoder = encoder
        # Mixed float16 needs the model's own policy for Keras to scale the loss.
        self.dtype_policy = encoder.dtype_policy

    def heads(self) -> dict[str, Head]:
        """The parts beside the encoder that presets keep, by name.

        Models with parts of one name can begin with each other's.
        """
        return {}

    def default_optimizer(self) -> keras.optimizers.Optimizer:
        return adamw(1e-4, warmup_steps=10_000, total_steps=1_000_000)

    def default_loss(self) -> Any:
        return GlobalMeanCrossentropy()

    def default_metrics(self) -> Any:
        return token_metrics()

    def compile(  # type: ignore[override]
        self,
        optimizer: Any = "auto",
        loss: Any = "auto",
        weighted_metrics: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """As `keras.Model.compile`, with the papers' settings by default.

        Args:
            optimizer: by default the paper's; for most objectives Shatter's,
                `tfeff.training.adamw(1e-4, warmup_steps=10_000,
                total_steps=1_000_000)`, for tasks `tfeff.training.AdamW` at the
                constant rate 1e-5, decay 0.01, ε 1e-6 and gradients clipped to norm 1.
            loss: by default a mean over all targets of the global batch, for each
                output; with several outputs, weighted as the objective says.
            weighted_metrics: with the default losses the field's usual ones by
                default, and the reported `loss` is the mean over all targets seen
                since the metrics were last reset, or the weighted sum of such means.
                Other losses may have other targets, such as probabilities of classes:
                by default there are no metrics with them, but those that a class of
                yours gives for its own default loss.
            **kwargs: further arguments of `tfeff.training.DistributedModel.compile`,
                such as `accumulation_steps`. `metrics` are weighted metrics here, too:
                rows that fill up a batch have weight 0, and count for nothing. Keras'
                own count a token less in a wider batch; the default ones do not.

        Raises:
            ValueError: if there are `metrics` beside `weighted_metrics`; if a loss
                takes probabilities, as Keras' cross-entropies do without
                `from_logits=True`, and its Kullback-Leibler divergence, Dice and
                Tversky losses: the outputs are logits; if a metric of Keras' own takes
                probabilities, or with a default loss for classes other targets than
                their ids.
        """
        if optimizer == "auto":
            optimizer = self.default_optimizer()
        is_default_loss = isinstance(loss, str) and loss == "auto"
        if is_default_loss:
            loss = self.default_loss()
            if self.output_weights is not None:
                kwargs.setdefault("loss_weights", dict(self.output_weights))
        is_auto = isinstance(weighted_metrics, str) and weighted_metrics == "auto"
        given_metrics = kwargs.get("metrics")
        if given_metrics is not None:
            if not is_auto:
                raise ValueError(
                    "`metrics` must be left out beside `weighted_metrics`: both are "
                    "weighted here, as rows that fill up a batch have weight 0. "
                    f"Received: metrics={given_metrics!r}"
                )
            weighted_metrics = self._beside_means(kwargs.pop("metrics"), loss)
        elif is_auto:
            # The metrics of a class that has its own are for its own loss.
            are_own = is_default_loss and has_own(self, "default_metrics")
            fit = are_own or are_means(loss)
            weighted_metrics = self.default_metrics() if fit else None
        if wrong := loss_of_probabilities(loss):
            raise ValueError(
                "`loss` must take logits, the outputs of this model: leave it out for "
                "the default, or give a cross-entropy of Keras with "
                f"`from_logits=True`. Received: loss={wrong!r}"
            )
        if not self._is_loading and (not is_auto or given_metrics is not None):
            name = "weighted_metrics" if given_metrics is None else "metrics"
            check_metrics(name, weighted_metrics, loss)
        super().compile(
            optimizer=optimizer, loss=loss, weighted_metrics=weighted_metrics, **kwargs
        )
        weights = kwargs.get("loss_weights")
        self._weights_of_means = self._means_in_loss(loss, weights)
        if self.accumulation_steps > 1 and self._weights_of_means is None:
            # The means that are in `loss` are not reported by their weights then.
            raise ValueError(
                "`loss` must be a dict with all outputs, and `loss_weights` one or "
                "None, of one output None, with `accumulation_steps`. Received: "
                f"loss={loss!r}, loss_weights={weights!r}, "
                f"accumulation_steps={self.accumulation_steps}"
            )

    def compile_from_config(self, config: Config) -> None:
        self._is_loading = True  # Metrics that do not fit keep no model from loading.
        try:
            super().compile_from_config(config)
        finally:
            self._is_loading = False

    def _fit_warnings(self, steps):
        yield from super()._fit_warnings(steps)
        # Keras lists no weights of a frozen encoder, whatever its layers say.
        of_encoder = any(weight.trainable for weight in self.encoder.weights)
        is_frozen = self.trainable_weights and not of_encoder
        if is_frozen and was_teacher(self.encoder):
            yield (
                "`encoder` was frozen as a teacher in `Distillation`, so that the head "
                "learns alone. Set `encoder.trainable = True` and compile again to "
                "train it"
            )

    def _beside_means(self, metrics, loss):
        """The given metrics, and the default one by which `loss` is a mean over all.

        Where outputs or metrics have names, or the loss is another one, the given ones
        alone.
        """
        default = self.default_metrics()
        has_names = isinstance(default, dict) or isinstance(metrics, dict)
        if has_names or not are_means(loss):
            return metrics
        means = [metric for metric in default if metric.name == TARGET_MEAN]
        return [*means, *keras.tree.flatten(metrics)]

    def _means_in_loss(self, loss, weights):
        """Each output's weight in the reported loss.

        None if the loss is not a weighted sum of means over all targets.
        """
        if not are_means(loss):
            return None
        if self.output_weights is None:
            return (1.0,) if weights is None else None
        if len(keras.tree.flatten(loss)) < len(self.output_weights):
            return None
        weights = {} if weights is None else weights
        if not isinstance(weights, dict):
            return None
        return tuple(float(weights.get(name, 1.0)) for name in self.output_weights)

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        if isinstance(inputs, dict):
            inputs = exact_inputs(inputs, self.input)
            if "mask_positions" in inputs:
                last = inputs["token_ids"].shape[1]
                if last is not None:
                    check_range("mask_positions", inputs["mask_positions"], 0, last - 1)
        return super().call(inputs, training=training, mask=mask)

    def export(
        self,
        filepath: str | os.PathLike,
        format: str = "tf_saved_model",
        verbose: bool | None = None,
        input_signature: Any = None,
        **kwargs: Any,
    ) -> None:
        """Writes the model as a SavedModel, for LiteRT or for ONNX.

        The file takes the model's inputs, int32, and returns its outputs, by their
        names; a single one is `logits`. That of a `tfeff.tasks.SentenceEmbedding` takes
        its encoder's inputs, one text a row, and returns `embeddings`.

        Args:
            filepath, format, verbose, input_signature, **kwargs: as in
                `tfeff.encoders.Encoder.export`.

        Raises:
            ValueError: as `tfeff.encoders.Encoder.export`.

        Example:

        ```python
        import tfeff

        encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=100)
        model = tfeff.tasks.Classifier(encoder, num_classes=2)
        model.export("classifier.onnx", format="onnx")
        ```
        """
        inputs, outputs = self.exported()
        export_outputs(
            self.name,
            inputs,
            outputs,
            filepath,
            format=format,
            verbose=verbose,
            input_signature=input_signature,
            **kwargs,
        )

    def exported(self) -> tuple[dict, dict]:
        """The inputs and outputs of `export`, `keras.KerasTensor` by name."""
        output = symbolic_outputs(self)
        return self.input, output if isinstance(output, dict) else {"logits": output}

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        check_targets(y, self.output_weights)
        if isinstance(y, Mapping) and ops.is_tensor(y_pred):
            raise ValueError(
                "`y` must be one array of targets, as the model has one output. "
                f"Received: a mapping of {', '.join(map(repr, y))}"
            )
        self._check_weights(sample_weight)
        if not are_means(self.loss):
            y, y_pred, sample_weight = self._as_columns(y, y_pred, sample_weight)
            self._check_rank(y, y_pred)
        return super().compute_loss(x, y, y_pred, sample_weight, training)

    def _check_rank(self, y, y_pred):
        """Raises for ids of classes that Keras would broadcast to the outputs."""
        is_one = all(map(ops.is_tensor, (y, y_pred)))
        if not is_one or len(y.shape) >= len(y_pred.shape) or y_pred.shape[-1] == 1:
            return
        if broadcasts_ids(self.loss):
            raise ValueError(
                "`y` must have a target for each output with this `loss` of `compile`. "
                "Leave `loss` out for ids of classes, or give one-hot vectors. "
                f"Received: y of shape {tuple(y.shape)} for outputs of shape "
                f"{tuple(y_pred.shape)}, loss={self.loss!r}"
            )

    def target_weights(self, x: Any, y: Any, sample_weight: Any = None) -> Any:
        self._check_weights(sample_weight)
        return super().target_weights(x, y, sample_weight)

    def _check_weights(self, sample_weight):
        """Raises for weights by name that are not those of all targets."""
        if self.output_weights is not None:
            check_weights(sample_weight, self.output_weights)

    def compute_metrics(
        self, x: Any, y: Any, y_pred: Any, sample_weight: Any = None
    ) -> dict[str, Any]:
        y, y_pred, sample_weight = self._as_columns(y, y_pred, sample_weight)
        # In float32, as the loss, if the model computes in half precision.
        y_pred = keras.tree.map_structure(lambda z: ops.cast(z, "float32"), y_pred)
        return super().compute_metrics(x, y, y_pred, sample_weight)

    def _as_columns(self, y, y_pred, sample_weight):
        """Arguments of Keras' losses and metrics; of single numbers `as_columns`."""
        return y, y_pred, sample_weight

    def get_metrics_result(self) -> dict[str, Any]:
        """Metrics by name; losses are means over targets, not over batches."""
        logs = super().get_metrics_result()
        keys, parts = [TARGET_MEAN], list(self.output_weights or ())
        if len(parts) > 1:  # Keras gives the metrics of one output alone no prefix.
            keys = [f"{name}_{TARGET_MEAN}" for name in parts]
        if not all(key in logs for key in keys):
            return logs
        means = [logs.pop(key) for key in keys]
        if len(parts) > 1:
            logs |= {f"{name}_loss": mean for name, mean in zip(parts, means)}
        # A user's own loss is reported as Keras does.
        is_known = not has_own(self, "compute_loss")
        if self._weights_of_means is not None and is_known:
            logs["loss"] = sum(w * m for w, m in zip(self._weights_of_means, means))
        return logs

    def get_config(self) -> Config:
        check_config(self)
        return {
            "name": self.name,
            "trainable": self.trainable,
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            **layer_states(self),
        }

    @classmethod
    def from_config(cls, config: Config) -> "Objective":
        config = dict(config)
        encoder = config.pop(cls.encoder_argument)
        return cls.of_encoder(keras.saving.deserialize_keras_object(encoder), config)

    @classmethod
    def of_encoder(cls, encoder: Encoder, config: dict) -> "Objective":
        """The model of an encoder and of the rest of its configuration."""
        return make_with_states(cls, {**config, cls.encoder_argument: encoder})

    @classmethod
    def with_options(cls, config: dict, options: dict) -> dict:
        """The rest of the configuration, of an encoder that was loaded with options.

        Raises:
            OptionError: if the model cannot have one of them.
        """
        return config


def as_columns(y, y_pred, sample_weight=None) -> tuple:
    """Targets, outputs and weights `[..., 1]` of outputs `[...]`, one number a target.

    Keras' losses and metrics take the mean over the last axis.

    Args:
        y, sample_weight: tensors, or structures of one, as Keras takes them.
        y_pred: tensor of outputs.

    Raises:
        ValueError: if the targets have another shape than the outputs.
    """
    y, sample_weight = _the_one(y), _the_one(sample_weight)
    if sample_weight is not None and len(sample_weight.shape) == len(y_pred.shape):
        sample_weight = ops.expand_dims(sample_weight, -1)
    y_pred = ops.expand_dims(y_pred, -1)
    if len(y.shape) == len(y_pred.shape) - 1:
        y = ops.expand_dims(y, -1)
    if not shapes_agree(y.shape, y_pred.shape):
        raise ValueError(
            f"`y` must have the shape of the outputs, {tuple(y_pred.shape[:-1])}, or "
            f"be a column of one axis more. Received: shape {tuple(y.shape)}"
        )
    return y, y_pred, sample_weight


def _the_one(structure):
    """The only tensor of a list, a tuple or a dict; what else there is as it is."""
    leaves = keras.tree.flatten(structure)
    return leaves[0] if len(leaves) == 1 else structure


def are_means(loss) -> bool:
    """Whether all losses, of which there is one at least, are `GlobalMean`s."""
    losses = list(loss.values()) if isinstance(loss, dict) else [loss]
    return all(isinstance(part, GlobalMean) for part in losses)


def mask_positions_input() -> keras.KerasTensor:
    """The input `[B, M]` of the positions to predict."""
    return keras.Input((None,), dtype="int32", name="mask_positions")
