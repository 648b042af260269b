import json

import pytest

from tests.datasets.files import rows, write
from tfeff import data, datasets

WEATHER = {"texts": ["report"], "label": "sky", "label_names": ["dry", "wet"]}
RATED = {"texts": ["a", "b"], "label": "stars"}


def described(folder, name, record):
    write(folder / name / "dataset.json", json.dumps(record))
    return datasets.described_dataset(name, folder)


def test_texts(tmp_path):
    record = WEATHER | {"metric_names": ["f1", "accuracy"]}
    weather = described(tmp_path, "Weather", record)
    lines = rows(["report", "sky"], ["It rains.", "wet"], ["It shines.", "dry"])
    write(tmp_path / "Weather" / "dev.tsv", lines)
    dev = weather.read("dev", tmp_path)
    assert dev.first == ("It rains.", "It shines.") and dev.labels.tolist() == [1, 0]
    assert weather.metrics(dev, [1, 1]) == {"f1": 2 / 3, "accuracy": 0.5}
    assert "Weather" not in datasets.names()
    # It may be registered, as the one that Python describes.
    own = datasets.tsv_dataset(
        "Weather", ("report",), "sky", ("dry", "wet"), metric_names=("f1", "accuracy")
    )
    assert (own.metric_names, own.label_names) == (
        weather.metric_names,
        weather.label_names,
    )


def test_ratings(tmp_path):
    record = {"texts": ["a", "b"], "label": "stars", "ratings": [1, 5]}
    stars = described(tmp_path, "Stars", record)
    write(tmp_path / "Stars" / "dev.tsv", rows(["a", "b", "stars"], ["x", "y", "6"]))
    with pytest.raises(ValueError, match="must be a number from 1 to 5"):
        stars.read("dev", tmp_path)
    assert stars.metric_names == ("pearson", "spearman")


@pytest.mark.parametrize("names", [None, ["accuracy"], ["recall", "f1"]])
def test_words(names, tmp_path):
    record = {"types": ["BIRD"], "label_column": 1}
    if names is not None:
        record["metric_names"] = names
    birds = described(tmp_path, "Birds", record)
    write(tmp_path / "Birds" / "dev.txt", "great B-BIRD x\ntits I-BIRD x\nsing O x\n")
    assert birds.kind is data.TokenExamples
    dev = birds.read("dev", tmp_path)
    found = birds.metrics(dev, [[1, 2, 0]])
    assert found == dict.fromkeys(names or birds.metric_names, 1.0)
    assert tuple(found) == birds.metric_names


@pytest.mark.parametrize(
    "record, message",
    [
        ("{", "line 1: must be JSON"),
        ("", "must hold text. Received: an empty file"),
        ([], "must be an object"),
        ({}, "must have the key 'texts', of texts, or 'types'"),
        (WEATHER | {"types": ["a"]}, "must have the key 'texts', of texts, or 'types'"),
        (WEATHER | {"labels": []}, "'labels'. Did you mean 'label'"),
        (WEATHER | {"reader": "os.remove"}, r"keys of \['texts'.*Received: 'reader'"),
        (WEATHER | {"name": "Other"}, "Received: 'name'"),
        ({"texts": ["report"]}, "must have the key 'label'"),
        (WEATHER | {"texts": "report"}, "`texts` must be a tuple"),
        (WEATHER | {"label_names": ["dry"]}, "`label_names` must be two at least"),
        (WEATHER | {"metric_names": ["f2"]}, "`metric_names` must be one of"),
        ({"types": ["A"], "metric_names": ["f2"]}, "`metric_names` must be one of"),
        (RATED | {"ratings": "15"}, "`ratings` must be the least and the highest"),
        (RATED | {"ratings": ["1", "5"]}, "`ratings` must be the least and"),
        (RATED | {"ratings": [False, True]}, "`ratings` must be the least and"),
        (RATED | {"ratings": {"1": 0, "5": 0}}, "`ratings` must be the least and"),
        (RATED | {"ratings": [5, 1]}, "`ratings` must be the least and the highest"),
        (RATED | {"ratings": [1, 10**400]}, "`ratings` must be the least and"),
        (WEATHER | {"ratings": [1, 5]}, "`ratings` must be left out with"),
        ('{"texts": 1' + "0" * 5000 + "}", "line 1: must be JSON"),
        ({"types": ["A"], "word_column": "0"}, "`word_column` must be an integer"),
    ],
)
def test_what_describes_none(tmp_path, record, message):
    text = record if isinstance(record, str) else json.dumps(record)
    path = write(tmp_path / "Weather" / "dataset.json", text)
    with pytest.raises(ValueError, match=message) as caught:
        datasets.described_dataset("Weather", tmp_path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["", ".", "..", "../Weather", "a/Weather", "/Weather"])
def test_the_name_is_that_of_a_folder(tmp_path, name):
    write(tmp_path / "Weather" / "dataset.json", json.dumps(WEATHER))
    with pytest.raises(ValueError, match="`name` must be that of a folder"):
        datasets.described_dataset(name, tmp_path / "Weather")


def test_there_must_be_one(tmp_path):
    with pytest.raises(
        ValueError, match="with a dataset.json. Received: name='Weather'"
    ):
        datasets.described_dataset("Weather", tmp_path)
    with pytest.raises(TypeError, match="`name` must be a string. Received: name=3"):
        datasets.described_dataset(3, tmp_path)
