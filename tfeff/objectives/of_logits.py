"""Losses and metrics of Keras that do not fit logits."""

import inspect
from collections.abc import Mapping
from typing import Any

import keras

from tfeff.training.losses import GlobalMeanBinaryCrossentropy, GlobalMeanCrossentropy

# Losses of probabilities that have no argument `from_logits`, and the names for which
# Keras chooses a cross-entropy of probabilities by the targets' shape.
_OF_PROBABILITIES = (
    keras.losses.kl_divergence,
    keras.losses.categorical_generalized_cross_entropy,
    keras.losses.dice,
    keras.losses.tversky,
)
# Losses that compare each output with a target of its own.
_OF_EACH_OUTPUT = (
    keras.losses.mean_squared_error,
    keras.losses.mean_absolute_error,
    keras.losses.mean_absolute_percentage_error,
    keras.losses.mean_squared_logarithmic_error,
    keras.losses.huber,
    keras.losses.log_cosh,
    keras.losses.hinge,
    keras.losses.squared_hinge,
    keras.losses.categorical_hinge,
    keras.losses.poisson,
    keras.losses.cosine_similarity,
    keras.losses.binary_crossentropy,
    keras.losses.binary_focal_crossentropy,
    keras.losses.categorical_crossentropy,
    keras.losses.categorical_focal_crossentropy,
)
_NAMES_OF_PROBABILITIES = ("crossentropy", "ce")
# Metrics of whatever they are given.
_OF_ANY = (
    keras.metrics.Mean,
    keras.metrics.MeanMetricWrapper,
    keras.metrics.Sum,
)
_OF_LOGITS = (
    "take logits, the outputs of this model: give a metric of Keras "
    "`from_logits=True`, or thresholds of logits, such as 0.0"
)
_OF_IDS = (
    "take ids of classes and a logit for each class, as those of Keras do whose "
    "names begin with `Sparse`; docs/FINETUNING.md shows how others are made to"
)


def loss_of_probabilities(losses):
    """The first loss that takes probabilities, or its name; `None` if none does.

    Such a loss trains silently, and badly, on logits.
    """
    for loss in keras.tree.flatten(losses):
        if loss in _NAMES_OF_PROBABILITIES:
            return loss
        found = _named(loss)
        of_logits = getattr(found, "from_logits", True)
        if inspect.isfunction(found):
            parameter = inspect.signature(found).parameters.get("from_logits")
            of_logits = parameter is None or parameter.default
        if not of_logits or _function_of(found) in _OF_PROBABILITIES:
            return loss
    return None


def check_metrics(argument: str, metrics: Any, losses: Any) -> None:
    """Raises for metrics of Keras' own that do not fit logits or the targets.

    A metric of probabilities would give a wrong number, and one of other targets than
    the loss' an error of TensorFlow. Where a loss does not say that it takes logits,
    nothing is known of its outputs.

    Args:
        argument: the name of the argument.
        metrics: its value, as `compile` takes it.
        losses: the losses of `compile`.

    Raises:
        ValueError: if there is one.
    """
    if isinstance(metrics, Mapping) and isinstance(losses, Mapping):
        for name, own in metrics.items():
            check_metrics(argument, own, losses.get(name))
        return
    kinds = keras.tree.flatten(losses)
    if not all(map(_takes_logits, kinds)):
        return
    of_ids = all(isinstance(loss, GlobalMeanCrossentropy) for loss in kinds)
    for metric in keras.tree.flatten(metrics):
        if advice := _advice(metric, of_ids):
            raise ValueError(f"`{argument}` must {advice}. Received: {metric!r}")


def broadcasts_ids(losses: Any) -> bool:
    """Whether one of Keras' losses compares each output with a target of its own.

    Ids of classes, one for a row of outputs, would be broadcast.
    """
    found = map(_named, keras.tree.flatten(losses))
    return any(_function_of(loss) in _OF_EACH_OUTPUT for loss in found)


def _named(loss):
    """The loss of a name or a class of Keras; any other one itself."""
    is_named = isinstance(loss, str) or inspect.isclass(loss)
    return keras.losses.get(loss) if is_named else loss


def _function_of(loss):
    """The function that a loss of Keras computes; of others the loss itself."""
    return getattr(loss, "fn", loss)


def _takes_logits(loss):
    ours = (GlobalMeanCrossentropy, GlobalMeanBinaryCrossentropy)
    return isinstance(loss, ours) or bool(getattr(loss, "from_logits", False))


def _advice(metric, of_ids):
    """Advice for a metric that does not fit; an empty text for one that does."""
    if isinstance(metric, str):
        if metric.lower() in ("accuracy", "acc"):  # Keras chooses one that fits.
            return ""
        if metric.lower() in _NAMES_OF_PROBABILITIES:
            return _OF_LOGITS
    found = _keras_class(metric)
    if found is None:
        return ""
    name, settings = found
    if _reads_probabilities(name, settings):
        return _OF_LOGITS
    of_sparse = settings.get("sparse_y_true") and not settings.get("sparse_y_pred")
    fits = name.startswith("sparse") or of_sparse
    return _OF_IDS if of_ids and not fits else ""


def _keras_class(metric):
    """The name and the settings of a metric of Keras' own; `None` of any other."""
    if isinstance(metric, str):
        named = {name.lower(): kind for name, kind in vars(keras.metrics).items()}
        plain = metric.replace("_", "").lower()
        metric = named.get(plain) or named.get(metric) or _short_name(metric)
    known = metric if inspect.isroutine(metric) or inspect.isclass(metric) else None
    kind = type(metric) if known is None else known
    if not (kind.__module__ or "").startswith("keras.") or kind in _OF_ANY:
        return None
    if known is None:
        return kind.__name__.lower(), metric.get_config()
    parameters = inspect.signature(known).parameters
    return kind.__name__.lower(), {n: p.default for n, p in parameters.items()}


def _short_name(name):
    """The function of Keras with a short name, such as `mse`; `None` if none has it."""
    try:
        return keras.losses.get(name)
    except ValueError:  # Keras will say so of the metric, too.
        return None


def _reads_probabilities(name, settings):
    if "from_logits" in settings:
        return not settings["from_logits"]
    if "thresholds" in settings:
        return settings["thresholds"] is None and settings.get("top_k") is None
    if "num_thresholds" in settings or settings.get("threshold") == 0.5:
        return True
    return name in ("kldivergence", "kl_divergence")
