"""Text files, TensorFlow Datasets, and the split into training and validation."""

import builtins
import errno
import gzip
import os
import re
import sys
import types
import warnings

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfeff.data import build_cache, sample, split, text_files, tfds, train_tokenizer
from tfeff.storage import streams


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
    return path


def test_blank_lines_separate_documents(tmp_path):
    text = "\ufeffOne,\r\ntwo lines.\r\n\r\n \t\n\nÜber  \n\nlast"
    path = write(tmp_path / "a.txt", text)
    documents = text_files(path)
    expected = ["One,\ntwo lines.", "Über", "last"]
    assert list(documents) == expected
    assert list(documents) == expected  # again


def test_lines_keep_their_indentation(tmp_path):
    (document,) = text_files(write(tmp_path / "code.txt", b"  a:  \n    b\n"))
    assert document == "  a:\n    b"


def test_carriage_returns_end_lines_where_no_line_feed_does(tmp_path):
    path = write(tmp_path / "old.txt", "\ufeffOne,\rtwo lines.\r\rÜber \r \rlast\r")
    assert list(text_files(path)) == ["One,\ntwo lines.", "Über", "last"]
    compressed = tmp_path / "old.txt.gz"
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(text_files(compressed)) == list(text_files(path))
    for text in ("One\rline.\n", "One.\n\nAnother\rline."):
        documents = list(text_files(write(tmp_path / "new.txt", text)))
        assert documents == text.strip().split("\n\n")
    damaged = write(tmp_path / "bad.txt", b"good\r\rbad: \xff")
    with pytest.raises(ValueError, match=r"0xff at offset 11 "):
        list(text_files(damaged))


