"""Building a cache: what it holds, that it is whole or absent, and its errors."""

import hashlib
import json
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks.pages import REPOSITORY
from tests.subjects.corpus import token_lists
from tests.subjects.files import contents
from tfeff.data import build_cache, open_cache, tokenizer_fingerprint
from tfeff.data.cache import layout, shards, tokenization


@pytest.fixture
def small_shards(monkeypatch):
    """Shards of a few documents, so that a small corpus has many."""
    monkeypatch.setattr(layout, "SIZES", layout.ShardSizes(first=2000))


def build(documents, tokenizer, directory, **settings):
    settings = {"sequence_length": 16, "num_threads": 1, "progress": False} | settings
    return build_cache(documents, tokenizer, directory, **settings)


def read_records(cache) -> list[list[int]]:
    """All sequences, by TensorFlow's own reader."""
    return [ids for _, *ids in read_numbered(cache)]


def read_numbered(cache) -> list[list[int]]:
    """All records: the number of a document, then a sequence of it."""
    manifest = json.loads((Path(cache.directory) / "manifest.json").read_text())
    paths = [os.path.join(cache.directory, s["file"]) for s in manifest["shards"]]
    records = tf.data.TFRecordDataset(paths).as_numpy_iterator()
    return [np.frombuffer(record, "<i4").tolist() for record in records]


def cut(ids, size):
    return [[2, *ids[i : i + size], 3] for i in range(0, len(ids), size)]


@pytest.mark.parametrize("length", [3, 16, 33, 4000])
def test_every_token_once_and_no_document_crossed(
    documents, tokenizer, tmp_path, small_shards, length
):
    cache = build(documents, tokenizer, tmp_path / "c", sequence_length=length)
    ids = token_lists(tokenizer, documents)
    assert read_numbered(cache) == [
        [number, *p] for number, d in enumerate(ids) for p in cut(d, length - 2)
    ]
    assert cache.num_sequences == sum(math.ceil(len(d) / (length - 2)) for d in ids)
    assert cache.num_tokens == sum(map(len, ids))
    assert cache.sequence_length == length
    assert cache.vocabulary_size == 120
    assert cache.tokenizer_hash == tokenizer_fingerprint(tokenizer)
    assert cache.directory == str(tmp_path / "c")


@pytest.mark.parametrize("kind", ["sentencepiece", "wordpiece"])
def test_rows_and_documents_in_several_blocks(
    kind, documents, tokenizer, tmp_path, monkeypatch
):
    monkeypatch.setattr(shards, "_ROWS_AT_ONCE", 3)
    monkeypatch.setattr(tokenization, "_DOCUMENTS_IN_A_CALL", 2)
    if kind == "wordpiece":
        tokenizer = tfeff.data.train_tokenizer(documents, 160, kind=kind)
    cache = build(documents, tokenizer, tmp_path / "c")
    start, end = tokenizer.cls_token_id, tokenizer.sep_token_id
    assert read_numbered(cache) == [
        [number, start, *piece[1:-1], end]
        for number, ids in enumerate(token_lists(tokenizer, documents))
        for piece in cut(ids, 14)
    ]
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text())
    texts = [ids for ids in token_lists(tokenizer, documents) if ids]
    assert manifest["num_documents"] == len(texts) < len(documents)


def test_across_documents_when_asked(documents, tokenizer, tmp_path):
    cache = build(documents, tokenizer, tmp_path / "c", cross_documents=True)
    ids = [d for d in token_lists(tokenizer, documents) if d]
    joined = ids[0] + [t for d in ids[1:] for t in [3, *d]]
    assert read_records(cache) == cut(joined, 14)
    assert cache.num_tokens == sum(map(len, ids))  # separators are no text


def test_unigram_entropy(documents, tokenizer, tmp_path):
    cache = build(documents, tokenizer, tmp_path / "c", cross_documents=True)
    counts = Counter(t for d in token_lists(tokenizer, documents) for t in d)
    total = sum(counts.values())
    entropy = -sum(n / total * math.log(n / total) for n in counts.values())
    assert cache.unigram_entropy() == pytest.approx(entropy, rel=1e-12)


