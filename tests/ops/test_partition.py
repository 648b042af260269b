"""The partition of unity against its literal version, and its laws."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import assert_close
from tests.reference import bucket_function, partition_function
from tfeff.ops import bucket_functions, partition_functions, partition_reach

PARTS = (2, 4, 6, 8, 12, 16)
POSITIONS = np.concatenate([np.arange(-40, 41), [-5000, -512, 511, 5000]])


@st.composite
def places(draw):
    """A number of parts and a layer's index in a stack."""
    num_parts = 2 * draw(st.integers(1, 8))
    num_layers = draw(st.integers(1, 48))
    return num_parts, draw(st.integers(0, num_layers - 1)), num_layers


def literal(positions, *setting):
    values = [
        [partition_function(h, float(x), *setting) for x in np.ravel(positions)]
        for h in range(setting[0])
    ]
    return np.reshape(values, (setting[0], *np.shape(positions)))


@pytest.mark.parametrize("num_parts", PARTS)
@pytest.mark.parametrize(
    "layer_index, num_layers", [(0, 12), (5, 12), (11, 12), (0, 1)]
)
def test_equals_literal_version(num_parts, layer_index, num_layers):
    setting = (num_parts, layer_index, num_layers)
    expected = literal(POSITIONS, *setting)
    actual = partition_functions(POSITIONS.astype("int32"), *setting)
    assert_close(actual, expected, 1e-5)
    actual = partition_functions(POSITIONS.astype("float64"), *setting)
    assert actual.dtype == tf.float64
    assert_close(actual, expected, 1e-12)


def test_between_integers_and_in_any_shape():
    positions = np.random.default_rng(0).normal(scale=9.0, size=(2, 3, 4))
    expected = literal(positions, 6, 2, 5)
    assert_close(partition_functions(positions, 6, 2, 5), expected, 1e-12)


def test_defaults_are_the_first_of_twelve_layers():
    np.testing.assert_array_equal(
        partition_functions(POSITIONS, 8), partition_functions(POSITIONS, 8, 0, 12)
    )


# Layers with `alpha`, `beta` and `spacing` of their own.
OWN = [
    (8, 0, 12, -2.5, -0.3),
    (8, 3, 12, -0.01, None),
    (12, 3, 12, None, -1.5),
    (6, 11, 12, None, None, 3.0),
    (6, 1, 3, -4.0, None, 40.0),
    (4, 0, 1, -60.0, -2.0),
    (8, 0, 1, -9.0, -0.2),
]


@pytest.mark.parametrize("setting", OWN)
def test_own_constants_equal_literal_version(setting):
    positions = np.arange(-30, 31)
    expected = literal(positions, *setting)
    assert_close(
        partition_functions(positions.astype("int32"), *setting), expected, 1e-5
    )
    actual = partition_functions(positions.astype("float64"), *setting)
    assert_close(actual, expected, 1e-11)


def test_far_below_zero_alpha_gives_the_hinge():
    """As alpha falls, u converges to min(beta x / alpha, 1) (section A.1)."""
    for alpha in (-1e3, -1e6):
        for dtype in ("float32", "float64"):
            values = partition_functions(
                np.arange(1, 40).astype(dtype), 6, alpha=alpha, beta=alpha / 20
            )
            u = np.minimum(np.arange(1, 40) / 20, 1)
            expected = [(1 - u) ** 2, 2 * u * (1 - u), u**2]
            # At the hinge, u is off by ln(2) / alpha.
            error = np.abs(values[:3] - np.array(expected)).max()
            assert error < -2 * np.log(2) / alpha + 1e-5


@settings(max_examples=40)
@given(
    st.lists(st.floats(-1e5, 1e5, width=32), min_size=1, max_size=20),
    places(),
    *(st.floats(-6, 6).map(lambda x: -(10.0**x)) for _ in range(2)),
)
def test_own_constants_keep_the_sum(positions, setting, alpha, beta):
    constants = {} if setting[0] == 2 else dict(alpha=alpha, beta=beta)
    for dtype, tolerance in (("float32", 3e-6), ("float64", 1e-12)):
        values = partition_functions(np.array(positions, dtype), *setting, **constants)
        values = np.asarray(values, "float64")
        assert (values >= 0).all()
        np.testing.assert_allclose(values.sum(axis=0), 1, rtol=0, atol=tolerance)


@pytest.mark.parametrize("setting", [(12, 11, 12), *OWN])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_the_reach_is_where_the_inner_parts_vanish(setting, dtype):
    num_parts, layer_index, num_layers, *constants = setting
    reach = partition_reach(*setting[:3], dtype, *constants)
    outer = num_parts // 2 - 1
    positions = np.array([reach, reach + 1, reach + 2, 10 * reach + 9], "float64")
    inner = np.delete(np.asarray(partition_functions(positions, *setting)), outer, 0)
    inner = inner.sum(axis=0)
    rounding = {"float64": 2**-53, "float32": 2**-24, "bfloat16": 2**-8}[dtype]
    assert (inner[1:] <= rounding * (1 + 1e-9)).all()
    assert reach == 0 or inner[0] > rounding * (1 - 1e-9)


