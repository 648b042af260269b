"""A step of training on parts of a batch, by each backend's own gradients and loops."""

from collections.abc import Callable

import keras

from tfeff.training.accumulation import (
    loss_of_part,
    measure_part,
    report_loss,
    split_batch,
    sum_dtype,
)


def train_in_parts(model: keras.Model, *arguments):
    """Does what `train_step` of a model does, on one part of the batch after another.

    Args:
        model: a compiled `DistributedModel`, whose loss is made of `GlobalMean`.
        *arguments: those of `train_step`: the batch, after the state on JAX.

    Returns:
        What `train_step` returns.

    Raises:
        ValueError: if the rows of the batch are not a multiple of
            `accumulation_steps`, or layers add losses of their own.
    """
    return _STEPS[keras.backend.backend()](model, *arguments)


def check_steps_per_execution(steps: int) -> None:
    """Raises where Keras cannot run several steps in an execution, which is PyTorch."""
    if steps != 1 and keras.backend.backend() == "torch":
        raise ValueError(
            "`steps_per_execution` must be 1 with Keras on PyTorch. "
            f"Received: steps_per_execution={steps}"
        )


def _on_tensorflow(model, data):
    import tensorflow as tf

    num_parts = model.accumulation_steps

    def check_rows(rows, message):
        check = tf.debugging.assert_equal(rows % num_parts, 0, message)
        with tf.control_dependencies([] if check is None else [check]):
            return tf.identity(rows)

    parts = split_batch(model, data, check_rows)
    weights = model.trainable_weights
    unconnected = set()

    def add_part(index, loss, sums):
        part = _part(parts, index)
        with tf.GradientTape() as tape:
            scaled, of_part, outputs = loss_of_part(model, part)
        gradients = tape.gradient(scaled, weights)
        unconnected.update(i for i, g in enumerate(gradients) if g is None)
        sums = [
            total if g is None else _added(weight, total, tf.cast(g, total.dtype))
            for weight, total, g in zip(weights, sums, gradients, strict=True)
        ]
        measure_part(model, part, outputs)
        return index + 1, loss + tf.cast(of_part, loss.dtype), sums

    _, loss, sums = tf.while_loop(
        lambda index, *_: index < num_parts,
        add_part,
        (
            tf.constant(0),
            tf.constant(0.0),
            [tf.zeros(w.shape, sum_dtype(w.dtype)) for w in weights],
        ),
        parallel_iterations=1,
    )
    report_loss(model, loss, parts)
    gradients = [
        None if index in unconnected else tf.cast(total, weight.dtype)
        for index, (weight, total) in enumerate(zip(weights, sums, strict=True))
    ]
    model.optimizer.apply(gradients, weights)
    return model.get_metrics_result()


def _added(weight, total, gradient):
    """The sum of gradients with those of one more part; `total` is None at first.

    Keras gives float8's scales and histories of largest values in place of their
    gradients: the parts make these from the same old ones, and the largest values are
    those of the whole batch.
    """
    if total is None:
        return gradient
    if weight.overwrite_with_gradient:
        return keras.ops.maximum(total, gradient)
    return total + gradient


def _part(parts, index):
    return keras.tree.map_structure(lambda value: value[index], parts)


def _on_torch(model, data):
    import torch

    parts = split_batch(model, data, None)
    weights = model.trainable_weights
    # Others may be frozen in PyTorch's own way.
    trained = [i for i, w in enumerate(weights) if w.value.requires_grad]
    values = [weights[i].value for i in trained]
    sums, loss = [None] * len(weights), 0.0
    for index in range(model.accumulation_steps):
        part = _part(parts, index)
        scaled, of_part, outputs = loss_of_part(model, part)
        gradients = torch.autograd.grad(scaled, values, allow_unused=True)
        with torch.no_grad():
            for i, gradient in zip(trained, gradients, strict=True):
                if gradient is not None:
                    gradient = keras.ops.cast(gradient, sum_dtype(gradient.dtype))
                    sums[i] = _added(weights[i], sums[i], gradient)
            loss = loss + keras.ops.cast(of_part, "float32")
            measure_part(model, part, outputs)
    with torch.no_grad():
        report_loss(model, loss, parts)
        gradients = [
            None if total is None else keras.ops.cast(total, weight.dtype)
            for weight, total in zip(weights, sums, strict=True)
        ]
        model.optimizer.apply(gradients, weights)
    return model.get_metrics_result()


def _on_jax(model, state, data):
    import jax

    parts = split_batch(model, data, None)
    trainable, others, optimizer, metrics = state

    def run(function, others, metrics, trainable=trainable):
        """Calls a function in this state; returns its result and the state after."""
        groups = [
            (model.trainable_variables, trainable),
            (model.non_trainable_variables, others),
            (model.optimizer.variables, optimizer),
            (model.metrics_variables, metrics),
        ]
        values = [pair for group in groups for pair in zip(*group, strict=True)]
        with keras.StatelessScope(values, collect_losses=True) as scope:
            result = function()
        now = [[scope.get_current_value(v) for v in group] for group, _ in groups]
        return result, (now[1], now[3])

    def loss_and_others(trainable, others, metrics, part):
        (scaled, *aux), state = run(
            lambda: loss_of_part(model, part), others, metrics, trainable
        )
        return scaled, (*aux, *state)

    def add_part(carry, part):
        sums, loss, others, metrics = carry
        gradients, (of_part, outputs, others, metrics) = jax.grad(
            loss_and_others, has_aux=True
        )(trainable, others, metrics, part)
        sums = [
            _added(weight, total, gradient.astype(total.dtype))
            for weight, total, gradient in zip(
                model.trainable_variables, sums, gradients, strict=True
            )
        ]
        _, state = run(lambda: measure_part(model, part, outputs), others, metrics)
        return (sums, loss + of_part.astype(loss.dtype), *state), None

    sums = [jax.numpy.zeros(x.shape, sum_dtype(x.dtype)) for x in trainable]
    start = sums, jax.numpy.zeros((), "float32"), others, metrics
    (sums, loss, others, metrics), _ = jax.lax.scan(add_part, start, parts)
    gradients = [x.astype(y.dtype) for x, y in zip(sums, trainable, strict=True)]
    trainable, optimizer = model.optimizer.stateless_apply(
        optimizer, gradients, trainable
    )

    def report():
        report_loss(model, loss, parts)
        return model.get_metrics_result()

    logs, (others, metrics) = run(report, others, metrics)
    return logs, (trainable, others, optimizer, metrics)


_STEPS: dict[str, Callable] = {
    "tensorflow": _on_tensorflow,
    "torch": _on_torch,
    "jax": _on_jax,
}
