"""What a manifest with a right checksum may say, and what it may not."""

import errno
import json
import math
from pathlib import Path

import pytest

from tfeff.data import build_cache, open_cache
from tfeff.data.cache import layout
from tfeff.data.cache.manifest import _checksum


@pytest.fixture
def cache(documents, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(layout, "SIZES", layout.ShardSizes(first=2000))
    return build_cache(documents, tokenizer, tmp_path / "c", 16, progress=False)


def changed(record, changes):
    """A JSON object with other values; `...` leaves a name out."""
    return {k: v for k, v in (record | changes).items() if v is not ...}


def rewrite(cache, changes):
    """Changes a manifest together with its checksum; returns what it was."""
    path = Path(cache.directory) / "manifest.json"
    before = json.loads(path.read_text())
    new = changed(before, changes)
    content = {k: v for k, v in new.items() if k not in ("format", "checksum")}
    path.write_text(json.dumps(new | {"checksum": _checksum(content)}))
    return before


def test_files_that_the_system_refuses_to_read_are_not_damaged(cache, monkeypatch):
    def refuse(path):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("tfeff.data.cache.manifest.sha256", refuse)
    with pytest.raises(OSError, match="Too many open files, while reading .*/c/"):
        open_cache(cache.directory)


def test_what_was_written_is_read(cache):
    rewrite(cache, {})
    assert open_cache(cache.directory).num_tokens == cache.num_tokens


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"num_tokens": None}, "num_tokens is None"),
        ({"num_tokens": "x"}, "num_tokens is 'x'"),
        ({"num_tokens": True}, "num_tokens is True"),
        ({"num_documents": -1}, "num_documents is -1"),
        ({"num_sequences": 10**6}, "do not have num_sequences records"),
        ({"vocabulary_size": 1}, "special token"),
        ({"unigram_entropy": math.nan}, "unigram_entropy is nan"),
        ({"lengths_sha256": 3}, "lengths_sha256 is 3"),
        ({"more": 1}, "an unknown more"),
        ({"sequence_length": ...}, "no sequence_length"),
        ({"shards": "x"}, "shards is 'x'"),
        ({"shards": ["x"]}, "'x' is no shard"),
        ({"shards": []}, "do not have num_sequences records"),
    ],
)
def test_a_manifest_of_other_fields(cache, changes, reason):
    rewrite(cache, changes)
    with pytest.raises(ValueError, match=rf"manifest\.json is damaged: .*{reason}"):
        open_cache(cache.directory)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"file": "../c/shard-00000.tfrecord"}, "is no name of a file"),
        ({"file": "/dev/null"}, "is no name of a file"),
        ({"file": ".."}, "is no name of a file"),
        ({"file": None}, "file is None"),
        ({"file": "shard-00001.tfrecord"}, "a file twice"),
        ({"num_records": -1}, "has no records"),
        ({"num_records": 10**6}, "do not have num_sequences records"),
        ({"num_records": ...}, "no num_records"),
        ({"more": 1}, "an unknown more"),
    ],
)
def test_a_manifest_of_other_shards(cache, changes, reason):
    first, *others = rewrite(cache, {})["shards"]
    rewrite(cache, {"shards": [changed(first, changes), *others]})
    with pytest.raises(ValueError, match=rf"manifest\.json is damaged: .*{reason}"):
        open_cache(cache.directory)
