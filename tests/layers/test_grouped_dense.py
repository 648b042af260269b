"""Grouped linear layers against ConvBERT's equation 7."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import (
    arrays_of,
    assert_close,
    check_gradients,
    randomize,
    variables_of,
)
from tests.reference import gelu, grouped_linear, part_of
from tfeff.layers import FeedForward, GroupedDense


def randomized(layer, *shape):
    layer.build(shape)
    randomize(variables_of(layer))
    return layer


def inputs_of(*shape, dtype="float32"):
    return np.random.default_rng(2).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("units, num_groups, size", [(6, 2, 4), (3, 3, 9), (5, 1, 2)])
@pytest.mark.parametrize(
    "leading", [(), (7,), (2, 3), (4, 5), (1, 1), (2, 3, 2), (1, 2, 1, 2, 1, 2, 1)]
)
def test_equals_the_equation(units, num_groups, size, leading):
    inputs = inputs_of(*leading, size)
    for dtype, tolerance in (("float32", 1e-5), ("float64", 1e-12)):
        layer = randomized(GroupedDense(units, num_groups, dtype=dtype), *inputs.shape)
        expected = grouped_linear(
            inputs.astype("float64"), arrays_of(variables_of(layer))
        )
        output = layer(inputs.astype(dtype))
        assert output.dtype == dtype
        assert_close(output, expected, tolerance)


def test_gradients():
    layer = randomized(GroupedDense(6, 2, dtype="float64"), None, None, 4)
    check_gradients(
        lambda inputs: layer(inputs),
        lambda arrays: grouped_linear(arrays["inputs"], arrays),
        variables_of(layer),
        {"inputs": inputs_of(2, 3, 4, dtype="float64")},
    )


def test_weights():
    layer = randomized(GroupedDense(6, 2), None, None, 4)
    shapes = {name: tuple(v.shape) for name, v in variables_of(layer).items()}
    assert shapes == {"dense/kernel": (2, 2, 3), "bias": (6,)}


@pytest.mark.parametrize("name", ["glorot_uniform", "he_normal"])
def test_a_group_starts_as_a_dense_layer_of_its_size(name):
    kernels = {}
    for groups in (1, 8):
        layer = GroupedDense(64 * groups, groups, kernel_initializer=name)
        layer.build((None, 64 * groups))
        kernels[groups] = np.asarray(layer.dense.kernel)
    assert abs(kernels[8].std() / kernels[1].std() - 1) < 0.05
    seeded = keras.initializers.get({"class_name": name, "config": {"seed": 1}})
    layer = GroupedDense(64, 1, kernel_initializer=seeded)
    layer.build((None, 64))
    np.testing.assert_array_equal(layer.dense.kernel[0], seeded((64, 64)))


def test_one_group_is_a_dense_layer():
    inputs = inputs_of(2, 5, 8)
    grouped = randomized(GroupedDense(6, 1, activation="tanh"), None, None, 8)
    dense = keras.layers.Dense(6, activation="tanh")
    dense.build((None, None, 8))
    weights = arrays_of(variables_of(grouped))
    dense.set_weights([weights["dense/kernel"][0], weights["bias"]])
    assert_close(grouped(inputs), dense(inputs), 1e-6)


def test_a_group_reads_its_own_part_alone():
    layer = randomized(GroupedDense(6, 3), None, None, 9)
    inputs = inputs_of(2, 5, 9)
    output = np.asarray(layer(inputs))
    changed = inputs.copy()
    changed[..., 3:6] += 1.0
    moved = np.abs(np.asarray(layer(changed)) - output) > 1e-6
    np.testing.assert_array_equal(moved.all(axis=(0, 1)), [0, 0, 1, 1, 0, 0])
    np.testing.assert_array_equal(moved.any(axis=(0, 1)), [0, 0, 1, 1, 0, 0])


def test_any_shape_with_one_trace_and_compiled():
    layer = randomized(GroupedDense(6, 2, activation="gelu"), None, None, 4)
    call = tf.function(layer, input_signature=[tf.TensorSpec((None, None, 4))])
    compiled = tf.function(layer, jit_compile=True)
    for shape in ((2, 3), (1, 1), (4, 7)):
        inputs = inputs_of(*shape, 4)
        expected = gelu(
            grouped_linear(inputs.astype("float64"), arrays_of(variables_of(layer)))
        )
        assert_close(call(inputs), expected, 1e-5, "dynamic")
        assert_close(compiled(inputs), expected, 1e-5, "XLA")


def test_saving(tmp_path):
    layer = GroupedDense(6, 2, activation="tanh", bias_initializer="ones")
    inputs = keras.Input((None, 4))
    model = keras.Model(inputs, layer(inputs))
    assert model.output.shape == (None, None, 6)
    randomize(variables_of(layer))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    values = inputs_of(2, 3, 4)
    np.testing.assert_array_equal(loaded(values), model(values))
    config = json.dumps(keras.saving.serialize_keras_object(layer))
    copy = keras.saving.deserialize_keras_object(json.loads(config))
    assert json.dumps(keras.saving.serialize_keras_object(copy)) == config


@pytest.mark.parametrize("dtype, digits", [("mixed_float16", 9), ("mixed_bfloat16", 6)])
def test_half_precision(dtype, digits):
    layer = randomized(GroupedDense(6, 2, dtype=dtype), None, None, 4)
    assert all(v.dtype == "float32" for v in layer.weights)
    inputs = inputs_of(2, 3, 4)
    expected = grouped_linear(inputs.astype("float64"), arrays_of(variables_of(layer)))
    output = layer(inputs)
    assert output.dtype == dtype.removeprefix("mixed_")
    error = np.abs(np.asarray(output, "float64") - expected).max()
    assert error <= 2.0**-digits * np.abs(expected).max()


def test_feed_forward_in_groups():
    """Both matrices are grouped; the GELU is between them."""
    layer = randomized(FeedForward(12, num_groups=2, dtype="float64"), None, None, 8)
    assert {n: tuple(v.shape) for n, v in variables_of(layer).items()} == {
        "intermediate/dense/kernel": (2, 4, 6),
        "intermediate/bias": (12,),
        "output/dense/kernel": (2, 6, 4),
        "output/bias": (8,),
    }

    def reference(arrays):
        inner = grouped_linear(arrays["hidden"], part_of(arrays, "intermediate"))
        return grouped_linear(gelu(inner), part_of(arrays, "output"))

    hidden = inputs_of(2, 3, 8, dtype="float64")
    arrays = arrays_of(variables_of(layer))
    assert_close(layer(hidden), reference({**arrays, "hidden": hidden}), 1e-10)
    check_gradients(
        lambda hidden: layer(hidden), reference, variables_of(layer), {"hidden": hidden}
    )


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda: GroupedDense(0, 1), "units"),
        (lambda: GroupedDense(4.0, 1), "units"),
        (lambda: GroupedDense(4, 0), "num_groups"),
        (lambda: GroupedDense(4, True), "num_groups"),
        (lambda: GroupedDense(4, 3), "num_groups"),
        (lambda: GroupedDense(6, 3)(inputs_of(1, 2, 8)), "num_groups"),
        (lambda: GroupedDense(6, 3)(keras.Input((None, None))), "num_groups"),
        (lambda: FeedForward(12, num_groups=5), "num_groups"),
        (lambda: FeedForward(12, num_groups=0), "num_groups"),
        (lambda: FeedForward(12, num_groups=3)(inputs_of(1, 2, 8)), "num_groups"),
    ],
)
def test_names_a_bad_argument(make, name):
    with pytest.raises(
        (ValueError, TypeError), match=f"`{name}` must .*Received: .*{name}="
    ):
        make()
