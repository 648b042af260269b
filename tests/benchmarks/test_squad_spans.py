"""Gold answers to tokens and back: what counts as a miss, and the page."""

import pytest

import tfeff
from tests.benchmarks.scripts import cells

PASSAGE = "The five foxes jumped over the lazy dogs."


@pytest.fixture(scope="module")
def spans(load):
    return load("squad_spans.py")


def asked(name, text):
    start = PASSAGE.index(text)
    span = (start, start + len(text))
    return tfeff.data.Question(name, "Who?", PASSAGE, (text,), (span,))


def test_misses_and_their_reasons(spans):
    tokenizer = tfeff.data.train_tokenizer([f"Who? {PASSAGE}"] * 9, 31)
    whole = asked("whole", "lazy dogs")
    pieces = len(tokenizer(PASSAGE))
    nobody = tfeff.data.Question("none", "Who?", PASSAGE)
    row, misses = spans["check"]([whole, nobody], tokenizer, 60, 128)
    assert misses == []
    assert (row["questions"], row["windows"], row["come back"]) == (1, 1, 100)
    # Longer than any window, and found in windows that overlap.
    room = pieces - 2
    length = room + 3 + len(tokenizer("Who?"))
    row, (miss,) = spans["check"](
        [asked("long", PASSAGE), asked("twice", "jumped")], tokenizer, length, 1
    )
    assert miss == ("long", PASSAGE, "", "no window holds the whole answer")
    assert row["come back"] == row["exact match"] == row["F1"] == 50
    assert row["exact match without the misses"] == 100
    assert (row["windows"], row["in several windows"]) == (6, 1)
    inside = asked("inside", "fox")
    start, end = inside.spans[0]
    reason = spans["reason"]
    assert reason(inside, (start, end + 2)) == "the answer ends inside of a token"
    sides = "the answer begins inside of a token and ends inside of a token"
    assert reason(inside, (start - 1, end + 2)) == sides


def test_page(spans):
    row = {"file": "a.json", "questions": 400, "come back": 99.75}
    miss = ("a.json", "q1", "x|y", "x|yz", "the answer ends inside of a token")
    lines = spans["report"]([row], [miss]).splitlines()
    assert "All: 99.75 % of 400, goal reached." in lines[2]
    assert cells(lines[-4 - 3]) == ["a.json", "400", "99.75"]
    assert lines[-1].startswith(r"| a.json | q1 | x\|y | x\|yz |")
    assert "goal missed" in spans["report"]([row], [miss] * 3)
    assert spans["report"]([row], []).endswith("## Misses\n\nNone.\n")
