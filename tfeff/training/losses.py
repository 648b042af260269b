import contextlib
import contextvars
from collections.abc import Iterator

import keras
from keras import ops

from tfeff.ops.ids import check_integers, check_known, check_range, exact_tensor
from tfeff.training.replicas import sum_over_replicas
from tfeff.training.target_weights import (
    check_unmasked,
    mask_of_targets,
    shares,
    target_weights,
)
from tfeff.utils.types import DType, Tensor

# The commonest cause of targets that are floats.
_OF_RATINGS = (
    ": ids of classes, such as `y.astype('int32')`. Labels of `TextExamples` without "
    "`label_names` are ratings: give `label_names`, or use a `Regressor`"
)
_SHARES = contextvars.ContextVar("weights_are_shares", default=False)


@contextlib.contextmanager
def weights_are_shares() -> Iterator[None]:
    """Within it, weights are already divided by the sum of those of all targets.

    A `GlobalMean` then adds up the shares that the targets of this replica's part of a
    batch have in the mean over the whole batch. Weights must be given for every target.
    """
    token = _SHARES.set(True)
    try:
        yield
    finally:
        _SHARES.reset(token)


def global_mean(
    losses: Tensor, sample_weight: Tensor | None = None, mask: Tensor | None = None
) -> Tensor:
    """This replica's part of the mean over every weighted target of the global batch.

        Σ_t w_t l_t / Σ_r Σ_t w_t

    Args:
        losses: float tensor of the loss of each target.
        sample_weight: tensor of their shape, or of their first axes alone; `None` means
            1 everywhere.
        mask: bool tensor likewise; what it leaves out has no weight.

    Returns:
        Scalar; 0 if there is no weight at all.
    """
    if _SHARES.get():
        check_unmasked(mask)
        return ops.sum(losses * shares(sample_weight, losses))
    weights = ops.cast(target_weights(sample_weight, losses), losses.dtype)
    if mask is not None:
        weights = weights * target_weights(ops.cast(mask, losses.dtype), losses)
    total_weight = sum_over_replicas(ops.sum(weights))
    return ops.divide_no_nan(ops.sum(losses * weights), total_weight)


class GlobalMean(keras.losses.Loss):
    """Base of losses that average over every weighted target of the global batch.

    Keras averages inside a replica and then over the replicas, which weighs a target
    more where a replica happens to hold fewer. Here each replica divides its own sum
    by the weight of all of them, so that the gradients, summed over the replicas by
    the optimizer, are those of one device with the whole batch.

    Targets that Keras' mask of the outputs leaves out, such as those of padding behind
    `Embedding(mask_zero=True)`, have no weight.

    Subclasses implement `call(y_true, y_pred)`, the loss of each target.
    """

    def __init__(self, name: str, dtype=None):
        super().__init__(name=name, reduction="sum", dtype=dtype)

    def __call__(self, y_true, y_pred, sample_weight=None):
        with keras.name_scope(self.name):
            y_true = exact_tensor("y_true", y_true)
            losses = self.call(y_true, ops.convert_to_tensor(y_pred, dtype=self.dtype))
            mask = mask_of_targets(y_pred, losses)
            return global_mean(losses, sample_weight, mask)

    def get_config(self):
        return {"name": self.name, "dtype": self.dtype}


class MeanOfShares(keras.metrics.Mean):
    """The mean of losses of which each replica reports its share times their number.

    Keras weighs a replica's by its rows, which is right of means over these alone: a
    share is that of the global batch, and weighs as much as any other replica's.
    """

    def update_state(self, values, sample_weight):
        rows = ops.cast(sample_weight, self.dtype)
        ones = ops.ones_like(rows)
        weight = sum_over_replicas(rows) / sum_over_replicas(ones)
        return super().update_state(values, weight)


def cross_entropies(y_true: Tensor, y_pred: Tensor) -> Tensor:
    """The cross-entropy of each target, -log softmax(z)[y], of logits `[..., V]`."""
    losses = ops.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
    if keras.backend.backend() == "jax":  # There Keras gives 0 for what is no class.
        is_class = (y_true >= 0) & (y_true < ops.shape(y_pred)[-1])
        is_class = ops.reshape(is_class, ops.shape(losses))  # Targets may be a column.
        losses = ops.where(is_class, losses, float("nan"))
    return losses


