"""Files of predictions, in the benchmarks' layouts."""

import json
import math

import numpy as np
import pytest

from tests.datasets.examples import examples
from tfeff.data import TextExamples
from tfeff.datasets import get, tsv_dataset, write_json, write_tsv


def write_predictions(name, split, ids, predictions, folder):
    """The path of the one file."""
    known = examples(name, None, ids)
    (path,) = get(name).write_predictions(split, known, predictions, folder)
    return path


@pytest.mark.parametrize(
    ("task", "split", "predictions", "name", "texts"),
    [
        ("CoLA", "test", [1, 0], "CoLA.tsv", ["1", "0"]),
        ("SST-2", "dev", [1, 0], "SST-2.tsv", ["1", "0"]),
        ("MRPC", "test", [1, 0], "MRPC.tsv", ["1", "0"]),
        ("QQP", "test", [1, 0], "QQP.tsv", ["1", "0"]),
        ("WNLI", "test", [1, 0], "WNLI.tsv", ["1", "0"]),
        ("RTE", "test", [1, 0], "RTE.tsv", ["not_entailment", "entailment"]),
        ("QNLI", "test", [1, 0], "QNLI.tsv", ["not_entailment", "entailment"]),
        ("MNLI", "test_matched", [2, 1], "MNLI-m.tsv", ["contradiction", "neutral"]),
        ("MNLI", "test_mismatched", [0, 1], "MNLI-mm.tsv", ["entailment", "neutral"]),
        ("STS-B", "test", [4.56789, -0.5], "STS-B.tsv", ["4.568", "0.000"]),
        ("STS-B", "test", [6, 2], "STS-B.tsv", ["5.000", "2.000"]),
    ],
)
def test_glue(tmp_path, task, split, predictions, name, texts):
    folder = tmp_path / "new" / "submission"
    path = write_predictions(task, split, ["7", "3"], np.array(predictions), folder)
    assert path == str(folder / name)
    expected = f"index\tprediction\n7\t{texts[0]}\n3\t{texts[1]}\n"
    assert (folder / name).read_bytes() == expected.encode()


def test_boolq(tmp_path):
    path = write_predictions("BoolQ", "test", (4, 5), np.array([0, 1]), tmp_path)
    assert path == str(tmp_path / "BoolQ.jsonl")
    lines = (tmp_path / "BoolQ.jsonl").read_text().splitlines()
    assert list(map(json.loads, lines)) == [
        {"idx": 4, "label": "false"},
        {"idx": 5, "label": "true"},
    ]


def test_multirc(tmp_path):
    ids = [(0, 2, 11), (0, 2, 12), (0, 3, 13), (1, 4, 14)]
    write_predictions("MultiRC", "test", ids, np.array([1, 0, 1, 0]), tmp_path)
    lines = (tmp_path / "MultiRC.jsonl").read_text().splitlines()
    first = [
        {"idx": 2, "answers": [{"idx": 11, "label": 1}, {"idx": 12, "label": 0}]},
        {"idx": 3, "answers": [{"idx": 13, "label": 1}]},
    ]
    second = [{"idx": 4, "answers": [{"idx": 14, "label": 0}]}]
    assert list(map(json.loads, lines)) == [
        {"idx": 0, "passage": {"questions": first}},
        {"idx": 1, "passage": {"questions": second}},
    ]


def test_json(tmp_path):
    values = {"b": "Ünï \u2009", "a": ""}
    path = write_json(values, tmp_path / "deep" / "predictions.json")
    with open(path, encoding="utf-8") as file:
        assert json.load(file) == values
    with pytest.raises(ValueError, match="`values` must not be empty"):
        write_json({}, tmp_path / "empty.json")
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"a": math.nan}, tmp_path / "nan.json")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["deep"]


def test_race(tmp_path):
    path = write_predictions("RACE", "test", ["a-0", "a-1"], [3, 0], tmp_path)
    assert path == str(tmp_path / "RACE.json")
    assert json.loads((tmp_path / "RACE.json").read_text()) == {"a-0": "D", "a-1": "A"}