def test_patterns_in_order_and_each_file_once(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("b.txt", "a.txt", "[c].txt", "deep/d.txt"):
        write(tmp_path / name, name)
    pattern = str(tmp_path / "*.txt")
    assert list(text_files(pattern)) == ["[c].txt", "a.txt", "b.txt"]
    both = text_files([tmp_path / "b.txt", pattern, str(tmp_path / "**" / "d.*")])
    assert list(both) == ["b.txt", "[c].txt", "a.txt", "deep/d.txt"]
    assert list(text_files(str(tmp_path / "[c].txt"))) == ["[c].txt"]


def test_folders_that_a_pattern_leaves_out_are_told(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deeper" / "still").mkdir(parents=True)
    for name in ("a.txt", "deep/b.txt", "deeper/still/c.txt"):
        write(tmp_path / name, name)
    (tmp_path / "none").mkdir()
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    told = f"match 3 paths that are no files, such as {tmp_path / 'deep'}: "
    with pytest.warns(match=re.escape(told)) as warned:
        assert list(text_files(str(tmp_path / "*"))) == ["a.txt"]
    assert warned[0].filename == __file__
    (tmp_path / "gone").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(text_files(str(tmp_path / "**")))) == 3
        assert len(list(text_files(str(tmp_path / "*.txt")))) == 1
        both = [str(tmp_path / "*"), str(tmp_path / "*" / "**")]
        assert len(list(text_files(both))) == 3


def test_a_file_by_two_names_is_read_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        write(tmp_path / f"{name}.txt", name)
    names = ["b.txt", "./b.txt", tmp_path / "b.txt", "a.txt", f"../{tmp_path.name}/*"]
    documents = text_files(names)
    assert list(documents) == ["b", "a"]
    assert [part.name for part in documents.parts] == ["b.txt", "a.txt"]


def test_no_file_matches(tmp_path):
    write(tmp_path / "a.txt", "text")
    with pytest.raises(ValueError, match=r"must match files. Received: '.*\*\.md'"):
        text_files([tmp_path / "a.txt", str(tmp_path / "*.md")])
    with pytest.raises(ValueError, match=r"a folder: its files are '.*\*'"):
        text_files(tmp_path)
    with pytest.raises(ValueError, match="must not be empty"):
        text_files([])


def test_compressed_files(tmp_path):
    text = "Ünu linio.\n\ndua\nlinio\n" * 1000
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    documents = text_files(tmp_path / "*.gz")
    plain = text_files(write(tmp_path / "a.txt", text))
    assert list(documents) == list(documents) == list(plain)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a\.txt\.gz is damaged behind line \d+"):
        list(documents)


def test_empty_files(tmp_path):
    with pytest.raises(ValueError, match=r"empty\.txt is empty"):
        text_files(write(tmp_path / "empty.txt", ""))
    with pytest.raises(ValueError, match=r"blank\.txt.*blank lines only"):
        list(text_files(write(tmp_path / "blank.txt", "\n \n")))


def test_unreadable_file(tmp_path, monkeypatch):
    path = write(tmp_path / "secret.txt", "text")

    def refuses(file, *_):  # Root may read a file that nobody may read.
        raise PermissionError(errno.EACCES, "Permission denied", str(file))

    monkeypatch.setattr(streams, "open", refuses, raising=False)
    with pytest.raises(ValueError, match=r"must match readable files.*secret\.txt: "):
        text_files(path)


@pytest.mark.parametrize(
    ("data", "byte", "offset"),
    [
        (b"good\n\nbad: \xff", "0xff", 11),
        ("latin ü".encode("latin-1"), "0xfc", 6),
        (b"cut \xe2\x82", "0xe2", 4),
        (b"\xef\xbb\xbfmark \xff", "0xff", 8),
        (b"\xff\xfeu\x00", "0xff", 0),
    ],
)
def test_not_utf8(tmp_path, data, byte, offset):
    documents = text_files(write(tmp_path / "bad.txt", data))
    with pytest.raises(ValueError, match=rf"bad\.txt.*{byte} at offset {offset} "):
        list(documents)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le"])
def test_utf16_without_a_mark(tmp_path, encoding):
    text = "first\n\nsecond line\n"
    documents = text_files(write(tmp_path / "wide.txt", text.encode(encoding)))
    with pytest.raises(
        ValueError, match=r"wide\.txt must be .*at offset 0, as of UTF-16"
    ):
        list(documents)
    (document,) = text_files(write(tmp_path / "nul.txt", b"a stray \0 is text"))
    assert document == "a stray \0 is text"


def test_real_text_files(data_dir):
    documents = list(text_files(data_dir / "text" / "brown.txt"))
    assert len(documents) == 500
    documents = list(text_files(data_dir / "text" / "ptb_sample.txt"))
    assert len(documents) == 199
    assert all(document.strip() for document in documents)


@given(st.lists(st.text()), st.floats(0.001, 0.999))
def test_split_parts_the_documents(documents, fraction):
    training, validation = (list(part) for part in split(documents, fraction))
    assert sorted(training + validation) == sorted(documents)
    assert not set(training) & set(validation)  # equal documents stay together
    again = [list(part) for part in split(documents[::-1], fraction)]
    assert again == [training[::-1], validation[::-1]]


def test_split_has_the_fraction():
    _, validation = split([str(i) for i in range(20_000)], 0.1)
    assert abs(len(list(validation)) - 2000) < 5 * (20_000 * 0.1 * 0.9) ** 0.5


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 2.0])
def test_split_needs_a_fraction(fraction):
    with pytest.raises(ValueError, match="`validation_fraction`"):
        split(["a"], fraction)


def test_splits_have_texts_alone():
    for wrong, what in ((1.5, "float$"), ({"text": "a"}, "dict. .*hugging_face reads")):
        training, _ = split(["one", wrong], 0.5)
        with pytest.raises(
            TypeError, match=f"hold strings. .*document 1 of type {what}"
        ):
            list(training)
    with pytest.raises(ValueError, match="document 0 with '.udc80' at character 1"):
        list(split(["a\udc80"], 0.5)[0])


@pytest.mark.parametrize("name", ["a.jsonl", "b.JSON.gz", "c.csv", "d.parquet"])
def test_files_whose_lines_are_no_text(name, tmp_path):
    (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match="`patterns` must match text files.*no text"):
        text_files(tmp_path / name)


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (
            "builder",
            "`name` must be a data set of TensorFlow Datasets.*name='wiki40b/e",
        ),
        (
            "download_and_prepare",
            "`name` must be a data set that can be .*OSError: away",
        ),
        ("as_dataset", r"`split` must be one of \['train'\].*split='tset': away"),
    ],
)
def test_what_tfds_cannot_read_is_named(fails, message, monkeypatch):
    def away(*_, **__):
        raise OSError("away")

    class Text:
        pass

    builder = types.SimpleNamespace(
        info=types.SimpleNamespace(features={"text": Text()}, splits={"train": 1}),
        download_and_prepare=lambda: None,
    )
    module = types.ModuleType("tensorflow_datasets")
    module.features = types.SimpleNamespace(Text=Text)
    module.builder = lambda name, data_dir: builder
    setattr(module if fails == "builder" else builder, fails, away)
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", module)
    with pytest.raises(ValueError, match=message):
        tfds("wiki40b/en", split="tset")


