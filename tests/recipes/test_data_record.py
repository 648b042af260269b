import json

import numpy as np
import pytest

from tfeff import data, datasets
from tfeff.recipes.data_record import keep_data
from tfeff.training import RunDirectory


def texts(*first, labels=(0, 1)):
    return data.TextExamples(first, None, np.array(labels), ("dry", "wet"), skipped=())


def weather(**changes):
    arguments = dict(texts=("report",), label="sky", label_names=("dry", "wet"))
    return datasets.tsv_dataset("Weather", **arguments | changes)


def questions(*answers):
    found = [data.Question(a, "Who?", "Ada wrote.", (a,), ((0, 3),)) for a in answers]
    return data.SpanExamples(found)


def words(*labels):
    return data.TokenExamples((("a", "b"),), (list(labels),), ("O", "B-A"), ("0",))


@pytest.mark.parametrize(
    "first, second, other",
    [
        (texts("a", "b"), texts("a", "b"), texts("a", "c")),
        (texts("a", "b"), texts("a", "b"), texts("a", "b", labels=(1, 1))),
        (questions("Ada"), questions("Ada"), questions("ada")),
        (words(0, 1), words(0, 1), words(1, 1)),
    ],
)
def test_examples_stay_the_same(tmp_path, first, second, other):
    with RunDirectory(tmp_path / "run", {}) as run:
        keep_data(run, weather(), {"train": first, "dev": first})
        text = (tmp_path / "run" / "data.json").read_text()
        keep_data(run, weather(), {"train": second, "dev": second})
        message = "whose data.json has other examples than Weather has now"
        for parts in ({"train": first, "dev": other}, {"train": other, "dev": first}):
            with pytest.raises(ValueError, match=message):
                keep_data(run, weather(), parts)
        assert (tmp_path / "run" / "data.json").read_text() == text


def test_long_arrays_count_to_the_end(tmp_path):
    many = np.zeros(5000, int)
    other = many.copy()
    other[2500] = 1
    first, second = (texts(*["a"] * 5000, labels=labels) for labels in (many, other))
    with RunDirectory(tmp_path / "run", {}) as run:
        keep_data(run, weather(), {"train": first})
        with pytest.raises(ValueError, match="other examples"):
            keep_data(run, weather(), {"train": second})


def test_names_stay_the_same(tmp_path):
    parts = {"train": texts("a", "b")}
    with RunDirectory(tmp_path / "run", {}) as run:
        keep_data(run, weather(), parts)
        changed = weather(label_names=("wet", "dry"), metric_names=("f1",))
        with pytest.raises(ValueError, match="other label_names, metric_names than"):
            keep_data(run, changed, parts)
        record = json.loads((tmp_path / "run" / "data.json").read_text())
    assert not (tmp_path / "run").exists()  # A start that has made nothing.
    assert record["label_names"] == ["dry", "wet"]