@pytest.mark.parametrize("cross", [False, True])
def test_the_number_of_threads_changes_nothing(
    documents, tokenizer, tmp_path, small_shards, cross
):
    caches = [
        build(
            documents,
            tokenizer,
            tmp_path / str(n),
            num_threads=n,
            cross_documents=cross,
        )
        for n in (1, 2, 3)
    ]
    first, *others = [contents(cache.directory) for cache in caches]
    assert len(first) > 6
    assert others == [first, first]


def test_shards_grow_with_the_corpus(tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "SIZES", layout.ShardSizes(10, 40, 2))
    cache = build(["0123456789"] * 18, tokenizer, tmp_path / "c")
    manifest = json.loads((tmp_path / "c" / "manifest.json").read_text())
    sizes = [shard["num_records"] for shard in manifest["shards"]]
    assert sizes == [1, 1, 2, 2, 4, 4, 4]
    assert cache.num_sequences == 18


class Shifted(keras_hub.tokenizers.AlbertTokenizer):
    """A tokenizer whose ids are not those of its SentencePiece model."""

    shift = -1

    def tokenize(self, inputs):
        ids = super().tokenize(inputs)
        if isinstance(ids, list):
            return [[i + self.shift for i in row] for row in ids]
        return ids + self.shift


@pytest.mark.slow
def test_other_tokenizers_are_called(documents, tokenizer, tmp_path, small_shards):
    words = sorted({w for d in documents for w in d.lower().split()})
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    word_piece = keras_hub.tokenizers.BertTokenizer(words + special, lowercase=True)
    others = {
        "w": word_piece,
        "s": Shifted(tokenizer.proto),
        "b": tfeff.data.train_tokenizer(documents, 160, kind="wordpiece"),
    }
    for name, other in others.items():
        cache = build(documents, other, tmp_path / name, num_threads=2)
        start, end = other.cls_token_id, other.sep_token_id
        expected = [
            [start, *p[1:-1], end]
            for d in token_lists(other, documents)
            for p in cut(d, 14)
        ]
        assert read_records(cache) == expected


def test_a_matching_cache_is_reused(documents, tokenizer, tmp_path):
    build(documents, tokenizer, tmp_path / "c")
    before = contents(tmp_path / "c")
    times = {p: p.stat().st_mtime_ns for p in (tmp_path / "c").iterdir()}
    again = build(tuple(documents), tokenizer, tmp_path / "c", num_threads=2)
    assert read_records(again) and contents(tmp_path / "c") == before
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "c").iterdir()} == times


def test_another_cache_is_not_touched(documents, tokenizer, tmp_path):
    build(documents, tokenizer, tmp_path / "c")
    before = contents(tmp_path / "c")
    other = tfeff.data.train_tokenizer(documents, 110)
    split_differently = [documents[0] + documents[1], *documents[2:]]
    for message, call in {
        "sequence_length is 16, not 17": {"sequence_length": 17},
        "cross_documents is False, not True": {"cross_documents": True},
        "tokenizer_hash is .* vocabulary_size is 120, not 110": {"tokenizer": other},
        "corpus_hash is .*documents differ": {"documents": documents[1:]},
        "corpus_hash is": {"documents": split_differently},
    }.items():
        arguments = {"documents": documents, "tokenizer": tokenizer} | call
        with pytest.raises(ValueError, match=f"`directory` must.*{message}.*delete"):
            build(**arguments, directory=tmp_path / "c")
    assert contents(tmp_path / "c") == before
    assert os.listdir(tmp_path) == ["c"]


@pytest.mark.parametrize("kind", ["folder", "empty folder", "file", "dangling link"])
def test_what_is_no_cache_is_not_touched(documents, tokenizer, tmp_path, kind):
    path = tmp_path / "mine"
    if kind == "file":
        path.write_text("mine")
    elif kind == "dangling link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.mkdir()
        if kind == "folder":
            (path / "file").write_text("mine")
    with pytest.raises(ValueError, match="`directory` must be a cache.*mine"):
        build(documents, tokenizer, path)
    assert os.listdir(tmp_path) == ["mine"]
    if kind == "folder":
        assert contents(path) == {"file": b"mine"}


