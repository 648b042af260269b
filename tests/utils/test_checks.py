"""Checks of arguments: values that compare or iterate in ways of their own."""

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tfeff.utils import checks

ARRAYS = [np.array(["a", "b"]), np.array("a"), tf.constant("a"), tf.constant(["a"])]


@pytest.mark.parametrize("value", [*ARRAYS, None, 1, b"a", ["a"], {"a"}], ids=repr)
def test_no_array_is_a_choice(value):
    with pytest.raises(ValueError, match="`mode` must be one of .* Received: mode="):
        checks.check_choice("mode", value, ("a", "b"))
    assert checks.check_choice("mode", np.str_("a"), ("a", "b")) == "a"


def test_messages_leave_out_the_middle_of_long_values():
    assert checks.shortened([1, 2]) == "[1, 2]"
    assert checks.shortened("ab" * 4, 4) == "ab … ab"


@pytest.mark.parametrize("value", [np.array(1), tf.constant(1), "a", b"a", 1], ids=repr)
def test_what_has_no_elements_is_named(value):
    with pytest.raises(TypeError, match="`values` must be numbers. Received: values="):
        checks.check_iterable("values", value, "numbers")
    assert len(checks.check_iterable("values", np.array([1]), "numbers")) == 1
    with pytest.raises(TypeError, match="`values` must be numbers. Received: values="):
        checks.check_ordered("values", value, "numbers")


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("patterns", lambda items: tfeff.data.text_files(items)),
        ("words", lambda items: tfeff.tasks.WordVectors(items, np.eye(2))),
        ("merges", lambda items: tfeff.data.RobertaTokenizer({"a": 0}, items)),
        ("seeds", lambda items: tfeff.training.Grid("runs", {}, items, "accuracy")),
        ("rate", lambda items: tfeff.training.Grid("runs", {"rate": items}, [0], "f1")),
    ],
)
def test_a_set_has_no_order(name, call):
    with pytest.raises(TypeError, match=f"`{name}` must be .* in an order. Received: "):
        call({"a", "b"})
    with pytest.raises(TypeError, match="Give a list: the order of a set is another"):
        call(frozenset({"a", "b"}))


@pytest.mark.parametrize(
    "check",
    [
        *(checks.check_rate, checks.check_positive, checks.check_weight),
        checks.check_number,
    ],
)
def test_a_bool_is_no_number(check):
    for value in (True, False, np.True_, "x", None, float("nan")):
        with pytest.raises((TypeError, ValueError), match=f"`n` must .*n={value!r}"):
            check("n", value)
    assert check("n", np.float32(0.5)) == 0.5


@pytest.mark.parametrize("value", [1e-50, 1e-45, 1e39])
def test_numbers_that_float32_makes_0_or_infinite_are_refused(value):
    given = {"run_dir": "run", "task": "SST-2", "data": "glue", "pretrained": "preset"}
    with pytest.raises(ValueError, match="`x` must be a number of float32"):
        checks.check_positive("x", value)
    with pytest.raises(ValueError, match="`epsilon` must be a number of float32"):
        tfeff.training.adamw(1e-3, 1, 2, epsilon=value)
    with pytest.raises(
        ValueError, match="`learning_rates` must be a number of float32"
    ):
        tfeff.recipes.FinetuneSettings(**given, learning_rates=(value,))


def test_numbers_of_float32():
    for value in (1e-37, 1.0, 3.4e38):
        assert checks.check_positive("x", value) == value
    for value in (0, 1e-45, 1e-50):
        assert checks.check_weight("x", value) == value
    with pytest.raises(ValueError, match="`x` must be a number of float32"):
        checks.check_weight("x", 1e39)
