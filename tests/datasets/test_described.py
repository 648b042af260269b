import json
import warnings

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
    assert weather not in map(datasets.get, datasets.names())
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


def test_parts_of_speech(tmp_path):
    record = {"label_names": ["NOUN", "VERB"]}
    speech = described(tmp_path, "Speech", record)
    write(tmp_path / "Speech" / "dev.txt", "birds NOUN\nsing VERB\n\nfish VERB\n")
    dev = speech.read("dev", tmp_path)
    assert [row.tolist() for row in dev.labels] == [[0, 1], [1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert speech.metrics(dev, [[0, 1], [0]]) == {"accuracy": 2 / 3}
        assert datasets.phrase_metrics(dev, [[0, 1], [0]])["accuracy"] == 2 / 3
    with pytest.raises(ValueError, match=r"`metric_names` must be one of \['accuracy'"):
        described(tmp_path, "Speech", record | {"metric_names": ["f1"]})


@pytest.mark.parametrize(
    "record, message",
    [
        ("{", "line 1: must be JSON"),
        ("", "must hold text. Received: an empty file"),
        ([], "must be an object"),
        ({}, "must have the key 'texts', of texts, or 'types'"),
        (WEATHER | {"types": ["a"]}, "keys of .*Received: 'types'"),
        (WEATHER | {"labels": []}, "'labels'. Did you mean 'label'"),
        (WEATHER | {"reader": "os.remove"}, r"keys of \['texts'.*Received: 'reader'"),
        (WEATHER | {"name": "Other"}, "Received: 'name'"),
        ({"texts": ["report"]}, "must have the key 'label'"),
        (WEATHER | {"texts": "report"}, "`texts` must be a list of names"),
        (WEATHER | {"texts": ["sky"]}, "`label` must be another column than `texts`"),
        (WEATHER | {"label_names": ["dry"]}, "`label_names` must be two at least"),
        (WEATHER | {"metric_names": ["f2"]}, "`metric_names` must be one of"),
        ({"label_names": ["a", "b"], "label": "sky"}, "must have the key 'texts'"),
        ({"types": []}, "`types` must name types of phrases, at least one"),
        ({"types": ["B-A", "I-A"]}, "`types` must name types of phrases"),
        ({"types": ["O", "A"]}, "`types` must name types of phrases"),
        ({"types": ["B-A", "I-B"]}, "`types` must name types of phrases"),
        ({"types": ["B-A"]}, "Other labels are given as `label_names`"),
        ({"types": ["A"], "label_names": ["A"]}, "One of `types` and `label_names`"),
        ({"label_names": []}, "`label_names` must name a label"),
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


def test_a_table_with_commas_is_named(tmp_path):
    weather = described(tmp_path, "Weather", WEATHER)
    write(tmp_path / "Weather" / "dev.csv", "report,sky\nIt rains.,wet\n")
    with pytest.raises(ValueError, match="dev.csv must be written anew .*str.split"):
        weather.read("dev", tmp_path)


@pytest.mark.parametrize("label", ["", "-1"])
def test_hidden_labels_are_left_out(tmp_path, label):
    weather = described(tmp_path, "Weather", WEATHER)
    path = tmp_path / "Weather" / "test.tsv"
    write(path, rows(["report", "sky"], ["It rains.", label]))
    with pytest.raises(ValueError, match="Without the column 'sky' the file is read"):
        weather.read("test", tmp_path)
    write(path, rows(["report", "Sky"], ["It rains.", label]))
    with pytest.raises(ValueError, match="the column 'sky', or none like it.*'Sky'"):
        weather.read("test", tmp_path)
    write(path, rows(["report"], ["It rains."]))
    assert weather.read("test", tmp_path).labels is None
