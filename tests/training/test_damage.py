"""Damage of a run directory's files is found and named, or changes nothing."""

import os
import random
import shutil
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import tfeff
from tests.subjects.files import flip_bit
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.training import RunDirectory, load_checkpoint, save_checkpoint
from tfeff.training.checkpoint_file import load_notes
from tfeff.training.run_seal import seal_folder

NOTES = {"metrics.csv": "epoch,loss,step\n0,2.5,5\n"}


def places(path, most, rng):
    """All places of a small file; of a larger one its ends and some between."""
    size = os.path.getsize(path)
    if size <= most:
        return range(size)
    ends = {*range(most // 4), *range(size - most // 4, size)}
    return sorted(ends | {rng.randrange(size) for _ in range(most // 2)})


@pytest.mark.parametrize(
    "most, least_found, most_harmless",
    # Where fewer places are tried, more of them are in the archive's lists of files.
    [(240, 180, 60), pytest.param(3000, 2400, 200, marks=pytest.mark.slow)],
)
def test_every_flipped_byte_of_a_checkpoint_is_found_or_changes_nothing(
    most, least_found, most_harmless, tmp_path
):
    path = str(tmp_path / "step-00000001.keras")
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("adam", "mse")
    model.fit(np.ones((4, 1)), np.ones((4, 1)), verbose=0)
    save_checkpoint(model, path, NOTES)
    expected = [variable.numpy() for variable in model.variables]
    rng = random.Random(0)
    found = harmless = 0
    for place in places(path, most, rng):
        bit = rng.randrange(8)
        flip_bit(path, place, bit)
        try:
            loaded = load_checkpoint(path)
            assert load_notes(path) == NOTES
        except ValueError as error:
            assert f"{path} is truncated or corrupted" in str(error)
            found += 1
        else:  # Of the time, say, that the archive has for a file.
            for one, two in zip(loaded.variables, expected, strict=True):
                np.testing.assert_array_equal(one, two)
            harmless += 1
        flip_bit(path, place, bit)
    assert found > least_found and harmless < most_harmless
    load_checkpoint(path)


def test_another_checkpoint_in_the_place_of_a_finished_run_s_is_found(tmp_path):
    run = RunDirectory(tmp_path / "run", {})
    other = str(tmp_path / "other.keras")
    inside = [run.path("checkpoints", "step-00000001.keras"), run.path("model.keras")]
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    os.mkdir(run.path("checkpoints"))
    for path in inside:
        save_checkpoint(model, path, NOTES)
    model.set_weights([weight + 1 for weight in model.get_weights()])
    save_checkpoint(model, other, NOTES)
    seal_folder(run.path())
    for path in inside:
        load_checkpoint(path)
        shutil.copyfile(other, path)
        for load in (load_checkpoint, load_notes):
            with pytest.raises(ValueError, match=f"Damaged since .*{path}"):
                load(path)


@pytest.mark.parametrize("folder", ["checkpoints", "cells/a=1"])
def test_a_checkpoint_that_is_damaged_gets_no_digest(folder, tmp_path):
    """It may be of an earlier start, and kept to the end without being read."""
    with RunDirectory(tmp_path / "run", {}) as run:
        path = run.path(folder, "step-00000001.keras")
        os.makedirs(run.path(folder))
        save_checkpoint(keras.Sequential([keras.Input((1,))]), path, NOTES)
        whole = Path(path).read_bytes()
        for damaged in (whole[:-9], b"", whole.replace(b"2.5", b"2.6")):
            Path(path).write_bytes(damaged)
            with pytest.raises(ValueError, match=f"{path} .*Delete it"):
                run.finish()
            assert not os.path.exists(run.path("SHA256SUMS"))
        Path(path).write_bytes(whole)
        run.finish()
    RunDirectory(tmp_path / "run", {}).close()


@pytest.fixture
def run(tmp_path):
    """A run with a tokenizer, a cache, a checkpoint, a table and a picture."""
    run = RunDirectory(tmp_path / "run", {"seed": 0, "name": "a", "rate": 0.25})
    tfeff.data.save_tokenizer(tokenizer(), run.path("tokenizer.spm"))
    run.seal("tokenizer.spm")
    tfeff.data.build_cache(
        DOCUMENTS, tokenizer(), run.path("cache"), 16, num_threads=1, progress=False
    )
    for folder in ("tensorboard", "cells"):
        os.mkdir(run.path(folder))
    for name in ("metrics.csv", "tensorboard/events", "cells/metrics.json"):
        with open(run.path(name), "wb") as file:
            file.write(random.Random(name).randbytes(60))
    return run


def test_every_flipped_byte_of_a_finished_run_is_found(run):
    run.finish()
    rng = random.Random(0)
    count = 0
    for parent, _, names in os.walk(run.directory):
        for name in names:
            path = os.path.join(parent, name)
            if name in ("run.lock", "SHA256SUMS"):
                continue
            for place in places(path, 150, rng):
                bit = rng.randrange(8)
                flip_bit(path, place, bit)
                with pytest.raises(ValueError) as error:
                    RunDirectory(run.directory, run.config)
                assert path in str(error.value)
                flip_bit(path, place, bit)
                count += 1
    assert count > 700
    RunDirectory(run.directory, run.config)


def test_a_flipped_byte_of_the_digests_changes_nothing_silently(run):
    rng = random.Random(0)
    content = run.path("cells", "metrics.json")
    found = 0
    run.finish()
    path = run.path("SHA256SUMS")
    for place in range(os.path.getsize(path)):
        bit = rng.randrange(8)
        flip_bit(path, place, bit)
        try:
            RunDirectory(run.directory, run.config)
        except ValueError as error:
            assert "SHA256SUMS has it, unless that file is the" in str(error)
            flip_bit(path, place, bit)
            found += 1
        else:  # A name of a file that is not there; nothing else was damaged.
            run.finish()
    assert found > 400
    with open(content, "rb") as file:
        assert file.read() == random.Random("cells/metrics.json").randbytes(60)


def test_every_flipped_byte_of_an_unfinished_runs_tokenizer_is_found(run):
    rng = random.Random(0)
    count = 0
    for name in ("tokenizer.spm", "tokenizer.spm.sha256"):
        digits = 64  # Behind the digest there is the file's name.
        for place in (
            places(run.path(name), 2000, rng) if name[-1] == "m" else range(digits)
        ):
            bit = rng.randrange(8)
            flip_bit(run.path(name), place, bit)
            for check in (
                lambda: RunDirectory(run.directory, run.config),
                lambda: run.seal("tokenizer.spm"),
            ):
                with pytest.raises(ValueError, match="since it was.*tokenizer.spm"):
                    check()
            flip_bit(run.path(name), place, bit)
            count += 1
    assert count > 1500
    RunDirectory(run.directory, run.config)


def test_every_flipped_byte_of_the_configuration(run):
    """Only white space may change, and a name whose value is the default."""
    path = run.path("config.json")
    count = harmless = 0
    for place in range(os.path.getsize(path)):
        for bit in range(8):
            flip_bit(path, place, bit)
            try:
                RunDirectory(run.directory, run.config)
                harmless += 1
            except ValueError as error:
                assert "config.json" in str(error) or "Differences" in str(error)
                count += 1
            flip_bit(path, place, bit)
    assert count > 300 and harmless == 0


def test_a_cache_is_not_blamed_for_the_tokenizer(run):
    flip_bit(run.path("tokenizer.spm"), 40, 0)
    with pytest.raises(ValueError, match="tokenizer.spm") as error:
        RunDirectory(run.directory, run.config)
    assert "cache" not in str(error.value).replace(run.directory, "")


def test_what_is_deleted_is_no_damage(run):
    run.finish()
    os.remove(run.path("metrics.csv"))
    shutil.rmtree(run.path("cells"))
    with RunDirectory(run.directory, run.config):
        assert not os.path.exists(run.path("SHA256SUMS"))  # It may change files.


def test_a_start_that_is_refused_leaves_the_digests(run):
    run.finish()
    run.close()
    with open(run.path("SHA256SUMS"), "rb") as file:
        before = file.read()
    with pytest.raises(KeyError), RunDirectory(run.directory, run.config):
        raise KeyError
    with open(run.path("SHA256SUMS"), "rb") as file:
        assert file.read() == before
    flip_bit(run.path("cells", "metrics.json"), 3)
    with pytest.raises(ValueError, match="Damaged .*cells/metrics.json"):
        RunDirectory(run.directory, run.config)


def test_a_start_that_is_stopped_forgets_the_digests_of_what_it_changed(run):
    run.finish()
    run.close()
    with pytest.raises(KeyError), RunDirectory(run.directory, run.config):
        with open(run.path("metrics.csv"), "w") as file:
            file.write("step\n")
        open(run.path("new"), "w").close()
        os.remove(run.path("tensorboard", "events"))
        raise KeyError
    with RunDirectory(run.directory, run.config) as again:
        again.finish()
    flip_bit(run.path("metrics.csv"), 3)
    with pytest.raises(ValueError, match="Damaged .*metrics.csv"):
        RunDirectory(run.directory, run.config)


def test_a_record_that_is_damaged_while_it_is_read_names_the_file(run):
    cache = tfeff.data.open_cache(run.path("cache"))
    (shard,) = (name for name in os.listdir(cache.directory) if "shard" in name)
    flip_bit(os.path.join(cache.directory, shard), 40, 3)
    with (
        pytest.raises(ValueError, match=f"{shard} is damaged: its checksum"),
        tfeff.data.damage_named(cache),
    ):
        list(cache.batches(tfeff.data.MaskedTokens(), 2, repeat=False))


@pytest.mark.parametrize(
    ("member", "content"),
    [
        ("model.weights.h5", b""),
        ("config.json", None),
        ("config.json", b"3"),
        ("config.json", b'{"a":' * 100_000),
    ],
)
def test_a_whole_archive_with_a_damaged_file_is_named(member, content, tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    whole, damaged = str(tmp_path / "whole.keras"), str(tmp_path / "damaged.keras")
    save_checkpoint(model, whole)
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(damaged, "w") as changed:
        for name in archive.namelist():
            if name != member:
                changed.writestr(name, archive.read(name))
        if content is not None:
            changed.writestr(member, content)
    with pytest.raises(ValueError, match="damaged.keras cannot be loaded"):
        load_checkpoint(damaged)


@pytest.mark.parametrize("notes", ["[]", "null", "5"])
def test_notes_of_a_checkpoint_that_are_none(notes, tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    path = str(tmp_path / "model.keras")
    save_checkpoint(model, path)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as changed:
        for name, content in (files | {"run.json": notes}).items():
            changed.writestr(name, content)
    for read in (load_checkpoint, load_notes):
        with pytest.raises(ValueError, match="model.keras is .*It holds"):
            read(path)
