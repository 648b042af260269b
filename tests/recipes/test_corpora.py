"""Names of corpora, as the recipes take them."""

import types

import pyarrow
import pyarrow.parquet
import pytest

from tfeff.recipes.corpora import corpus

SETTINGS = types.SimpleNamespace(max_characters=10_000, text_field="body")


def test_kinds_are_read_in_the_order_of_their_names(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo")
    (tmp_path / "b.jsonl").write_text('{"body": "three"}\n{"body": "four"}')
    table = pyarrow.table({"body": ["five"]})
    pyarrow.parquet.write_table(table, tmp_path / "c.parquet")
    names = [str(tmp_path / name) for name in ("b.jsonl", "a.*", "*.parquet")]
    documents = corpus(names, SETTINGS)
    assert list(documents) == ["three", "four", "one", "two", "five"]
    assert list(documents) == ["three", "four", "one", "two", "five"]


@pytest.mark.parametrize("name", ["a.JSONL", "a.ndjson", "a.json"])
def test_names_of_json_lines(tmp_path, name):
    (tmp_path / name).write_text('{"body": "three"}\n')
    assert list(corpus([str(tmp_path / name)], SETTINGS)) == ["three"]


def test_docstrings_beside_files(tmp_path):
    (tmp_path / "a.txt").write_text("one")
    documents = list(corpus([str(tmp_path / "a.txt"), "docstrings"], SETTINGS))
    assert documents[0] == "one" and len(documents) > 1


def test_hugging_face_by_name(tmp_path):
    try:
        import datasets
    except ImportError:
        with pytest.raises(ValueError, match="hf:wikitext: pip install datasets"):
            corpus(["hf:wikitext"], SETTINGS)
        return
    dataset = datasets.Dataset.from_dict({"body": ["one", "two"]})
    dataset.save_to_disk(tmp_path / "saved")
    assert list(corpus([f"hf:{tmp_path / 'saved'}"], SETTINGS)) == ["one", "two"]
    with pytest.raises(ValueError, match="`corpus` must name a data set.*hf:/nowhere"):
        corpus(["hf:/nowhere"], SETTINGS)
