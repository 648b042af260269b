"""JSON Lines, Parquet files and Hugging Face data sets as corpora."""

import gzip
import json
import struct

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfeff.data import build_cache, hugging_face, json_lines, parquet, train_tokenizer

TEXTS = ["One,\ntwo lines.", "", "Über ¶\u2028 alles", " \n", "last\n\none"]
KEPT = [text for text in TEXTS if text.strip()]


def write_lines(path, texts, field="text", ascii=True):
    lines = [json.dumps({"id": 1, field: t}, ensure_ascii=ascii) for t in texts]
    data = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_parquet(path, texts, column="text", **kwargs):
    table = pyarrow.table({"id": list(range(len(texts))), column: texts})
    pyarrow.parquet.write_table(table, path, **kwargs)
    return path


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
@pytest.mark.parametrize("ascii", [True, False])
def test_json_lines(tmp_path, name, ascii):
    path = write_lines(tmp_path / name, TEXTS, ascii=ascii)
    documents = json_lines(path)
    assert list(documents) == KEPT
    assert list(documents) == KEPT  # again


def test_json_lines_with_a_mark_blank_lines_and_other_line_ends(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"body": "one"}\r\n\r\n \n{"body": "two"}')
    assert list(json_lines(tmp_path / "*.jsonl", field="body")) == ["one", "two"]


@given(texts=st.lists(st.text(), min_size=1, max_size=5))
def test_json_lines_give_back_what_was_written(texts, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    path.write_text("\n" + "".join(json.dumps({"text": t}) + "\n" for t in texts))
    assert list(json_lines(path)) == [t for t in texts if t.strip()]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b"plain text",
            r"a JSON object in UTF-8, as in JSON Lines each line is\. "
            r"Received: b'plain text'",
        ),
        (b'{"text": "cut', r"a JSON object in UTF-8"),
        (b'{"text": "\xff"}', r"a JSON object in UTF-8.*0xff"),
        (('["a' + "é" * 40 + '"]').encode(), r"""each line is\. Received: '\["aééé"""),
        (b'["text"]', r"""as in JSON Lines each line is\. Received: '\["text"\]'"""),
        (b'{"Texts": "a"}', r"It has \['Texts'\]\. Received: field='text'\. Did you"),
        (b'{"text": 3}', r"field 'text' in line 2 of .*must be a string.*3"),
        (b'{"text": null}', r"must be a string\. Received: None"),
        (b'{"text": "a\\ud83d"}', r"line 2 of .*must be Unicode text.* 'a\\ud83d'"),
    ],
)
def test_bad_lines_are_named(tmp_path, line, message):
    good = b'{"text": "good"}\n'
    path = tmp_path / "bad.jsonl"
    path.write_bytes(good + line + b"\n")
    documents = json_lines(path)
    with pytest.raises(ValueError, match=message):
        list(documents)
    path.write_bytes(line + b"\n" + good)
    with pytest.raises(ValueError, match=r"ine 1 of .*bad\.jsonl"):
        json_lines(path)  # before anything is read


@pytest.mark.parametrize("data", [b"", b"\n \n"])
def test_files_without_objects(tmp_path, data):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.jsonl").write_bytes(data)
    for name in ("a.jsonl.gz", "b.jsonl"):
        with pytest.raises(ValueError, match=rf"must match .* hold text.*{name}"):
            json_lines(tmp_path / name)


def test_damaged_gzip(tmp_path):
    path = write_lines(tmp_path / "a.jsonl.gz", ["some text", *map(str, range(10**4))])
    path.write_bytes(path.read_bytes()[:-2000])
    documents = json_lines(path)
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz is damaged behind line \d+"):
        list(documents)
    data = bytearray(gzip.compress(b"text"))
    data[10] |= 6  # A kind of block that there is not.
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz is damaged behind line 0"):
        json_lines(path)
    path.write_bytes(b"no gzip at all")
    with pytest.raises(ValueError, match=r"a\.jsonl\.gz is damaged behind line 0"):
        json_lines(path)


@pytest.mark.parametrize("strings", ["string", "large_string", "dictionary"])
def test_parquet(tmp_path, strings):
    kinds = {
        "string": pyarrow.string(),
        "large_string": pyarrow.large_string(),
        "dictionary": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
    }
    path = write_parquet(
        tmp_path / "a.parquet", pyarrow.array(TEXTS, kinds[strings]), row_group_size=2
    )
    documents = parquet(path)
    assert list(documents) == KEPT
    assert list(documents) == KEPT


def test_many_rows_of_many_files(tmp_path):
    texts = [f"Text {number}" for number in range(2500)]
    for part in range(3):
        write_parquet(tmp_path / f"{part}.parquet", texts[part::3], "body")
    expected = [text for part in range(3) for text in texts[part::3]]
    assert list(parquet(str(tmp_path / "*.parquet"), column="body")) == expected