def test_documents_must_last():
    with pytest.raises(TypeError, match="more than once.*generator"):
        split((d for d in ["a"]), 0.5)
    with pytest.raises(TypeError, match="one string"):
        split("text", 0.5)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ({"train": ["a"], "validation": ["b"]}, "dict. Give one of its values"),
        ({"a", "b"}, "set. Give a list"),
        (frozenset("ab"), "frozenset. Give a list"),
        (pyarrow.table({"text": ["a", "b"]}), "Table. Give one of its columns"),
    ],
    ids=["mapping", "set", "frozenset", "table"],
)
@pytest.mark.parametrize(
    "read",
    [
        lambda documents: split(documents, 0.5),
        lambda documents: sample(documents, 9),
        lambda documents: train_tokenizer(documents, 9),
        lambda documents: build_cache(documents, None, "cache"),
    ],
    ids=["split", "sample", "train_tokenizer", "build_cache"],
)
def test_documents_have_an_order(read, documents, message):
    with pytest.raises(TypeError, match=f"`documents` must .* of type {message}"):
        read(documents)


def test_tfds_without_the_package(monkeypatch):
    real = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name == "tensorflow_datasets":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install tensorflow-datasets"):
        tfds("imdb_reviews")


def test_tfds_prepared_on_disk(tmp_path, monkeypatch):
    datasets = pytest.importorskip("tensorflow_datasets")
    texts = ["A first.", "Zweitens: ü", "third"]
    folder = tmp_path / "tiny" / "1.0.0"
    folder.mkdir(parents=True)
    identity = datasets.core.dataset_info.DatasetIdentity(
        "tiny", datasets.core.Version("1.0.0"), str(folder), module_name=""
    )
    features = datasets.features.FeaturesDict(
        {"text": datasets.features.Text(), "label": datasets.features.Scalar(np.int64)}
    )
    writer = datasets.core.SequentialWriter(
        datasets.core.DatasetInfo(builder=identity, features=features),
        max_examples_per_shard=2,
    )
    writer.initialize_splits(["train"])
    writer.add_examples({"train": [{"text": text, "label": 0} for text in texts]})
    writer.close_all()

    documents = tfds("tiny", data_dir=str(tmp_path))
    assert list(documents) == texts
    assert list(documents) == texts  # again
    monkeypatch.chdir(tmp_path.parent)
    relative = tfds("tiny", data_dir=tmp_path.name)
    monkeypatch.chdir(tmp_path)
    assert list(relative) == list(documents)
    part = tfds("tiny", split="train[:2]", data_dir=str(tmp_path))
    assert list(part) == texts[:2]
    with pytest.raises(ValueError, match=r"`feature`.*\['text'\].*'label'"):
        tfds("tiny", feature="label", data_dir=str(tmp_path))
    with pytest.raises(ValueError, match="nowhere"):
        tfds("tiny", split="nowhere", data_dir=str(tmp_path))


def test_files_of_relative_paths_stay_what_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.txt", "text")
    write(tmp_path / "b.txt", b"\xff")
    documents, damaged = text_files("a.txt"), text_files("b.txt")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    write(tmp_path / "other" / "a.txt", "other text")
    assert list(documents) == ["text"]
    with pytest.raises(ValueError, match="^The file b.txt must be UTF-8"):
        list(damaged)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such files.")
def test_a_pipe_is_told(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe', which is a pipe or a device: texts"):
        text_files(tmp_path / "pipe")


def test_a_corpus_shows_its_files(tmp_path):
    for name in "abcd":
        write(tmp_path / f"{name}.txt", name)
    shown = repr(text_files(tmp_path / "*.txt"))
    assert shown.startswith("<Corpus of 4 parts: '") and shown.endswith(", …>")
    assert "a.txt', " in shown and "d.txt" not in shown
    assert repr(text_files(tmp_path / "a.txt")).endswith("a.txt'>")
