"""The gradient of a batch from parts of it, one part in memory at a time."""

import keras
import tensorflow as tf

from tfeff.training.losses import weights_are_shares
from tfeff.training.replicas import sum_over_replicas


def gradients_in_parts(model: keras.Model, data, num_parts: int) -> list:
    """The gradient of a model's loss of a batch, summed over parts of the batch.

        g = Σ_p ∇ Σ_{t in part p} w_t l_t / Σ_t w_t

    The denominator is that of the whole batch on all replicas, so that `g` is the
    gradient of the mean over all of its targets, not of a mean of the parts' means. It
    is known before the first part, from the weights of the targets alone: no part waits
    for another replica.

    Metrics see every part. Random numbers are drawn for each part: dropout differs from
    that of the whole batch.

    Args:
        model: a compiled `DistributedModel`, whose loss is made of `GlobalMean`.
        data: this replica's batch: `(x, y, sample_weight)`, the last two optional.
        num_parts: integer, of how many rows each the same number.

    Returns:
        For each trainable weight its gradient, scaled as the optimizer scales losses;
        `None` where the loss does not depend on it.

    Raises:
        ValueError: if the rows of the batch are not a multiple of `num_parts`, or
            layers add losses of their own.
    """
    x, y, sample_weight = keras.utils.unpack_x_y_sample_weight(data)
    shares = keras.tree.map_structure(
        _shares, model.target_weights(x, y, sample_weight)
    )
    # A missing part, such as labels, is not in the structure that is split.
    batch = {
        name: value
        for name, value in (("x", x), ("y", y), ("weight", sample_weight))
        if value is not None
    }
    batch = keras.tree.map_structure(
        lambda value: _split(value, num_parts), batch | {"shares": shares}
    )
    weights = model.trainable_weights
    unconnected = set()

    def add_part(index, loss, sums):
        part = keras.tree.map_structure(lambda value: value[index], batch)
        x, y = part["x"], part.get("y")
        with tf.GradientTape() as tape:
            outputs = model(x, training=True)
            with weights_are_shares():
                of_part = model.compute_loss(x, y, outputs, part["shares"])
            scaled = model.optimizer.scale_loss(of_part)
        if model.losses:
            raise ValueError(
                "With `accumulation_steps` layers must add no losses of their own, as "
                f"regularizers do. Received: {len(model.losses)} such losses"
            )
        gradients = tape.gradient(scaled, weights)
        unconnected.update(i for i, g in enumerate(gradients) if g is None)
        sums = [
            total if gradient is None else total + tf.cast(gradient, total.dtype)
            for total, gradient in zip(sums, gradients, strict=True)
        ]
        model.compute_metrics(x, y, outputs, sample_weight=part.get("weight"))
        return index + 1, loss + tf.cast(of_part, loss.dtype), sums

    _, loss, sums = tf.while_loop(
        lambda index, *_: index < num_parts,
        add_part,
        (
            tf.constant(0),
            tf.constant(0.0),
            # In half precision, small gradients would be lost to a large sum.
            [tf.zeros(w.shape, _at_least_float32(w.dtype)) for w in weights],
        ),
        parallel_iterations=1,
    )
    _report(model, loss)
    return [
        None if index in unconnected else tf.cast(total, weight.dtype)
        for index, (weight, total) in enumerate(zip(weights, sums, strict=True))
    ]


def _shares(weights):
    """Weights of targets divided by those of all targets of the global batch."""
    weights = tf.cast(weights, tf.float32)
    return tf.math.divide_no_nan(weights, sum_over_replicas(tf.reduce_sum(weights)))


def _split(value, num_parts):
    """`[B, ...]` as `[num_parts, B / num_parts, ...]`."""
    value = tf.convert_to_tensor(value)
    rows = value.shape[0]
    message = (
        "`accumulation_steps` must divide the rows of each replica's batch. Received: "
        f"accumulation_steps={num_parts}"
    )
    if rows is not None and rows % num_parts:
        raise ValueError(f"{message}, {rows} rows")
    shape = tf.shape(value)
    checks = []
    if rows is None:
        checks = [tf.debugging.assert_equal(shape[0] % num_parts, 0, message)]
    with tf.control_dependencies([check for check in checks if check is not None]):
        new = tf.concat([[num_parts, shape[0] // num_parts], shape[1:]], 0)
    size = None if rows is None else rows // num_parts
    return tf.ensure_shape(tf.reshape(value, new), [num_parts, size, *value.shape[1:]])


def _report(model, loss):
    """Updates the metric that is the mean of losses."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    for metric in model.metrics:
        if metric.name == "loss":
            metric.update_state(loss * replicas)  # The replicas' losses add up to it.


def _at_least_float32(dtype):
    dtype = tf.as_dtype(dtype)
    return dtype if dtype.size >= 4 else tf.float32
