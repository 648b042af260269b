"""Caches that Apache Beam's workers write to a URL: the same bytes, or nothing."""

from pathlib import Path

import pytest

from tests.subjects.beam import DIRECT, write_corpus
from tests.subjects.files import contents
from tests.subjects.stores import make_store
from tfeff import storage
from tfeff.data import MaskedTokens, build_cache, open_cache, sample
from tfeff.data.cache import layout
from tfeff.data.text.corpus import Corpus

pytest.importorskip("apache_beam")
URL = "store://bucket/english"


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(layout, "SIZES", layout.ShardSizes(first=2000))


@pytest.fixture
def store(tmp_path, monkeypatch):
    return make_store(tmp_path / "store", monkeypatch)


@pytest.fixture
def corpus(documents, tmp_path):
    (tmp_path / "corpus").mkdir()
    return write_corpus(tmp_path / "corpus", documents, 5)


def there(store) -> list[str]:
    """Names of the objects, those of a pipeline's folder without the folder."""
    root = Path(store.root, "bucket", "english")
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def test_the_same_bytes(corpus, tokenizer, tmp_path, store):
    threads = build_cache(corpus, tokenizer, tmp_path / "t", 16)
    beam = build_cache(corpus, tokenizer, URL, 16, beam_flags=DIRECT)
    assert there(store) == sorted([*contents(tmp_path / "t"), "tfeff-manifest.json"])
    # Nothing has been downloaded but the manifests.
    copies = [p.name for p in (tmp_path / "copies").rglob("*") if p.is_file()]
    assert copies == ["manifest.json"]
    assert repr(beam) == repr(threads).replace(str(tmp_path / "t"), URL)
    assert contents(storage.fetch(URL)) == contents(tmp_path / "t")
    one, other = (
        next(iter(cache.batches(MaskedTokens(), 4)))[0]["token_ids"]
        for cache in (threads, beam)
    )
    assert (one == other).numpy().all()
    assert contents(open_cache(URL, tokenizer).directory) == contents(tmp_path / "t")


def test_a_matching_cache_is_reused(corpus, tokenizer, tmp_path, store):
    build_cache(corpus, tokenizer, URL, 16)  # By threads, and uploaded.
    before = there(store)
    cache = build_cache(corpus, tokenizer, URL, 16, beam_flags=DIRECT)
    assert cache.num_sequences == open_cache(URL).num_sequences
    with pytest.raises(ValueError, match="sequence_length is 16, not 17"):
        build_cache(corpus, tokenizer, URL, 17, beam_flags=DIRECT)
    others = Corpus(corpus.parts[1:])
    with pytest.raises(ValueError, match="corpus_hash is .*documents differ"):
        build_cache(others, tokenizer, URL, 16, beam_flags=DIRECT)
    assert there(store) == before


def test_a_pipeline_that_ends_leaves_nothing_whole(
    corpus, tokenizer, tmp_path, store, monkeypatch
):
    def fails(path):
        if "shard-00003" in path:
            raise OSError("the connection broke")

    monkeypatch.setattr(store, "fails", staticmethod(fails))
    monkeypatch.setattr(store, "lag", 0)
    with pytest.raises(OSError, match="the connection broke"):
        build_cache(corpus, tokenizer, URL, 16, beam_flags=DIRECT)
    assert there(store) == ["tfeff-unfinished.json"]
    with pytest.raises(ValueError, match="whose upload has not ended"):
        open_cache(URL)
    # What a killed process has left is removed by the one that ends first.
    left = Path(store.root, "bucket", "english", "parts-0123456789abcdef", "shard-9")
    left.parent.mkdir()
    left.write_bytes(b"")
    monkeypatch.setattr(store, "fails", staticmethod(lambda path: None))
    build_cache(corpus, tokenizer, URL, 16, beam_flags=DIRECT)
    build_cache(corpus, tokenizer, tmp_path / "t", 16)
    assert not left.exists()
    assert contents(storage.fetch(URL)) == contents(tmp_path / "t")


def test_of_two_at_once_the_first_one_counts(
    corpus, tokenizer, tmp_path, store, monkeypatch
):
    from tfeff.data.cache import beam_steps

    monkeypatch.setattr(store, "lag", 0)
    lengths = [16, 12]  # Of the first and the second process.
    read_report = beam_steps.read_report

    def other_first(folder):
        found = read_report(folder)
        if lengths:
            build_cache(corpus, tokenizer, URL, lengths.pop(0), beam_flags=DIRECT)
        return found

    monkeypatch.setattr(beam_steps, "read_report", other_first)
    del lengths[1]
    cache = build_cache(corpus, tokenizer, URL, 16, beam_flags=DIRECT)
    assert cache.num_sequences == open_cache(URL, tokenizer).num_sequences
    other = "store://bucket/others"
    lengths.append(12)

    def others_first(folder):
        found = read_report(folder)
        if lengths:
            build_cache(corpus, tokenizer, other, lengths.pop(), beam_flags=DIRECT)
        return found

    monkeypatch.setattr(beam_steps, "read_report", others_first)
    with pytest.raises(ValueError, match="sequence_length is 12, not 16"):
        build_cache(corpus, tokenizer, other, 16, beam_flags=DIRECT)
    assert open_cache(other, tokenizer).sequence_length == 12


def test_places_of_others(corpus, tokenizer, store):
    with pytest.raises(ValueError, match="`directory` needs a library for s4://|s4"):
        build_cache(corpus, tokenizer, "s4://bucket/a", beam_flags=DIRECT)
    folder = Path(store.root, "bucket", "english")
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_text("mine")
    store.lag = 0
    with pytest.raises(ValueError, match="`directory` must be new.*mine.txt"):
        build_cache(corpus, tokenizer, URL, beam_flags=DIRECT)
    assert there(store) == ["mine.txt"]


def test_the_same_sample(corpus, store):
    store.lag = 0
    drawn = sample(corpus, 3000, beam_flags=DIRECT, shared_folder=URL)
    assert drawn == sample(corpus, 3000)
    assert there(store) == []
