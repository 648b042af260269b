"""A weight and its tensor: each direction is the other's inverse."""

import math
from types import SimpleNamespace

import keras
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfeff.convert.weights import Weight


@st.composite
def weights(draw):
    """A weight of any kind, and the tensor that holds its value."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    axes = draw(st.none() | st.permutations(range(len(shape))).map(tuple))
    kept = shape if axes is None else tuple(shape[axis] for axis in axes)
    # The variable may hold several axes in one.
    first = draw(st.integers(1, len(kept)))
    merged = (*kept[: first - 1], math.prod(kept[first - 1 :]))
    rows = draw(st.none() | st.permutations(range(merged[0])).map(tuple))
    variable = keras.Variable(np.zeros(merged, "float32"))
    given_shape = shape if merged != kept else draw(st.sampled_from([shape, None]))
    unused = draw(st.integers(0, 2))
    tensor = np.arange(math.prod(shape), dtype="float32").reshape(shape)
    tensor = np.concatenate([np.zeros((unused, *shape[1:]), "float32"), tensor])
    return Weight(variable, "name", axes, given_shape, rows, unused), tensor


@given(weights())
def test_the_tensor_of_a_value_is_the_tensor(drawn):
    weight, tensor = drawn
    assert weight.expected_shape == tensor.shape
    value = weight.value(SimpleNamespace(read=lambda: tensor))
    weight.variable.assign(value)
    np.testing.assert_array_equal(weight.tensor(), tensor)


def test_order_of_axes_and_rows():
    """Row `i` of the value is row `rows[i]` of the transposed tensor."""
    tensor = np.arange(24, dtype="float32").reshape(2, 3, 4)
    variable = keras.Variable(np.zeros((3, 8), "float32"))
    weight = Weight(variable, "name", (1, 2, 0), (2, 3, 4), rows=(2, 0, 1))
    value = weight.value(SimpleNamespace(read=lambda: tensor))
    for row in range(3):
        for size in range(4):
            for output in range(2):
                expected = tensor[output, (2, 0, 1)[row], size]
                assert value[row, 2 * size + output] == expected
