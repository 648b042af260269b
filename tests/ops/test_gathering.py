"""Rows at positions, against a loop over them."""

import numpy as np
import pytest
import tensorflow as tf

from tfeff.ops import gather_positions

POSITIONS = {
    "some": [[4, 0, 2], [1, 1, 4]],
    "one": [[3], [0]],
    "none": [[], []],
}


def loop(x, positions):
    rows = [[x[b, p] for p in some] for b, some in enumerate(positions)]
    return np.array(rows, x.dtype).reshape(*np.shape(positions), *x.shape[2:])


@pytest.mark.quick(
    "False-int32-rest0-some",
    "False-int32-rest1-some",
    "False-int32-rest2-some",
    "False-int64-rest0-some",
    "False-int64-rest1-some",
    "False-int64-rest2-some",
    "True-int32-rest0-some",
    "True-int32-rest1-some",
    "True-int32-rest2-some",
    "True-int64-rest0-some",
    "True-int64-rest1-some",
    "True-int64-rest2-some",
)
@pytest.mark.parametrize("positions", POSITIONS.values(), ids=POSITIONS)
@pytest.mark.parametrize("rest", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_rows_and_gradients(positions, rest, dtype, jit_compile):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, *rest))
    upstream = rng.normal(size=(*np.shape(positions), *rest))

    @tf.function(
        jit_compile=jit_compile,
        input_signature=[
            tf.TensorSpec((None, None, *rest), "float64"),
            tf.TensorSpec((None, None), dtype),
        ],
    )
    def run(x, positions):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = gather_positions(x, positions)
        return y, tape.gradient(y, x, output_gradients=upstream)

    y, gradient = run(x, np.array(positions, dtype))
    np.testing.assert_array_equal(y, loop(x, positions))
    expected = np.zeros_like(x)
    for b, some in enumerate(positions):
        for m, p in enumerate(some):
            expected[b, p] += upstream[b, m]
    np.testing.assert_allclose(gradient, expected, atol=1e-15)


def test_masks():
    x = np.random.default_rng(1).random((2, 5, 5)) < 0.5
    positions = np.array([[4, 0], [2, 3]])
    np.testing.assert_array_equal(gather_positions(x, positions), loop(x, positions))


@pytest.mark.parametrize("position", [-1, 5])
@pytest.mark.parametrize("sequence", [0, 1])
def test_no_row_of_another_sequence(position, sequence):
    positions = np.zeros((2, 3), "int32")
    positions[sequence, 1] = position
    x = np.ones((2, 5, 3))
    with pytest.raises(ValueError, match=f"`positions` must be .* {position} at"):
        gather_positions(x, positions)
    with pytest.raises(tf.errors.InvalidArgumentError):
        tf.function(gather_positions)(tf.constant(x), tf.constant(positions))
