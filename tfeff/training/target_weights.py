"""The weights of targets in a loss, and the targets that there must be."""

from collections.abc import Mapping

from keras import ops

from tfeff.compat.layers import keras_mask
from tfeff.utils.checks import shapes_agree


def check_targets(y, names=None):
    """Raises unless there are targets, by these names if there are any."""
    if y is None:
        raise ValueError("`y` must be the targets of the batches. Received: y=None")
    if names is not None and isinstance(y, Mapping) and set(y) != set(names):
        raise ValueError(
            f"`y` must have targets of {', '.join(names)}. Received: "
            f"{', '.join(y)}. The batches must be made for this model"
        )


def check_weights(sample_weight, names):
    """Raises for weights by name that are not those of all targets."""
    if isinstance(sample_weight, Mapping) and set(sample_weight) != set(names):
        raise ValueError(
            f"`sample_weight` must have weights of {', '.join(names)}. "
            f"Received: {', '.join(map(str, sample_weight)) or 'none'}"
        )


def target_weights(sample_weight, targets):
    """The weight of each target.

    Args:
        sample_weight: tensor of the first axes of the targets, such as `[B]` for
            weights of examples; `None` means 1 everywhere.
        targets: tensor of targets, or of their losses.

    Returns:
        Tensor of the targets' shape.

    Raises:
        ValueError: if `sample_weight` has other axes than the targets.
    """
    if sample_weight is None:
        return ops.ones_like(targets)
    rank = len(targets.shape)
    weights = _without_column(ops.convert_to_tensor(sample_weight), rank)
    if len(weights.shape) > rank:
        raise ValueError(
            f"`sample_weight` must have the axes of the targets, {targets.shape}. "
            f"Received: shape {weights.shape}"
        )
    while len(weights.shape) < rank:
        weights = ops.expand_dims(weights, -1)
    return ops.broadcast_to(weights, ops.shape(targets))


def weights_of_examples(sample_weight, targets):
    """Weights of whole examples, `[B]`; `None` where they are of single targets.

    Args:
        sample_weight: tensor of weights, or `None`.
        targets: tensor `[B, M]` of an example's targets: `[B, 1]` are weights of
            examples unless each has one target alone.
    """
    shape = () if sample_weight is None else sample_weight.shape
    if len(shape) == 2 and shape[-1] == 1 != targets.shape[-1]:
        return sample_weight[:, 0]
    return sample_weight if len(shape) == 1 else None


def mask_of_targets(y_pred, losses):
    """Keras' mask of the outputs if it is of the targets, by its axes, or `None`.

    One of more axes is of what was pooled to a target.
    """
    mask = keras_mask(y_pred)
    if mask is None or len(mask.shape) > len(losses.shape):
        return None
    targets = losses.shape[: len(mask.shape)]
    return mask if shapes_agree(mask.shape, targets) else None


def check_unmasked(mask):
    """Raises for masked outputs where weights are shares, made before there are any."""
    if mask is not None:
        raise ValueError(
            "`accumulation_steps` must be 1 for outputs with a mask of Keras': targets "
            "are counted before the model is called. Make `Embedding` without "
            "`mask_zero`, give the layers a `padding_mask`, and padding the weight 0"
        )


def shares(weights, losses):
    """Weights that are shares already, one for each loss."""
    if weights is not None:
        weights = _without_column(weights, len(losses.shape))
    if weights is None or len(weights.shape) != len(losses.shape):
        shape = None if weights is None else tuple(weights.shape)
        raise ValueError(
            "`target_weights` of the model must give a weight for each target, with "
            f"shape {tuple(losses.shape)}. Received: shape {shape}"
        )
    return ops.cast(weights, losses.dtype)


def _without_column(weights, rank):
    """Weights of `rank` axes where they are a column, `[..., 1]`, of one axis more."""
    is_column = len(weights.shape) == rank + 1 and weights.shape[-1] == 1
    return ops.squeeze(weights, -1) if is_column else weights
