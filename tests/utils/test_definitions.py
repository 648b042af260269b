"""What a notebook's cell defines again is the same definition; other things are not."""

import dataclasses
import functools
import random

import numpy as np
import pytest

from tfeff.utils.definitions import refusal, same_definition

CELL = """
import dataclasses, functools

@dataclasses.dataclass(frozen=True)
class Settings:
    rate: float = {rate}

class Layer:
    units = {rate}

def score(x):
    return {rate} * x

def reader(name, unit):
    def read(split):
        return name, split, unit
    return read

square = lambda x: {rate} * x
local = reader("a", score)
constant = lambda x, rate={rate}: rate
later = functools.partial(score, x={rate})
record = Settings(), Layer, {{"score": score}}
"""
NAMES = "Layer", "Settings", "score", "square", "local", "constant", "later", "record"


def run(rate=1, name="__main__"):
    """The names of the cell after it was run."""
    names = {"__name__": name}
    exec(compile(CELL.format(rate=rate), "<cell>", "exec"), names)
    return names


def test_a_cell_that_is_run_again():
    one, other = run(), run()
    for name in NAMES:
        assert one[name] is not other[name]
        assert same_definition(one[name], other[name]), name
        assert not same_definition(one[name], run(name="other")[name]), name


def test_a_cell_that_was_edited():
    """Names say what is meant; what has none of its own must be equal."""
    one, other = run(1), run(2)
    same = {name for name in NAMES if same_definition(one[name], other[name])}
    assert same == {"Layer", "Settings", "score", "local"}
    assert not same_definition(one["local"], one["reader"]("b", one["score"]))


def test_parts_of_a_cell_that_are_equal():
    assert same_definition(np.ones(2), np.ones(2))
    cell = "f = lambda x: [y + 1 for y in x]\ng = lambda x: x + 2"
    one, other = ({"__name__": "cell"} for _ in range(2))
    exec(compile(cell, "a", "exec"), one)
    exec(compile(f"# A note.\n\n{cell}", "b", "exec"), other)
    assert same_definition(one["f"], other["f"])
    assert not same_definition(one["f"], other["g"])
    reader = "class Reader:\n    def __init__(self, path): self.path = path"
    exec(reader, one)
    exec(reader, other)
    assert same_definition(one["Reader"]("a"), other["Reader"]("a"))
    assert not same_definition(one["Reader"]("a"), other["Reader"]("b"))
    assert same_definition(one["Reader"]("a").__init__, other["Reader"]("a").__init__)
    assert not same_definition(random.Random(1), random.Random(2))


def test_what_cannot_be_compared_differs():
    assert not same_definition(functools.partial(len, np.ones(2)), print)
    assert not same_definition(np.ones(2), np.ones(2, "float32"))
    assert not same_definition(np.ones(2), np.ones(3))

    def looped():
        def inner():
            return inner

        return inner

    assert not same_definition(looped(), looped())

    def local_class():
        @dataclasses.dataclass
        class Local:
            pass

        return Local

    assert not same_definition(local_class(), local_class())
    assert not same_definition(1, 1.0) and same_definition((1, "a"), (1, "a"))


@pytest.mark.parametrize("name, advice", [("own", "tfeff's own"), ("theirs", "Python")])
def test_advice(name, advice):
    one, other = run(), run()
    registry = {"own": one["score"], "theirs": one["score"]}
    assert refusal(registry, {"own"}, "new", len) is None
    assert refusal(registry, {"own"}, name, one["score"]) is None
    assert advice in refusal(registry, {"own"}, name, len)
    assert refusal(registry, {"own"}, "theirs", other["score"]) is None
    assert "own" in refusal(registry, {"own"}, "own", other["score"])
    assert "own" in refusal(registry, {"alias"}, "alias", len)
