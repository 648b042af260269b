"""Single records of a cache, read by their numbers."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tfeff.data import MaskedTokens, build_cache, damage_named
from tfeff.data.cache import layout
from tfeff.data.cache.manifest import Manifest
from tfeff.data.cache.record_reader import RecordReader


@pytest.fixture
def cache(documents, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "SIZES", layout.ShardSizes(first=2000))
    return build_cache(documents, tokenizer, tmp_path / "cache", 16, progress=False)


def shards(cache):
    manifest = Manifest.read(cache.directory)
    return [os.path.join(cache.directory, shard.file) for shard in manifest.shards]


def test_records_are_those_that_tensorflow_reads(cache):
    expected = []
    for shard in shards(cache):
        before = None
        for record in tf.data.TFRecordDataset(shard).as_numpy_iterator():
            number = np.frombuffer(record[:4], "<i4")
            goes_on, before = number == before, number
            first = (~number if goes_on else number).tobytes()
            expected.append(first + record[4:])
    assert any(record[3] == 255 for record in expected)
    order = np.random.default_rng(0).permutation(len(expected))
    reader = RecordReader(cache.directory, Manifest.read(cache.directory))
    assert reader.read(order) == [expected[number] for number in order]
    assert reader.read(order[:0]) == []


@pytest.mark.parametrize("crosses", [False, True])
def test_another_cache_that_was_built_meanwhile_is_refused(
    documents, tokenizer, tmp_path, crosses
):
    def build(documents):
        shutil.rmtree(tmp_path, ignore_errors=True)
        return build_cache(
            documents, tokenizer, tmp_path, 16, cross_documents=crosses, progress=False
        )

    # Across documents all records are as long, whatever the text.
    cache = build(documents)
    manifest = Manifest.read(cache.directory)
    reader = RecordReader(cache.directory, manifest)
    batches = cache.batches(MaskedTokens(), 4, repeat=False)
    build(documents[::-1])
    message = "another one was built there since"
    for read in (
        lambda: RecordReader(cache.directory, manifest),
        lambda: cache.batches(MaskedTokens(), 4),
        lambda: reader.read(np.arange(4)),
        lambda: next(iter(batches)),
    ):
        with pytest.raises(ValueError, match=message), damage_named(cache):
            read()


def test_a_manifest_that_was_copied_is_the_same(cache):
    manifest = Manifest.read(cache.directory)
    reader = RecordReader(cache.directory, manifest)
    path = Path(cache.directory) / "manifest.json"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    assert len(reader.read(np.arange(4))) == 4


@pytest.mark.parametrize("content", [None, b""])
def test_a_missing_or_empty_file_is_named(cache, content):
    batches = cache.batches(MaskedTokens(), 4, repeat=False)
    for shard in shards(cache):
        os.remove(shard)
        if content is not None:
            Path(shard).write_bytes(content)
    reader = RecordReader(cache.directory, Manifest.read(cache.directory))
    with pytest.raises(ValueError, match=r"shard-00000\.tfrecord is damaged"):
        reader.read(np.arange(4))
    with (
        pytest.raises(ValueError, match=r"shard-\d+\.tfrecord is damaged"),
        damage_named(cache),
    ):
        next(iter(batches))


@pytest.mark.parametrize(
    "place", ["checksum", "length", "high length", "content", "cut", "cut to a header"]
)
def test_a_damaged_record_names_its_file(cache, place):
    path = Path(shards(cache)[1])
    content = bytearray(path.read_bytes())
    if place == "cut":
        del content[-1:]
    elif place == "cut to a header":
        del content[5:]
    else:
        places = {"length": 0, "high length": 7, "content": 20}
        content[places.get(place, len(content) - 1)] ^= 0x81
    path.write_bytes(content)
    reader = RecordReader(cache.directory, Manifest.read(cache.directory))
    numbers = np.arange(cache.num_sequences)
    with pytest.raises(ValueError, match=f"{path} is damaged: .*record"):
        reader.read(numbers)