@settings(max_examples=60)
@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20),
    st.lists(st.floats(-1e5, 1e5, width=32), min_size=1, max_size=20),
    places(),
)
def test_is_a_partition_of_unity(integers, floats, setting):
    for positions in (np.array(integers, "int32"), np.array(floats, "float32")):
        values = np.asarray(partition_functions(positions, *setting), "float64")
        assert values.shape == (setting[0], len(positions))
        assert (values >= 0).all()
        np.testing.assert_allclose(values.sum(axis=0), 1, rtol=0, atol=2e-6)


@pytest.mark.parametrize("num_parts", range(2, 17, 2))
def test_sums_to_one_in_every_layer(num_parts):
    positions = np.arange(-600, 601).astype("float64")
    for layer_index in range(12):
        values = np.asarray(partition_functions(positions, num_parts, layer_index, 12))
        assert (values >= 0).all()
        np.testing.assert_allclose(values.sum(axis=0), 1, rtol=0, atol=1e-12)


@settings(max_examples=40)
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=20), places())
def test_is_symmetric(positions, setting):
    positions = np.array(positions, "int32")
    half = setting[0] // 2
    right = partition_functions(positions, *setting)[:half]
    left = partition_functions(-positions, *setting)[half:]
    np.testing.assert_allclose(right, left, rtol=0, atol=1e-7)


def test_figure_2():
    """Eight parts, the first of twelve layers: f_0 peaks at 1 and f_2 at 4."""
    values = np.asarray(partition_functions(np.arange(1, 50), 8, 0, 12))
    assert 1 + values[0].argmax() == 1
    assert 1 + values[2].argmax() == 4


def test_two_parts_are_steps():
    values = partition_functions(np.array([-7, -1, 0, 1, 7]), 2)
    np.testing.assert_array_equal(values, [[0, 0, 0.5, 1, 1], [1, 1, 0.5, 0, 0]])


def test_innermost_functions_share_position_zero():
    values = np.asarray(partition_functions(np.array([0]), 12, 3, 12))[:, 0]
    expected = np.zeros(12)
    expected[[0, 6]] = 0.5
    np.testing.assert_array_equal(values, expected)


def test_half_precision_settings_do_not_lower_the_precision():
    policy, floatx = keras.config.dtype_policy(), keras.config.floatx()
    try:
        keras.config.set_dtype_policy("float16")
        keras.config.set_floatx("float16")
        values = partition_functions(POSITIONS.astype("int32"), 12, 11, 12)
    finally:
        keras.config.set_dtype_policy(policy)
        keras.config.set_floatx(floatx)
    assert values.dtype in (tf.float32, tf.float64)
    assert_close(values, literal(POSITIONS, 12, 11, 12), 1e-5)


def test_half_precision_positions_do_not_lower_the_precision():
    positions = np.arange(-20, 21).astype("float16")
    values = partition_functions(positions, 12, 11, 12)
    assert values.dtype in (tf.float32, tf.float64)
    assert_close(values, literal(positions, 12, 11, 12), 1e-5)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"num_parts": 3}, "num_parts"),
        ({"num_parts": 0}, "num_parts"),
        ({"num_parts": -2}, "num_parts"),
        ({"num_parts": 4.0}, "num_parts"),
        ({"num_parts": 4, "layer_index": -1}, "layer_index"),
        ({"num_parts": 4, "layer_index": 12}, "layer_index"),
        ({"num_parts": 4, "num_layers": 0}, "num_layers"),
        ({"num_parts": 4, "alpha": 0}, "alpha"),
        ({"num_parts": 4, "alpha": float("nan")}, "alpha"),
        ({"num_parts": 4, "alpha": -1e7}, "alpha"),
        ({"num_parts": 4, "beta": 1.0}, "beta"),
        ({"num_parts": 4, "beta": "-1"}, "beta"),
        ({"num_parts": 4, "beta": -float("inf")}, "beta"),
        ({"num_parts": 4, "spacing": 0}, "spacing"),
        ({"num_parts": 4, "spacing": None}, "spacing"),
        ({"num_parts": 4, "spacing": True}, "spacing"),
        # They would have no effect.
        ({"num_parts": 4, "beta": -1.0, "spacing": 6}, "spacing"),
        ({"num_parts": 2, "alpha": -1.0}, "alpha"),
        ({"num_parts": 2, "spacing": 6}, "spacing"),
    ],
)
def test_partition_names_a_bad_argument(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        partition_functions(POSITIONS, **arguments)


@pytest.mark.parametrize("boundaries", [[0], [-3, 0, 1, 8], [-1.5, 2.5]])
def test_buckets_equal_literal_version(boundaries):
    for positions in (POSITIONS.astype("int32"), np.linspace(-9, 9, 61)):
        expected = [
            [bucket_function(h, x, boundaries) for x in positions]
            for h in range(len(boundaries) + 1)
        ]
        actual = bucket_functions(positions, boundaries)
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("boundaries", [[2, 1], [0, 0], [[0, 1]], ["a"], [True, 3], 3])
def test_buckets_name_bad_boundaries(boundaries):
    with pytest.raises((ValueError, TypeError), match="`boundaries` must .*Received: "):
        bucket_functions(POSITIONS, boundaries)
