"""Checks of arguments: values that compare or iterate in ways of their own."""

import numpy as np
import pytest
import tensorflow as tf

from tfeff.utils import checks

ARRAYS = [np.array(["a", "b"]), np.array("a"), tf.constant("a"), tf.constant(["a"])]


@pytest.mark.parametrize("value", [*ARRAYS, None, 1, b"a", ["a"], {"a"}], ids=repr)
def test_no_array_is_a_choice(value):
    with pytest.raises(ValueError, match="`mode` must be one of .* Received: mode="):
        checks.check_choice("mode", value, ("a", "b"))
    assert checks.check_choice("mode", np.str_("a"), ("a", "b")) == "a"


@pytest.mark.parametrize("value", [np.array(1), tf.constant(1), "a", b"a", 1], ids=repr)
def test_what_has_no_elements_is_named(value):
    with pytest.raises(TypeError, match="`values` must be numbers. Received: values="):
        checks.check_iterable("values", value, "numbers")
    assert len(checks.check_iterable("values", np.array([1]), "numbers")) == 1


@pytest.mark.parametrize(
    "check",
    [
        *(checks.check_rate, checks.check_positive, checks.check_weight),
        checks.check_fraction,
    ],
)
def test_a_bool_is_no_number(check):
    for value in (True, False, np.True_, "x", None, float("nan")):
        with pytest.raises((TypeError, ValueError), match=f"`n` must .*n={value!r}"):
            check("n", value)
    assert check("n", np.float32(0.5)) == 0.5
