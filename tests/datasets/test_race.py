"""RACE, in its published layout."""

import pytest

from tests.datasets.files import write, write_json
from tfeff.datasets import get, read_race


def passage(name="high1.txt", **changes):
    record = {
        "id": name,
        "article": f"The article of {name}.",
        "questions": ["It is _ .", "Why?"],
        "options": [["a", "b", "c", "d"], ["e", "f", "g", "h"]],
        "answers": ["D", "A"],
    }
    return {**record, **changes}


def test_layout(tmp_path):
    for level, names in (("high", ["10.txt", "2.txt"]), ("middle", ["7.txt"])):
        for name in names:
            write_json(tmp_path / "dev" / level / name, passage(level + name))
    write(tmp_path / "dev" / "high" / "notes.md", "not a passage")
    examples = read_race("dev", tmp_path)
    expected = ["middle7.txt", "high2.txt", "high10.txt"]
    assert examples.ids == tuple(f"{n}-{i}" for n in expected for i in (0, 1))
    assert examples.passages[2] == examples.passages[3] == "The article of high2.txt."
    assert examples.questions == ("It is _ .", "Why?") * 3
    assert examples.options == (("a", "b", "c", "d"), ("e", "f", "g", "h")) * 3
    assert examples.labels.tolist() == [3, 0] * 3
    assert len(read_race("dev", tmp_path, levels=("middle",))) == 2
    for levels, count in ((("middle", "high"), 6), (("high",), 4)):
        assert len(get("RACE").read("dev", tmp_path, levels=levels)) == count
    assert get("RACE").read("dev", tmp_path).ids == examples.ids


def test_answers_may_be_missing(tmp_path):
    record = passage()
    del record["answers"]
    write_json(tmp_path / "test" / "high" / "1.txt", record)
    assert read_race("test", tmp_path, levels=("high",)).labels is None
    write_json(tmp_path / "test" / "high" / "2.txt", passage())
    with pytest.raises(ValueError, match=r"answers, or none. Received: none for high1"):
        read_race("test", tmp_path, levels=("high",))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"article": None}, r"1\.txt, 'article': must be a string. Received: None"),
        ({"options": [["a"] * 4]}, r"'options' must have one entry a question, 2"),
        ({"answers": ["A"]}, r"'answers' must have one entry a question, 2"),
        (
            {"options": [["a"] * 4, ["a"] * 3]},
            r"1\.txt, question 1: must have 4 options. Received: 3",
        ),
        (
            {"answers": ["A", "E"]},
            r"1\.txt, question 1: the answer must be one of \['A', 'B', 'C', 'D'\]. "
            "Received: 'E'",
        ),
        (
            {"questions": [], "options": [], "answers": []},
            "`folder` must hold questions",
        ),
    ],
)
def test_bad_passages(tmp_path, changes, message):
    write_json(tmp_path / "dev" / "high" / "1.txt", passage(**changes))
    with pytest.raises(ValueError, match=message):
        read_race("dev", tmp_path, levels=("high",))


def test_bad_files(tmp_path):
    with pytest.raises(ValueError, match=r"`folder` must hold dev/middle/\*\.txt"):
        read_race("dev", tmp_path)
    path = write(tmp_path / "dev" / "high" / "1.txt", '{\n"article": "a",\n"b"}')
    with pytest.raises(ValueError, match=r"1\.txt, line 3: must be JSON"):
        read_race("dev", tmp_path, levels=("high",))
    path.write_bytes(b'{\n"article": "\xff"}')
    with pytest.raises(ValueError, match=r"1\.txt, line 2: must be UTF-8 text"):
        read_race("dev", tmp_path, levels=("high",))
    path.write_text(" ")
    with pytest.raises(ValueError, match=r"1\.txt must hold text. Received: an empty"):
        read_race("dev", tmp_path, levels=("high",))
    with pytest.raises(ValueError, match=r"levels='hihg'. Did you mean 'high'\?"):
        read_race("dev", tmp_path, levels=("hihg",))
    with pytest.raises(ValueError, match="`levels` must be a tuple"):
        read_race("dev", tmp_path, levels="high")