def test_parents_are_made(documents, tokenizer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache = build(documents, tokenizer, "a/b/c/")
    assert cache.directory == str(tmp_path / "a" / "b" / "c")
    assert os.listdir(tmp_path / "a" / "b") == ["c"]


@pytest.mark.slow
def test_a_full_disk_leaves_nothing_behind(documents, tokenizer, tmp_path):
    """With one thread, and with two."""
    build(documents[:9], tokenizer, tmp_path / "earlier")
    earlier = contents(tmp_path)
    folders = [str(tmp_path / name) for name in ("one", "two")]
    program = [sys.executable, "-m", "tests.subjects.full_disk", *folders]
    result = subprocess.run(program, cwd=REPOSITORY, capture_output=True, text=True)
    assert result.stdout.count("File too large") == 2, result.stderr
    assert os.listdir(tmp_path) == ["earlier"]
    assert contents(tmp_path) == earlier


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_an_interruption_leaves_nothing_behind(
    documents, tokenizer, tmp_path, small_shards, error
):
    class Stops(list):
        def __iter__(self):
            yield from self[:100]
            raise error("stop")

    with pytest.raises(error, match="stop"):
        build(Stops(documents), tokenizer, tmp_path / "c", num_threads=2)
    assert os.listdir(tmp_path) == []


def test_another_run_that_was_faster(documents, tokenizer, tmp_path):
    """Two runs that share a folder: the second to finish takes the first's cache."""

    class MeanwhileBuilt(list):
        def __iter__(self):
            if not (tmp_path / "c").exists():
                build(documents, tokenizer, tmp_path / "c")
            return super().__iter__()

    cache = build(MeanwhileBuilt(documents), tokenizer, tmp_path / "c")
    assert cache.num_sequences == open_cache(tmp_path / "c").num_sequences
    assert os.listdir(tmp_path) == ["c"]


class OutsideVocabulary(Shifted):
    shift = 110


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"documents": []}, ValueError, "`documents` must hold text.* 0 documents"),
        ({"documents": ["", " "]}, ValueError, "`documents` must hold text.* 2 doc"),
        ({"documents": "text"}, TypeError, "one string, documents"),
        ({"documents": iter(["text"])}, TypeError, "more than once.*list_iterator"),
        ({"documents": ["text", None]}, TypeError, "document 1 of type NoneType"),
        ({"documents": ["\udfff"]}, ValueError, "document 0"),
        ({"sequence_length": 2}, ValueError, "`sequence_length`.*=2"),
        ({"sequence_length": 16.0}, TypeError, "`sequence_length`.*=16.0"),
        ({"cross_documents": 1}, TypeError, "`cross_documents`"),
        ({"num_threads": 0}, ValueError, "`num_threads`.*=0"),
        ({"directory": ""}, TypeError, "`directory`"),
        ({"directory": None}, TypeError, "`directory`"),
        ({"tokenizer": str.split}, TypeError, "`tokenizer` must be a KerasHub"),
    ],
)
def test_bad_arguments(documents, tokenizer, tmp_path, change, error, message):
    good = {"documents": documents, "tokenizer": tokenizer, "directory": tmp_path / "c"}
    with pytest.raises(error, match=message):
        build(**{**good, **change})
    assert os.listdir(tmp_path) == []


def test_bad_tokenizers(documents, tokenizer, tmp_path):
    plain = keras_hub.tokenizers.SentencePieceTokenizer(tokenizer.proto)
    with pytest.raises(TypeError, match="`tokenizer`.*without.*mask_token_id"):
        build(documents, plain, tmp_path / "c")
    with pytest.raises(ValueError, match="`tokenizer` must give ids from 0 to .*119"):
        build(documents, OutsideVocabulary(tokenizer.proto), tmp_path / "c")
    assert os.listdir(tmp_path) == []


