"""`tfeff cache`, and `tfeff pretrain` from what it wrote."""

import dataclasses
import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

import tfeff
from tests.subjects.files import contents
from tests.subjects.recipes import SMALL
from tests.subjects.sentences import tokenizer
from tests.subjects.stores import make_store
from tfeff import storage
from tfeff.command import main
from tfeff.recipes import (
    CacheSettings,
    PretrainSettings,
    cache,
    caching,
    corpora,
    pretrain,
    pretraining,
)
from tfeff.recipes.pretraining_data import make_data
from tfeff.recipes.runs import open_run
from tfeff.tasks import run_tokenizer

TEXT = ("vocabulary_size", "sequence_length", "validation_fraction")


def settings(folder, corpus, **others):
    given = {"vocabulary_size": 300, "sequence_length": 24, "validation_fraction": 0.1}
    return CacheSettings(cache_dir=str(folder), corpus=(corpus,), **given | others)


@pytest.fixture(scope="module")
def cached(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("caches") / "text"
    cache(settings(folder, corpus, tokenizer_sample=30_000))
    return folder


def test_the_folder_is_that_of_a_tokenizer_and_two_caches(cached):
    assert set(os.listdir(cached)) == {
        *("config.json", "tokenizer.spm", "tokenizer.spm.sha256"),
        *("train", "validation"),
    }


def test_a_damaged_tokenizer_is_told(cached, corpus, tmp_path):
    """With the caches and without them, by `cache` as by a run that reads them."""
    folder = tmp_path / "c"
    shutil.copytree(cached, folder)
    path = folder / "tokenizer.spm"
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    path.write_bytes(damaged)
    run = PretrainSettings(
        run_dir=str(tmp_path / "run"),
        cache_dir=str(folder),
        preset="bert_tiny",
        sequence_length=24,
        steps=1,
        warmup_steps=0,
    )
    for caches in (("train", "validation"), ()):
        for name in () if caches else ("train", "validation"):
            shutil.rmtree(folder / name)
        before = contents(folder)
        with pytest.raises(ValueError, match="(?s)tokenizer.spm.*amage"):
            cache(settings(folder, corpus, tokenizer_sample=30_000))
        assert contents(folder) == before
        if caches:
            with pytest.raises(ValueError, match="(?s)tokenizer.spm.*amage"):
                pretrain(run)
            assert not run_tokenizer.has_run_tokenizer(tmp_path / "run")
    # So it is without a digest, as soon as there are sequences.
    shutil.rmtree(folder)
    shutil.copytree(cached, folder)
    (folder / "tokenizer.spm.sha256").unlink()
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match="`cache_dir` must have the tokenizer that"):
        pretrain(run)
    assert not run_tokenizer.has_run_tokenizer(tmp_path / "run")
    # Without the file it is made again, and is the same.
    path.unlink()
    cache(settings(folder, corpus, tokenizer_sample=30_000))
    assert contents(folder) == contents(cached)


def test_started_again_it_changes_nothing_and_makes_what_is_missing(
    cached, corpus, tmp_path
):
    folder = tmp_path / "c"
    shutil.copytree(cached, folder)
    shutil.rmtree(folder / "validation")
    same = settings(folder, corpus, tokenizer_sample=30_000)
    cache(same)
    cache(same)
    assert contents(folder) == contents(cached)


def test_other_settings_are_refused(cached, corpus):
    before = contents(cached)
    with pytest.raises(ValueError, match="`cache_dir` .*sequence_length is 24, not 32"):
        cache(settings(cached, corpus, tokenizer_sample=30_000, sequence_length=32))
    with pytest.raises(ValueError, match="tokenizer_sample is 30000, not None"):
        cache(settings(cached, corpus))
    assert contents(cached) == before


