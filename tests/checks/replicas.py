"""Two replicas compute what one device computes."""

import functools

import keras
import numpy as np
import tensorflow as tf

from tfeff.training import make_strategy


@functools.cache
def two_replicas():
    """The one strategy over the two logical CPUs of this process, GPUs or not.

    Without GPUs it is that of recipes, since two over the same devices, in tests of one
    process, would take each other's collective operations for their own.
    """
    if not tf.config.list_logical_devices("GPU"):
        return make_strategy("mirrored")
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def check_two_replicas(make_model, dataset, steps=20, tolerance=1e-5):
    """`fit` under MirroredStrategy on two logical CPUs equals one device, in both.

    Args:
        make_model: builds and compiles a model; called once on one device and
            once in the strategy's scope. Dropout must be 0.
        dataset: a `tf.data.Dataset` of global batches, the same at each pass.
        steps: how many batches to train on.
        tolerance: how far any weight may be off after `steps` steps.

    Returns:
        The two models, the one device's first.
    """
    keras.utils.set_random_seed(0)
    single = make_model()
    start = single.get_weights()
    strategy = two_replicas()
    assert strategy.num_replicas_in_sync == 2
    with strategy.scope():
        double = make_model()
    double.set_weights(start)

    dataset = dataset.take(steps)
    losses = [
        model.fit(dataset, epochs=1, shuffle=False, verbose=0).history["loss"]
        for model in (single, double)
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4, err_msg="loss")
    for model in (single, double):
        assert int(model.optimizer.iterations.numpy()) == steps

    # In every replica, not only in the first one, whose weights are saved.
    for variable in (*double.weights, *double.optimizer.variables):
        first, second = strategy.experimental_local_results(variable.value)
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(second),
            keras.ops.convert_to_numpy(first),
            err_msg=f"{variable.path} in the second replica",
        )

    moved = 0.0
    for variable, before, one, two in zip(
        single.weights, start, single.get_weights(), double.get_weights()
    ):
        np.testing.assert_allclose(
            two, one, rtol=0, atol=tolerance, err_msg=variable.path
        )
        moved = max(moved, np.max(np.abs(one - before), initial=0.0))
    assert moved > 100 * tolerance, f"Training moved no weight further than {moved}."
    return single, double