def _check_rank(y_true, y_pred):
    """Raises unless there is one target for each row of logits, also in a column."""
    targets, rows = tuple(y_true.shape), tuple(y_pred.shape[:-1])
    if len(targets) == len(rows) or targets[len(rows) :] in ((1,), (None,)):
        return
    one_hot = len(targets) == len(rows) + 1 and targets[-1] == y_pred.shape[-1]
    advice = "The batches must be made for this model"
    if one_hot:
        advice = "Of one-hot vectors give `argmax(-1)`"
    raise ValueError(
        f"`y_true` must be the id of a class for each row of logits. {advice}. "
        f"Received: y_true of shape {targets}, y_pred of shape {tuple(y_pred.shape)}"
    )


@keras.saving.register_keras_serializable(package="tfeff")
class GlobalMeanCrossentropy(GlobalMean):
    """Cross-entropy averaged over every weighted target of the global batch.

        loss = Σ_r Σ_t w_t (-log softmax(z_t)[y_t]) / Σ_r Σ_t w_t

    with `r` over the replicas and `t` over the targets of each, so that all targets
    count the same, however many a replica holds.

    Args:
        name: what the loss is called in logs.
        dtype: dtype of the computation; `None` means Keras' default, float32.

    Call arguments:
        y_true: integer tensor `[...]` of target ids, from 0 to `V - 1`. One that is out
            of range is refused where it is known, in eager calls. In a compiled program
            it is an error of TensorFlow on CPUs; on GPUs, with XLA and on JAX the loss
            is NaN.
        y_pred: float tensor `[..., V]` of logits.
        sample_weight: float tensor `[...]`, or of the first axes alone, such as `[B]`;
            `None` means 1 everywhere.

    Returns:
        Scalar: this replica's part of the loss. The parts add up to the loss. 0 if
        there is no weight at all.

    Raises:
        TypeError: if `y_true` are not integers.
        ValueError: if a target is known to be out of range, or there is not one for
            each row of `y_pred`, as of one-hot vectors.

    Example:

    >>> loss = GlobalMeanCrossentropy()
    >>> value = loss([[1, 0]], [[[0.0, 0.0], [5.0, 0.0]]], sample_weight=[[1.0, 0.0]])
    >>> round(float(value), 4)
    0.6931
    """

    def __init__(self, name: str = "cross_entropy", dtype: DType | None = None):
        super().__init__(name=name, dtype=dtype)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        _check_rank(y_true, y_pred)
        check_integers("y_true", y_true, _OF_RATINGS)
        if y_pred.shape[-1] is not None:
            check_range("y_true", y_true, 0, y_pred.shape[-1] - 1)
        return cross_entropies(y_true, y_pred)


@keras.saving.register_keras_serializable(package="tfeff")
class GlobalMeanBinaryCrossentropy(GlobalMean):
    """As `GlobalMeanCrossentropy`, of targets that are 0 or 1.

        loss = Σ_r Σ_t w_t (-y_t log σ(z_t) - (1 - y_t) log σ(-z_t)) / Σ_r Σ_t w_t

    Args:
        name: what the loss is called in logs.
        dtype: dtype of the computation; `None` means Keras' default, float32.

    Call arguments:
        y_true: tensor `[...]` of zeros and ones. Anything else is refused where it is
            known, in eager calls; in a compiled program the loss is NaN.
        y_pred: float tensor `[...]` of logits.
        sample_weight: float tensor `[...]`; `None` means 1 everywhere.

    Returns:
        Scalar: this replica's part of the loss.

    Raises:
        ValueError: if a target is known to be neither 0 nor 1.

    Example:

    >>> value = GlobalMeanBinaryCrossentropy()([[1, 0]], [[0.0, 0.0]])
    >>> round(float(value), 4)
    0.6931
    """

    def __init__(self, name: str = "binary_cross_entropy", dtype: DType | None = None):
        super().__init__(name=name, dtype=dtype)

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        check_known("y_true", y_true, "0 or 1", lambda y: (y == 0) | (y == 1))
        binary = ops.logical_or(y_true == 0, y_true == 1)
        y_true = ops.cast(y_true, y_pred.dtype)
        losses = ops.binary_crossentropy(y_true, y_pred, from_logits=True)
        return ops.where(binary, losses, float("nan"))