class TestOpening:
    @pytest.fixture
    def cache(self, documents, tokenizer, tmp_path, small_shards):
        return build(documents, tokenizer, tmp_path / "c")

    def test_what_was_built(self, cache, tokenizer, tmp_path):
        os.rename(tmp_path / "c", tmp_path / "moved")
        opened = open_cache(tmp_path / "moved", tokenizer)
        assert opened.corpus_hash == cache.corpus_hash
        assert opened.unigram_entropy() == cache.unigram_entropy()
        read = opened.batches(tfeff.data.MaskedTokens(), 4, repeat=False)
        batches = zip(read, range(3), strict=False)
        assert len(list(batches)) == 3

    def test_another_tokenizer(self, cache, documents):
        other = tfeff.data.train_tokenizer(documents, 110)
        mine = tokenizer_fingerprint(other)
        with pytest.raises(ValueError, match=f"{mine}.*{cache.tokenizer_hash}"):
            open_cache(cache.directory, other)

    @pytest.mark.parametrize("damage", ["missing", "truncated", "longer", "flipped"])
    @pytest.mark.parametrize(
        "name", ["shard-00002.tfrecord", "manifest.json", "lengths.npy"]
    )
    def test_damage_is_noticed(self, cache, documents, tokenizer, damage, name):
        path = Path(cache.directory) / name
        data = bytearray(path.read_bytes())
        if damage == "missing":
            path.unlink()
        elif damage == "truncated":
            path.write_bytes(data[:-20])
        elif damage == "longer":
            path.write_bytes(data + b"more")
        else:
            position = data.index(b'"num_tokens": ') + 14 if name[0] == "m" else 30
            data[position] ^= 1
            path.write_bytes(data)
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            open_cache(cache.directory)
        with pytest.raises(ValueError, match=name.replace(".", r"\.")):
            build(documents, tokenizer, cache.directory)
        if damage != "flipped":  # sizes are always compared
            with pytest.raises(ValueError, match=name.replace(".", r"\.")):
                open_cache(cache.directory, verify=False)

    @pytest.mark.parametrize("content", ["nothing", "text", "archive", "floats"])
    def test_lengths_that_are_none_are_named(self, cache, content):
        path = Path(cache.directory) / "lengths.npy"
        lengths = np.load(path)
        with open(path, "wb") as file:
            if content == "text":
                file.write(b"lengths")
            elif content == "archive":
                np.savez(file, lengths)
            elif content == "floats":
                np.save(file, lengths.astype("float32"))
        with pytest.raises(ValueError, match=r"lengths\.npy is damaged"):
            open_cache(cache.directory, verify=False)

    @pytest.mark.parametrize("version", [3, 99])
    def test_another_format(self, cache, version):
        path = Path(cache.directory) / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": version}))
        message = rf"manifest\.json has format {version}.*format 4\. Build"
        with pytest.raises(ValueError, match=message):
            open_cache(cache.directory)

    @pytest.mark.parametrize("content", ["[]", "{}", "3", "\xff", '{"format": 1}'])
    def test_no_manifest_at_all(self, cache, content):
        path = Path(cache.directory) / "manifest.json"
        path.write_bytes(content.encode("latin-1"))
        with pytest.raises(ValueError, match=r"manifest\.json is damaged"):
            open_cache(cache.directory)

    def test_no_cache(self, tmp_path):
        with pytest.raises(ValueError, match="`directory` must be a cache"):
            open_cache(tmp_path / "none")
        with pytest.raises(TypeError, match="`directory`"):
            open_cache(None)


def test_corpus_hash_tells_documents_apart(tokenizer, tmp_path):
    corpora = [["a b", "c"], ["a", "b c"], ["a b c"], ["c", "a b"]]
    hashes = [
        build(corpus, tokenizer, tmp_path / str(i)).corpus_hash
        for i, corpus in enumerate(corpora)
    ]
    assert len(set(hashes)) == 4
    shard = hashlib.sha256(bytes([3] + [0] * 7) + b"a b" + bytes([1] + [0] * 7) + b"c")
    assert hashes[0] == hashlib.sha256(shard.digest()).hexdigest()


def test_progress_in_plain_lines(documents, tokenizer, tmp_path, capfd):
    build(documents, tokenizer, tmp_path / "c", progress=True)
    count = len(documents)
    assert f"Tokenizing: {count} of {count} documents, " in capfd.readouterr().err
    build(documents, tokenizer, tmp_path / "quiet", progress=False)
    assert capfd.readouterr().err == ""