@pytest.mark.parametrize("name", ["tokenizer.spm", "tokenizer", "train", "validation"])
def test_what_others_have_put_there_is_refused(corpus, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(
        ValueError, match=f"`cache_dir` must be a new folder.*has {name}"
    ):
        cache(settings(tmp_path, corpus))
    assert contents(tmp_path) == {name: b"mine"}


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"corpus": ["x"', "null", '{"a": 1}', '{"sequence_length": "a"}'],
)
def test_a_configuration_that_is_damaged_or_of_others_is_named(corpus, tmp_path, text):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(ValueError, match=f"{tmp_path}"):
        cache(settings(tmp_path, corpus))
    assert contents(tmp_path) == {"config.json": text.encode()}


def test_a_start_that_fails_leaves_no_settings(corpus, tmp_path):
    with pytest.raises(ValueError, match="vocabulary_size"):
        cache(settings(tmp_path, corpus, vocabulary_size=10_000_000))
    cache(settings(tmp_path, corpus))


@pytest.mark.parametrize("size", [299, 300])
def test_two_at_once_in_a_folder(corpus, tmp_path, monkeypatch, size):
    real = caching.train_tokenizer
    others = [settings(tmp_path, corpus, vocabulary_size=size)]

    def train_tokenizer(documents, settings):
        while others:
            other = others.pop()
            if size == 300:
                cache(other)
                continue
            with pytest.raises(ValueError, match="vocabulary_size is 300, not 299"):
                cache(other)
        return real(documents, settings)

    monkeypatch.setattr(caching, "train_tokenizer", train_tokenizer)
    cache(settings(tmp_path, corpus))
    assert {"config.json", "tokenizer.spm"} <= set(os.listdir(tmp_path))
    cache(settings(tmp_path, corpus))


@pytest.mark.parametrize("size", [None, 299])
def test_settings_that_change_while_a_tokenizer_is_trained(
    corpus, tmp_path, monkeypatch, size
):
    real, config = caching.train_tokenizer, tmp_path / "config.json"

    def train_tokenizer(documents, given):
        config.unlink()  # As one that began first does where it is interrupted.
        if size:
            other = settings(tmp_path, corpus, vocabulary_size=size)
            config.write_text(json.dumps(other.config()))
        return real(documents, given)

    monkeypatch.setattr(caching, "train_tokenizer", train_tokenizer)
    if size:
        with pytest.raises(ValueError, match="vocabulary_size is 299, not 300"):
            cache(settings(tmp_path, corpus))
        assert os.listdir(tmp_path) == ["config.json"]
        monkeypatch.undo()
    cache(settings(tmp_path, corpus, vocabulary_size=size or 300))
    assert json.loads(config.read_text())["vocabulary_size"] == size or 300


def test_an_interrupted_start_leaves_no_settings(corpus, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(caching, "train_tokenizer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            cache(settings(tmp_path, corpus, vocabulary_size=299))
    assert not os.listdir(tmp_path)
    cache(settings(tmp_path, corpus))


@pytest.mark.slow
def test_a_run_from_the_folder(cached, tmp_path):
    run_dir = tmp_path / "run"
    flags = [flag for flag in SMALL if not flag[2:].startswith(TEXT)]
    lengths = ["--sequence_length=24", "--vocabulary_size=300"]
    command = ["pretrain", f"--run_dir={run_dir}", f"--cache_dir={cached}"]
    assert main.main([*command, *lengths, *flags]) == 0
    assert (run_dir / "export").exists() and not (run_dir / "cache").exists()
    spm = "tokenizer.spm"
    assert (run_dir / spm).read_bytes() == (cached / spm).read_bytes()
    assert json.loads((run_dir / "config.json").read_text())["cache_dir"] == str(cached)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"corpus": ["x.txt"]}, "cannot be given with settings of them.*corpus"),
        ({"tokenizer": "x"}, "cannot be given with settings of them.*tokenizer"),
        ({"sequence_length": 32}, "`sequence_length` must be that of `cache_dir`, 24"),
        ({"vocabulary_size": 299}, "`vocabulary_size` must be at least .* 300"),
        ({"cache_dir": "nowhere"}, "nowhere"),
    ],
)
def test_runs_that_do_not_fit(cached, tmp_path, change, message):
    fitting = {
        "run_dir": str(tmp_path / "run"),
        "cache_dir": str(cached),
        "sequence_length": 24,
        "vocabulary_size": 300,
        "steps": 2,
        "warmup_steps": 1,
    }
    with pytest.raises(ValueError, match=message):
        pretraining.pretrain(PretrainSettings(**{**fitting, **change}))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"sequence_length": 16}, "same sequence_length. Received: 24 .*, 16 of"),
        ({"sequence_length": 32}, "same sequence_length. Received: 24 .*, 32 of"),
        ({"cross_documents": True}, "same cross_documents. Received: False .*, True"),
    ],
)
def test_caches_of_two_folders(cached, corpus, tmp_path, others, message):
    other = settings(
        tmp_path / "other",
        corpus,
        tokenizer=str(cached / "tokenizer.spm"),
        sequence_length=others.get("sequence_length", 24),
        cross_documents=others.get("cross_documents", False),
    )
    cache(dataclasses.replace(other, vocabulary_size=32_000))
    folder = tmp_path / "mixed"
    shutil.copytree(cached, folder)
    shutil.rmtree(folder / "validation")
    shutil.copytree(tmp_path / "other" / "validation", folder / "validation")
    of_run = PretrainSettings(
        run_dir=str(tmp_path / "run"),
        cache_dir=str(folder),
        sequence_length=24,
        vocabulary_size=300,
    )
    with pytest.raises(ValueError, match=f"`cache_dir` must have two .*{message}"):
        pretraining.pretrain(of_run)
    assert not (tmp_path / "run").exists()