def test_tsv(tmp_path):
    path = write_tsv({"b": "yes", "a": 0.25}, tmp_path / "deep" / "own.tsv")
    assert path == str(tmp_path / "deep" / "own.tsv")
    with open(path, "rb") as file:
        assert file.read() == b"index\tprediction\nb\tyes\na\t0.25\n"
    with pytest.raises(ValueError, match="`values` must not be empty"):
        write_tsv({}, tmp_path / "empty.tsv")
    for values in ({"1\t2": "yes"}, {"1": "yes\n"}, {"1\r": 0.5}):
        with pytest.raises(ValueError, match="`values` must have no tabs"):
            write_tsv(values, tmp_path / "parted.tsv")
    with pytest.raises(ValueError, match="`examples` must have no tabs"):
        write_predictions("RTE", "test", ["3\n4"], [0], tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["deep"]


def test_files_are_never_overwritten(tmp_path):
    for name in ("RTE.tsv", "BoolQ.jsonl", "MultiRC.jsonl", "RACE.json", "a.json"):
        (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=r"`folder` must not hold 'RTE\.tsv' yet"):
        write_predictions("RTE", "test", ["0"], [0], tmp_path)
    with pytest.raises(ValueError, match="`folder` must not hold 'BoolQ.jsonl'"):
        write_predictions("BoolQ", "test", [0], [0], tmp_path)
    with pytest.raises(ValueError, match="`folder` must not hold 'MultiRC.jsonl'"):
        write_predictions("MultiRC", "test", [(0, 0, 0)], [0], tmp_path)
    with pytest.raises(ValueError, match="`folder` must not hold 'RACE.json'"):
        write_predictions("RACE", "test", ["0"], [0], tmp_path)
    for write in (write_json, write_tsv):
        with pytest.raises(ValueError, match=r"`path` must not exist yet. .*a\.json"):
            write({"a": "b"}, tmp_path / "a.json")
    assert {path.read_text() for path in tmp_path.iterdir()} == {"mine"}


def test_bad_input(tmp_path):
    with pytest.raises(ValueError, match=r"`split` must be one of .*split='test'"):
        write_predictions("MNLI", "test", ["0"], [0], tmp_path)
    with pytest.raises(ValueError, match="equally many, at least 1. .* 2 and 1"):
        write_predictions("RTE", "test", ["0", "1"], [0], tmp_path)
    with pytest.raises(ValueError, match="equally many, at least 1. .* 0 and 0"):
        write_predictions("BoolQ", "test", [], [], tmp_path)
    with pytest.raises(ValueError, match=r"classes from 0 to 1.*Received: 2 at 0"):
        write_predictions("RTE", "test", ["0"], [2], tmp_path)
    with pytest.raises(ValueError, match="`predictions` must be finite"):
        write_predictions("STS-B", "test", ["0"], [math.inf], tmp_path)
    with pytest.raises(TypeError, match="`folder` must be a path"):
        write_predictions("RTE", "test", ["0"], [0], None)
    with pytest.raises(TypeError, match="`ids` must be"):
        write_predictions("MultiRC", "test", [3], [0], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("write", [write_json, write_tsv])
def test_types(write, tmp_path):
    for bad in (3, [1], None):
        with pytest.raises(TypeError, match="`values` must be"):
            write(bad, tmp_path / "new")
    with pytest.raises(TypeError, match="Received: <object"):
        write_json({"a": object()}, tmp_path / "new")
    assert not list(tmp_path.iterdir())


def test_numbers_of_numpy_and_repeated_ids(tmp_path):
    path = write_json({"a": np.float32(0.5), "b": np.int64(2)}, tmp_path / "a.json")
    with open(path, encoding="utf-8") as file:
        assert json.load(file) == {"a": 0.5, "b": 2}
    ids = np.array([4, 5])
    path = write_predictions("BoolQ", "test", ids, np.array([0, 1]), tmp_path)
    with open(path, encoding="utf-8") as file:
        assert json.loads(file.readline()) == {"idx": 4, "label": "false"}
    with pytest.raises(ValueError, match="`ids` must differ .*column.* '7' 2 times"):
        write_predictions("RTE", "test", ["7", "7"], [1, 0], tmp_path)
    with pytest.raises(ValueError, match="`ids` must differ"):
        write_predictions("BoolQ", "test", [4, 4], [1, 0], tmp_path)
    with pytest.raises(ValueError, match="`ids` must differ"):
        write_predictions("RACE", "test", ["a", "a"], [1, 0], tmp_path)


def test_ratings_of_ones_own_are_read_back(tmp_path):
    own = tsv_dataset("Prices", ("text",), "price")
    prices = [
        0.1,
        123456.75,
        0.000123456789,
        2e7,
        2e7 + 2,
        -1e-30,
        2.4901412,
        2.4901414,
    ]
    prices = np.array(prices, "float32")
    texts = TextExamples(tuple("abcdefgh"))
    (path,) = own.write_predictions("test", texts, prices, tmp_path)
    with open(path) as file:
        written = file.read().split()[3::2]
    assert written[0] == "0.1" and np.float32(written).tolist() == prices.tolist()
