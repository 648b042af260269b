"""The gradient of a batch from its parts, of which one is in memory at a time.

    g = Σ_p ∇ Σ_{t in part p} w_t l_t / Σ_t w_t

The denominator is that of the whole batch on all replicas, so that `g` is the gradient
of the mean over all of its targets, not of a mean of the parts' means. It is known
before the first part, from the weights of the targets alone: no part waits for another
replica.

Metrics see every part. Random numbers are drawn for each part: dropout differs from
that of the whole batch.
"""

import keras
from keras import ops

from tfeff.training.losses import weights_are_shares
from tfeff.training.replicas import num_replicas, sum_over_replicas


def split_batch(model: keras.Model, data, check_rows) -> dict:
    """A batch in `n = accumulation_steps` parts: `[B, ...]` as `[n, B / n, ...]`.

    Args:
        model: a compiled `DistributedModel`, whose loss is made of `GlobalMean`.
        data: this replica's batch: `(x, y, sample_weight)`, the last two optional.
        check_rows: called with a number of rows that is known at run time alone and a
            message; returns the number, or fails with the message unless it is a
            multiple of `n`.

    Returns:
        Dict of `x`, `shares` and, if the batch has them, `y` and `weight`: those of the
        targets in the loss, and those of the metrics.

    Raises:
        ValueError: if the rows of the batch are not a multiple of `n`.
    """
    num_parts = model.accumulation_steps
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    # A part's losses are as large as the batch's, of which they are then the means.
    shares = keras.tree.map_structure(
        lambda weights: _shares(weights) * num_parts,
        model.target_weights(x, y, sample_weight),
    )
    # A missing part, such as labels, is not in the structure that is split.
    batch = {
        name: value
        for name, value in (("x", x), ("y", y), ("weight", sample_weight))
        if value is not None
    }
    return keras.tree.map_structure(
        lambda value: _split(value, num_parts, check_rows), batch | {"shares": shares}
    )


def loss_of_part(model: keras.Model, part: dict) -> tuple:
    """A part's share of the loss of a batch, and the model's outputs for it.

    Returns:
        `(scaled, loss, outputs)`; `scaled` is the loss as the optimizer scales it.

    Raises:
        ValueError: if layers add losses of their own.
    """
    outputs = model(part["x"], training=True)
    with weights_are_shares():
        loss = model.compute_loss(part["x"], part.get("y"), outputs, part["shares"])
    loss = loss / model.accumulation_steps
    scaled = model.optimizer.scale_loss(loss)
    if model.losses:
        raise ValueError(
            "With `accumulation_steps` layers must add no losses of their own, as "
            f"regularizers do. Received: {len(model.losses)} such losses"
        )
    return scaled, loss, outputs


def measure_part(model: keras.Model, part: dict, outputs) -> None:
    """Updates the metrics by a part."""
    model.compute_metrics(
        part["x"], part.get("y"), outputs, sample_weight=part.get("weight")
    )


def report_loss(model: keras.Model, loss, parts: dict) -> None:
    """Updates the metric that is the mean of losses by the loss of a whole batch.

    As in Keras' own steps, a batch weighs as much as it has rows.
    """
    num_parts, rows = ops.shape(keras.tree.flatten(parts["x"])[0])[:2]
    for metric in model.metrics:
        if metric.name == "loss":
            # The replicas' losses add up to it.
            metric.update_state(loss * num_replicas(model), num_parts * rows)


def sum_dtype(dtype) -> str:
    """The dtype to add up gradients in: small ones are lost to a large half sum."""
    dtype = keras.backend.standardize_dtype(dtype)
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _shares(weights):
    """Divides the weights of targets by the sum of weights of the global batch."""
    weights = ops.cast(weights, "float32")
    return ops.divide_no_nan(weights, sum_over_replicas(ops.sum(weights)))


def _split(value, num_parts, check_rows):
    """`[B, ...]` as `[num_parts, B / num_parts, ...]`."""
    value = ops.convert_to_tensor(value)
    rows, *others = ops.shape(value)
    message = (
        "`accumulation_steps` must divide the rows of each replica's batch. Received: "
        f"accumulation_steps={num_parts}"
    )
    if not isinstance(rows, int):
        rows = check_rows(rows, message)
    elif rows % num_parts:
        raise ValueError(f"{message}, {rows} rows")
    return ops.reshape(value, (num_parts, rows // num_parts, *others))