def test_bad_parquet(tmp_path):
    path = write_parquet(tmp_path / "a.parquet", TEXTS, "Texts")
    with pytest.raises(ValueError, match=r"\['Texts'\] of .*Did you mean 'Texts'"):
        parquet(path)
    with pytest.raises(ValueError, match=r"column='id', which holds no strings"):
        parquet(path, column="id")
    with pytest.raises(ValueError, match=r"Row 2 of .*a\.parquet must be a string"):
        list(parquet(write_parquet(path, ["a", None])))
    offsets = struct.pack("<3i", 0, 3, 7)
    texts = pyarrow.StringArray.from_buffers(
        2, pyarrow.py_buffer(offsets), pyarrow.py_buffer(b"ab caf\xe9")
    )
    with pytest.raises(ValueError, match=r"Row 2 of .*a\.parquet must be Unicode text"):
        list(parquet(write_parquet(path, texts)))
    with pytest.raises(ValueError, match=r"must match Parquet files.*b\.parquet"):
        parquet(write_lines(tmp_path / "b.parquet", TEXTS))
    write_parquet(
        path,
        [str(i) for i in range(5000)],
        write_page_checksum=True,
        compression="none",
    )
    data = bytearray(path.read_bytes())
    data[data.index(b"1234")] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"a\.parquet is damaged behind row 0"):
        list(parquet(path))
    path.write_bytes(data[:-10])
    with pytest.raises(ValueError, match=r"must match Parquet files.*a\.parquet"):
        parquet(path)


def test_a_refusal_to_read_is_no_damage(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise OSError(5, "Input/output error")

    documents = parquet(write_parquet(tmp_path / "a.parquet", TEXTS))
    monkeypatch.setattr("pyarrow.parquet.ParquetFile.iter_batches", refuse)
    with pytest.raises(
        OSError, match=r"Input/output error, while reading .*a\.parquet"
    ):
        list(documents)


class Examples:
    """What a data set of Hugging Face does, as far as it is read."""

    def __init__(self, rows, names=("id", "text")):
        self.rows = rows
        self.column_names = None if names is None else list(names)

    def select_columns(self, columns):
        return [{name: row[name] for name in columns} for row in self.rows]

    def __iter__(self):
        return iter(self.rows)


@pytest.mark.parametrize("names", [("id", "text"), None])
def test_hugging_face(names):
    rows = [{"id": number, "text": text} for number, text in enumerate(TEXTS)]
    documents = hugging_face(Examples(rows, names))
    assert list(documents) == KEPT
    assert list(documents) == KEPT
    with pytest.raises(ValueError, match=r"\['id', 'text'\] of the data set.*'texts'"):
        hugging_face(Examples(rows, names), column="texts")
    with pytest.raises(ValueError, match=r"Column 'id' of example 1 must be a string"):
        list(hugging_face(Examples(rows, names), column="id"))


def test_the_library_of_hugging_face(tmp_path):
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"id": range(len(TEXTS)), "text": TEXTS})
    for given_one in (dataset, dataset.to_iterable_dataset()):
        documents = hugging_face(given_one)
        assert list(documents) == KEPT
        assert list(documents) == KEPT
    with pytest.raises(TypeError, match=r"splits \['train'\].*dataset\['train'\]"):
        hugging_face(datasets.DatasetDict(train=dataset))


def test_types(tmp_path):
    with pytest.raises(TypeError, match="`dataset` must be one split.*'train'"):
        hugging_face({"train": [], "test": []})
    with pytest.raises(TypeError, match="`dataset` must be a .*Received: dataset of"):
        hugging_face([{"text": "a"}])
    path = write_lines(tmp_path / "a.jsonl", ["a"])
    with pytest.raises(TypeError, match="`field` must be a string. Received: field=3"):
        json_lines(path, field=3)
    with pytest.raises(TypeError, match="`column` must be a string"):
        parquet(path, column=None)
    with pytest.raises(ValueError, match="must match files"):
        json_lines(tmp_path / "*.json")


def test_a_cache_of_records(tmp_path):
    documents = json_lines(write_lines(tmp_path / "a.jsonl", KEPT * 50))
    tokenizer = train_tokenizer(documents, vocabulary_size=24)
    caches = [
        build_cache(source, tokenizer, tmp_path / name, sequence_length=16)
        for name, source in (("records", documents), ("list", KEPT * 50))
    ]
    assert caches[0].num_tokens == caches[1].num_tokens > 0


def test_records_of_relative_paths_stay_what_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "a.jsonl", ["lines"])
    write_parquet(tmp_path / "a.parquet", ["table"])
    lines, table = json_lines("a.jsonl"), parquet("a.parquet")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert [*lines, *table] == ["lines", "table"]
