"""BoolQ and MultiRC, in their published layouts."""

import pytest

from tests.datasets.files import write, write_json
from tfeff.datasets import get

BOOLQ = {"question": "is it so", "passage": "So it is.", "idx": 5, "label": False}


def multirc():
    answers = [
        {"text": "Yes", "idx": 11, "label": 1},
        {"text": "No", "idx": 12, "label": 0},
    ]
    others = [{"text": "Rain", "idx": 13, "label": 1}]
    questions = [
        {"question": "Wet?", "answers": answers, "idx": 2},
        {"question": "Why?", "answers": others, "idx": 3},
    ]
    passage = {"text": "It rains.", "questions": questions}
    return {"idx": 7, "version": 1.1, "passage": passage}


def without_labels(record):
    if isinstance(record, dict):
        return {k: without_labels(v) for k, v in record.items() if k != "label"}
    return [without_labels(r) for r in record] if isinstance(record, list) else record


def test_boolq(tmp_path):
    other = {**BOOLQ, "idx": 6, "label": True, "question": "is it"}
    write_json(tmp_path / "BoolQ" / "val.jsonl", BOOLQ, other)
    examples = get("BoolQ").read("dev", tmp_path)
    assert examples.first == ("So it is.", "So it is.")
    assert examples.second == ("is it so", "is it")
    assert examples.labels.tolist() == [0, 1]
    assert examples.label_names == ("false", "true")
    assert examples.ids == (5, 6)


def test_multirc(tmp_path):
    write_json(tmp_path / "MultiRC" / "train.jsonl", multirc())
    examples = get("MultiRC").read("train", tmp_path)
    assert examples.first == ("It rains.",) * 3
    assert examples.second == ("Wet? Yes", "Wet? No", "Why? Rain")
    assert examples.labels.tolist() == [1, 0, 1]
    assert examples.ids == ((7, 2, 11), (7, 2, 12), (7, 3, 13))


@pytest.mark.parametrize(("task", "record"), [("BoolQ", BOOLQ), ("MultiRC", multirc())])
def test_labels_may_be_missing_from_the_test_part_alone(tmp_path, task, record):
    for name in ("val.jsonl", "test.jsonl"):
        write_json(tmp_path / task / name, without_labels(record))
    assert get(task).read("test", tmp_path).labels is None
    with pytest.raises(ValueError, match=r"val\.jsonl, line 1: must have 'label'"):
        get(task).read("dev", tmp_path)
    write_json(tmp_path / task / "test.jsonl", record, without_labels(record))
    with pytest.raises(ValueError, match=r"test\.jsonl, line 2: must have 'label'"):
        get(task).read("test", tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"val\.jsonl must hold text. Received: an empty file"),
        (
            '{"question": ',
            r"val\.jsonl, line 1: must be JSON. Received: Expecting value",
        ),
        ('\n\n{"a": 1]', r"line 3: must be JSON"),
        ("[1, 2]", r"line 1: must be an object. Received: \[1, 2\]"),
        ('{"question": "a", "idx": 1}', r"line 1: must have 'passage'. Received"),
        (
            '{"question": "a", "passage": 3, "idx": 1, "label": true}',
            r"line 1, 'passage': must be a string. Received: 3",
        ),
        (
            '{"question": "a", "passage": "\\ud800", "idx": 1, "label": true}',
            r"line 1, 'passage': must be Unicode text",
        ),
        (
            '{"question": "a", "passage": "b", "idx": true, "label": true}',
            r"line 1, 'idx': must be an integer. Received: True",
        ),
        (
            '{"question": "a", "passage": "b", "idx": 1, "label": 1}',
            r"line 1: 'label' must be False or True. Received: 1",
        ),
    ],
)
def test_bad_boolq(tmp_path, text, message):
    write(tmp_path / "BoolQ" / "val.jsonl", text)
    with pytest.raises(ValueError, match=message):
        get("BoolQ").read("dev", tmp_path)


def test_bad_multirc(tmp_path):
    record = multirc()
    record["passage"]["questions"][1]["answers"][0]["label"] = 2
    write_json(tmp_path / "MultiRC" / "val.jsonl", multirc(), record)
    with pytest.raises(
        ValueError, match=r"line 2: 'label' must be 0 or 1. Received: 2"
    ):
        get("MultiRC").read("dev", tmp_path)
    record["passage"]["questions"] = []
    write_json(tmp_path / "MultiRC" / "val.jsonl", record)
    with pytest.raises(ValueError, match="must hold examples. Received: none"):
        get("MultiRC").read("dev", tmp_path)


def test_wrong_names(tmp_path):
    with pytest.raises(ValueError, match=r"name='boolq'. Did you mean 'BoolQ'\?"):
        get("boolq").read("dev", tmp_path)
    with pytest.raises(ValueError, match=r"`split` must be one of.*split='val'"):
        get("BoolQ").read("val", tmp_path)
    with pytest.raises(ValueError, match=r"`folder` must hold BoolQ/val\.jsonl"):
        get("BoolQ").read("dev", tmp_path)


@pytest.mark.parametrize(
    ("task", "split", "size", "positive"),
    [("BoolQ", "dev", 3270, 2033), ("MultiRC", "dev", 4848, 2075)],
)
def test_real_files(data_dir, task, split, size, positive):
    if not (data_dir / "superglue" / task).is_dir():
        pytest.skip(f"no {data_dir / 'superglue' / task}")
    examples = get(task).read(split, data_dir / "superglue")
    assert (len(examples), examples.labels.sum()) == (size, positive)
    assert len(set(examples.ids)) == size
