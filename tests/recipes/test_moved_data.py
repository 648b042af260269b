"""Runs whose data are moved between two starts, or named from another folder."""

import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import tfeff
from tests.subjects.recipes import ENVIRONMENT, SMALL
from tests.subjects.stores import make_quick_store
from tfeff import recipes
from tfeff.recipes.data_record import keep_data
from tfeff.recipes.fields import fields_of
from tfeff.recipes.runs import open_run
from tfeff.training import RunDirectory


def examples(*texts):
    labels = np.arange(len(texts)) % 2
    return tfeff.data.TextExamples(texts, None, labels, ("dry", "wet"), skipped=())


def settings(run_dir, data, **others):
    return recipes.FinetuneSettings(
        **dict(run_dir=str(run_dir), task="SST-2", data=str(data)),
        **dict(pretrained="mlm", seeds=[0, 1]) | others,
    )


def start(settings, texts, is_trained=True):
    """A start that reads some texts and, perhaps, trains a cell."""
    dataset = tfeff.datasets.tsv_dataset("SST-2", texts=("text",), label="label")
    with open_run(settings) as run:
        keep_data(run, dataset, {"train": examples(*texts)}, models=())
        if is_trained:
            os.makedirs(run.path("cells", "a"), exist_ok=True)
            open(run.path("cells", "a", "metrics.json"), "w").close()


@pytest.mark.parametrize("is_trained", [False, True])
def test_a_run_goes_on_with_the_same_data_at_another_place(tmp_path, is_trained):
    run_dir = tmp_path / "run"
    start(settings(run_dir, "there"), "ab", is_trained)
    before = (run_dir / "read_data.json").read_text()
    for place in ("elsewhere", "there"):
        start(settings(run_dir, place), "ab", is_trained)
        assert (run_dir / "read_data.json").read_text() == before
    with pytest.raises(ValueError, match=r"which has read other examples \("):
        start(settings(run_dir, "elsewhere"), "ac")
    assert json.loads((run_dir / "config.json").read_text())["data"] == "there"


def test_other_settings_stay_the_same(tmp_path):
    start(settings(tmp_path, "there"), "ab")
    message = r"Differences: seeds: there \[0, 1\], now \[2\]\. Use another"
    with pytest.raises(ValueError, match=message):
        start(settings(tmp_path, "elsewhere", seeds=[2]), "ab")
    with pytest.raises(ValueError, match="Differences: pretrained: there 'mlm'"):
        start(settings(tmp_path, "elsewhere", pretrained="other"), "ab")


def test_a_run_that_has_noted_nothing_has_its_data_at_one_place(tmp_path):
    start(settings(tmp_path, "there"), "ab")
    (tmp_path / "read_data.json").unlink()
    with pytest.raises(ValueError, match="data: there 'there', now 'elsewhere'"):
        start(settings(tmp_path, "elsewhere"), "ab")


def test_a_note_that_lacks_the_data_is_not_enough(tmp_path):
    start(settings(tmp_path, "there"), "ab")
    path = tmp_path / "read_data.json"
    note = json.loads(path.read_text())
    for lacking in ({}, {x: note[x] for x in note if x != "examples"}):
        path.write_text(json.dumps(lacking))
        with pytest.raises(ValueError, match="which has read other .*examples"):
            start(settings(tmp_path, "elsewhere"), "ab")
        start(settings(tmp_path, "there"), "ab")
        path.write_text(json.dumps(note))


def test_an_older_run_that_has_not_trained_may_read_other_data(tmp_path):
    start(settings(tmp_path, "there"), "ab", is_trained=False)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["head_dropout"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    start(settings(tmp_path, "there"), "ac", is_trained=False)


def test_a_cache_is_no_place_of_a_corpus(tmp_path):
    of_text = recipes.PretrainSettings(run_dir=str(tmp_path), corpus="a.txt")
    with open_run(of_text) as run:
        open(run.path("read_data.json"), "w").close()
    of_cache = recipes.PretrainSettings(run_dir=str(tmp_path), cache_dir="caches")
    with pytest.raises(ValueError, match="cache_dir: there None, now 'caches'"):
        open_run(of_cache).__enter__()
    moved = recipes.PretrainSettings(run_dir=str(tmp_path), corpus=["b/a.txt", "c"])
    with open_run(moved):
        pass


def test_a_run_at_a_url_goes_on_as_in_a_folder(tmp_path, monkeypatch):
    make_quick_store(tmp_path / "store", monkeypatch)
    run_dir = "store://bucket/run"
    start(settings(run_dir, "there"), "ab")
    start(settings(run_dir, "elsewhere"), "ab")
    with pytest.raises(ValueError, match="other examples"):
        start(settings(run_dir, "elsewhere"), "ac")


@pytest.mark.parametrize(
    "name",
    [name for name in dir(recipes) if name.endswith("Settings")],
)
def test_what_may_move_is_kept_by_the_run(name):
    for field in fields_of(getattr(recipes, name)):
        assert field.fixed or not field.by_content, field.name


@pytest.mark.slow
def test_a_pretraining_goes_on_from_another_folder(corpus, tmp_path):
    run_dir = tmp_path / "run"

    def pretrain(folder, corpus):
        flags = (*SMALL, f"--run_dir={run_dir}", f"--corpus={corpus}")
        return subprocess.run(
            [sys.executable, "-m", "tfeff", "pretrain", *flags],
            cwd=folder,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
        )

    (tmp_path / "moved").mkdir()
    shutil.copy(corpus, tmp_path / "text.txt")
    assert pretrain(tmp_path, "text.txt").returncode == 0
    before = (run_dir / "metrics.csv").read_text()
    (tmp_path / "text.txt").rename(tmp_path / "moved" / "other.txt")
    result = pretrain(tmp_path / "moved", "./other.txt")
    assert result.returncode == 0, result.stderr
    assert (run_dir / "metrics.csv").read_text() == before
    with open(tmp_path / "moved" / "other.txt", "a") as file:
        file.write("\n\nOne document more.\n")
    result = pretrain(tmp_path, "moved/other.txt")
    assert result.returncode == 1 and "cache" in result.stderr
    RunDirectory(run_dir, json.loads((run_dir / "config.json").read_text())).close()
