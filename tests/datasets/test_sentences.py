"""Texts, pairs and triplets from files."""

import gzip
import json

import pytest

from tfeff.datasets import read_sentences

PAIRS = (("It rains.", 'Rain "falls".'), ("A cat.", "cats, dogs"))
TRIPLETS = tuple((*pair, "No sun.") for pair in PAIRS)
NAMES = ("anchor", "positive", "negative")


def table(rows, names=NAMES):
    return "\n".join("\t".join(row) for row in (names[: len(rows[0])], *rows))


def objects(rows, names=NAMES):
    return "\n".join(json.dumps(dict(zip(names, row), id=7)) for row in rows)


@pytest.mark.parametrize("rows", [PAIRS, TRIPLETS])
def test_pairs_and_triplets(tmp_path, rows):
    for name, text in (("a.tsv", table(rows)), ("a.jsonl", objects(rows) + "\n\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert read_sentences(tmp_path / name).rows == rows
        with gzip.open(tmp_path / f"{name}.gz", "wt", encoding="utf-8") as file:
            file.write(text)
        assert read_sentences(tmp_path / f"{name}.gz").rows == rows


def test_names_in_capitals_and_other_names(tmp_path):
    (tmp_path / "a.TSV").write_text(table(PAIRS), encoding="utf-8")
    (tmp_path / "a.ndjson").write_text(objects(PAIRS), encoding="utf-8")
    with gzip.open(tmp_path / "a.JSONL.GZ", "wt", encoding="utf-8") as file:
        file.write(objects(PAIRS))
    for name in ("a.TSV", "a.ndjson", "a.JSONL.GZ"):
        assert read_sentences(tmp_path / name).rows == PAIRS
    for name in ("a.csv", "a.CSV", "a.json"):
        (tmp_path / name).write_text("anchor,positive\none,two\n")
        with pytest.raises(ValueError, match=r"`path`.*\.tsv.*\.jsonl.*" + name):
            read_sentences(tmp_path / name)


def test_texts(tmp_path):
    texts = ("It rains.", "A\tcat.", "It rains.")
    (tmp_path / "a.txt").write_text("It rains.\n\nA\tcat.\nIt rains.\n")
    assert read_sentences(tmp_path / "a.txt").rows == tuple((t,) for t in texts)
    rows = tuple((text,) for text in ("It rains.", "A cat."))
    (tmp_path / "a.tsv").write_text(table(rows, ("text",)))
    assert read_sentences(str(tmp_path / "a.tsv")).rows == rows
    (tmp_path / "a.jsonl").write_text(objects(rows, ("text",)))
    assert read_sentences(tmp_path / "a.jsonl").rows == rows


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.txt", "", "a.txt.*must hold text"),
        ("a.tsv", "text\tpositive\na\tb", r"line 1.*'text', or 'anchor' and .*\['text"),
        ("a.jsonl", '{"text": "a", "negative": "b"}', "line 1.*'text', or 'anchor'"),
        ("a.tsv", "anchor\tpositive\tnegative_1\na\tb\tc", "and 'negative'.*_1"),
        ("a.tsv", "anchor\tpositive\n", "a.tsv must hold texts"),
        ("a.tsv", "one\ttwo\na\tb", r"a.tsv, line 1: must name.*'anchor'.*\['one'"),
        (
            "a.tsv",
            "anchor\tpositive\tanchor\na\tb\tc",
            r"line 1: must name the column 'anchor' once. Received: \['anchor', 'posi",
        ),
        ("a.tsv", "anchor\tpositive\na\tb\nc", "line 3: must have 2 columns"),
        ("a.tsv", "anchor\tpositive\na\tb\nc\tc", "line 3: must have different texts"),
        ("a.tsv", "anchor\tpositive\na\t ", "line 2: must have no empty text"),
        ("a.jsonl", '{"text": "a"}\n{', "line 2: must be JSON"),
        ("a.jsonl", '{"txt": "a"}', r"line 1: must have 'text'.*\['txt'\]"),
        ("a.jsonl", '{"text": 3}', "line 1, 'text': must be a string. Received: 3"),
        (
            "a.jsonl",
            '{"text": "a"}\n{"text": "good \\ud83d"}',
            r"line 2, 'text': must be Unicode text. Received: 'good \\ud83d'",
        ),
        (
            "a.jsonl",
            '{"text": "a"}\n\n{"anchor": "a", "positive": "b"}',
            r"line 3: must have \['text'\], as the first line",
        ),
        ("a.jsonl", '{"anchor": "a", "positive": "a"}', "line 1: must have different"),
    ],
)
def test_names_file_and_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_sentences(tmp_path / name)


def test_a_missing_file():
    with pytest.raises(ValueError, match="`path` must exist.*path='none.txt'"):
        read_sentences("none.txt")
