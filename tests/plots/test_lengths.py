"""Lengths of paragraphs: counted, and as drawn."""

import numpy as np
import pytest

from tests.subjects.sentences import tokenizer
from tfeff import data, plots

TEXTS = ("A tiger", "A tiger watched seven boxes", "seven", "A tiger", "seven seven")


def test_passages_count_once(tmp_path):
    questions = [
        data.Question(str(i), "what watched?", text) for i, text in enumerate(TEXTS)
    ]
    pieces = tokenizer()
    expected = [len(pieces(text)) for text in (*TEXTS[:3], TEXTS[4])]
    lengths = data.passage_lengths(questions, pieces)
    assert lengths.tolist() == expected and len(set(expected)) > 2
    examples = data.SpanExamples(tuple(questions))
    assert data.passage_lengths(examples, pieces).tolist() == expected
    with pytest.raises(ValueError, match="`questions` must hold questions"):
        data.passage_lengths([], pieces)
    for bad in (3, ["A tiger"]):
        with pytest.raises(TypeError, match="`questions` must be a sequence"):
            data.passage_lengths(bad, pieces)
    with pytest.raises(TypeError, match="`tokenizer`"):
        data.passage_lengths(questions, None)


def test_shares_of_each_bin(tmp_path, figures):
    lengths = {
        "a": np.array([0, 99, 100, 101, 250], "uint8"),
        "_b": np.array([300, 399, 5000]),
    }
    plots.length_distribution(lengths, tmp_path / "a.png", longest=400, bins=4)
    (axes,) = figures[0].axes
    first, second = axes.patches
    for steps, expected in ((first, [2, 2, 1, 0]), (second, [0, 0, 0, 3])):
        values, edges, _ = steps.get_data()
        assert edges.tolist() == [0, 100, 200, 300, 400]
        np.testing.assert_allclose(values, np.array(expected) / sum(expected))
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["a, mean 110", "\N{THIN SPACE}_b, mean 1900"]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (dict(lengths={}), ValueError, "`lengths` must hold a data set"),
        (dict(lengths={"a": []}), ValueError, "`lengths` must hold lengths .*'a'"),
        (dict(lengths={"a": [-1]}), ValueError, "`lengths` must hold lengths .*'a'"),
        (dict(lengths={"a": [1.5]}), TypeError, "`lengths` must map to .*'a'"),
        (dict(lengths={"a": 3}), TypeError, "`lengths` must map to .*'a'"),
        (dict(lengths=[1]), TypeError, "`lengths` must be a mapping"),
        (dict(longest=0), ValueError, "`longest` must be"),
        (dict(bins=1.5), TypeError, "`bins` must be"),
        (dict(path=3), TypeError, "`path` must be"),
    ],
)
def test_bad_input_is_named(changes, error, message, tmp_path):
    arguments = dict(lengths={"a": [1]}, path=tmp_path / "a.png") | changes
    with pytest.raises(error, match=message):
        plots.length_distribution(**arguments)
    assert list(tmp_path.iterdir()) == []