def test_a_tokenizer_that_was_replaced_is_told(cached, corpus, tmp_path, capsys):
    path = tmp_path / "tokenizer.spm"
    shutil.copy(cached / "tokenizer.spm", path)
    given = {"tokenizer": str(path), "vocabulary_size": 32_000}
    cache(settings(tmp_path / "c", corpus, **given))
    cache(settings(tmp_path / "c", corpus, **given))
    assert "of an earlier start" not in capsys.readouterr().out
    path.unlink()
    tfeff.data.save_tokenizer(tokenizer(), path)
    before = contents(tmp_path / "c")
    with pytest.raises(ValueError, match="`cache_dir` must be a new .* `tokenizer` na"):
        cache(settings(tmp_path / "c", corpus, **given))
    assert contents(tmp_path / "c") == before
    shutil.copytree(cached, tmp_path / "trained")
    cache(settings(tmp_path / "trained", corpus, tokenizer_sample=30_000))
    assert "the tokenizer is that of an earlier start" in capsys.readouterr().out


def test_another_tokenizer_than_the_encoders_is_named(cached, tmp_path):
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=60, num_layers=1)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), tmp_path / "preset")
    of_run = PretrainSettings(
        run_dir=str(tmp_path / "run"),
        cache_dir=str(cached),
        pretrained=str(tmp_path / "preset"),
        sequence_length=24,
    )
    message = (
        "`cache_dir` must have sequences of the tokenizer of `pretrained`: "
        f"`tfeff cache --tokenizer={tmp_path}/preset`. Received: cache_dir='{cached}', "
        f"pretrained='{tmp_path}/preset'"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pretraining.pretrain(of_run)
    assert not (tmp_path / "run").exists()


def test_another_tokenizer_than_the_runs_is_named(cached, tmp_path):
    of_run = PretrainSettings(
        run_dir=str(tmp_path / "run"), cache_dir=str(cached), sequence_length=24
    )
    message = "`cache_dir` must have sequences of the tokenizer of this run.*run_dir='"
    with open_run(of_run) as run:
        run_tokenizer.save_run_tokenizer(tokenizer(), run.directory)
        with pytest.raises(ValueError, match=message):
            make_data(run, of_run)


@pytest.mark.parametrize("objective", ["sentence_order", "next_sentence"])
def test_pairs_of_a_cache_that_crosses_documents(corpus, tmp_path, objective):
    folder, run_dir = tmp_path / "caches", tmp_path / "run"
    cache(settings(folder, corpus, cross_documents=True))
    of_run = PretrainSettings(
        run_dir=str(run_dir),
        cache_dir=str(folder),
        sequence_length=24,
        vocabulary_size=300,
        objective=objective,
    )
    with pytest.raises(ValueError, match="`cache_dir` must have sequences of one doc"):
        pretraining.pretrain(of_run)
    assert not run_dir.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beam_flags": ("--x",)}, "`runner` must be given with flags of Beam.*--x"),
        ({"tokenizer": "x", "tokenizer_sample": 3}, "`tokenizer_sample` must be left"),
        (
            {"tokenizer": "x", "tokenizer_kind": "wordpiece"},
            "`tokenizer_kind` must be left",
        ),
        (
            {"tokenizer": "x", "tokenizer_lowercase": False},
            "`tokenizer_lowercase` must be left",
        ),
        ({"tokenizer": "x", "vocabulary_size": 77}, "`vocabulary_size` must be left"),
        (
            {"validation": ("b",), "validation_fraction": 0.9},
            "`validation_fraction` must",
        ),
        (
            {"tokenizer": "nowhere", "vocabulary_size": 32_000},
            "`tokenizer` must be what .*nowhere",
        ),
        ({"corpus": "nowhere.txt"}, "nowhere.txt.*matches none"),
        (
            {
                "corpus": "docstrings",
                "validation": ("docstrings",),
                "validation_fraction": 0.02,
            },
            "`validation` must be of other text",
        ),
    ],
)
def test_bad_settings(corpus, tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        cache(settings(tmp_path / "c", **{"corpus": corpus, **change}))
    assert not os.listdir(tmp_path)


@pytest.fixture
def store(tmp_path, monkeypatch):
    return make_store(tmp_path / "store", monkeypatch)


@pytest.mark.parametrize(
    "runner",
    [None, pytest.param("FnApiRunner", marks=pytest.mark.slow)],
)
def test_at_a_url(cached, corpus, store, tmp_path, monkeypatch, runner):
    if runner:
        pytest.importorskip("apache_beam")
    url = "store://bucket/text"
    same = settings(url, corpus, tokenizer_sample=30_000, runner=runner)
    written = cache(same)
    assert [c.num_tokens > 0 for c in written] == [True, True]
    for part in ("config.json", "tokenizer.spm", "train", "validation"):
        copy = Path(storage.fetch(f"{url}/{part}"))
        if copy.is_dir():
            assert contents(copy) == contents(cached / part)
        else:
            assert copy.read_bytes() == (cached / part).read_bytes()
    before = contents(store.root)
    cache(same)
    assert contents(store.root) == before
    with pytest.raises(ValueError, match="tokenizer_sample is 30000, not None"):
        cache(settings(url, corpus, runner=runner))
    # On another machine.
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "other"))
    tokenizer = run_tokenizer.load_run_tokenizer(url)
    trained, validated = corpora.open_caches(url, tokenizer, 24)
    assert trained.num_tokens == written[0].num_tokens
    assert validated.num_tokens == written[1].num_tokens
    assert contents(store.root) == before


def test_without_beam(corpus, tmp_path, monkeypatch):
    loaded = [name for name in sys.modules if name.startswith("apache_beam.")]
    for name in ("apache_beam", "apache_beam.options", *loaded):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        ImportError, match=r"`beam_flags` need.*pip install 'tfeff\[beam"
    ):
        cache(settings(tmp_path / "c", corpus, runner="DirectRunner"))
    assert not os.listdir(tmp_path)


def test_by_beam(cached, corpus, tmp_path):
    pytest.importorskip("apache_beam")
    flags = ["--", "--direct_runner_bundle_repeat=1"]
    text = [f"--corpus={corpus}", "--vocabulary_size=300", "--sequence_length=24"]
    text += ["--validation_fraction=0.1", "--tokenizer_sample=30000"]
    command = ["cache", f"--cache_dir={tmp_path / 'c'}", "--runner=FnApiRunner"]
    assert main.main([*command, *text, *flags]) == 0
    assert contents(tmp_path / "c") == contents(cached)
    wrong = [f"--cache_dir={tmp_path / 'd'}", "--runner=FnApiRunner", "--", "--such"]
    assert main.main(["cache", *text, *wrong]) == 1
    assert os.listdir(tmp_path) == ["c"]
