"""What recipes share: runs that go on, models that are refused."""

import importlib.util
import io
import logging
import os
import shlex
import sys

import keras
import pytest
from absl import flags

import tfeff
from tests.subjects.settings import Example
from tfeff import recipes
from tfeff.recipes import drawing, next_commands, runs
from tfeff.recipes.fields import setting
from tfeff.recipes.settings import settings


@settings
class Running(Example):
    """Settings of a run."""

    run_dir: str = setting("Folder of the run.", fixed=False)


def test_a_directory_of_an_older_version_is_opened(tmp_path):
    older = {"command": "example", "steps": 3, "sizes": ["16", "32"]}
    with tfeff.training.RunDirectory(tmp_path / "run", older) as run:
        open(run.path("tokenizer.spm"), "w").close()
    same, other = (
        Running(run_dir=str(tmp_path / "run"), folder="x", steps=steps)
        for steps in (3, 4)
    )
    with runs.open_run(same) as run:
        assert os.path.exists(run.path("run.lock"))
    assert not os.path.exists(run.path("run.lock"))
    with pytest.raises(ValueError, match="steps: there 3, now 4"):
        runs.open_run(other).__enter__()


def test_the_directory_of_another_command_is_named(tmp_path):
    run_dir = tmp_path / "run"
    pretrained = recipes.PretrainSettings(run_dir=str(run_dir))
    finetuned = recipes.FinetuneSettings(
        run_dir=str(run_dir), task="RTE", data="glue", pretrained="mlm"
    )
    with runs.open_run(pretrained) as run:
        run.finish()
    message = (
        "`run_dir` must be another folder.*another command.*of `tfeff pretrain`, not "
    )
    with pytest.raises(ValueError, match=message):
        runs.open_run(finetuned).__enter__()
    config = pretrained.config() | {"command": "cache"}
    with pytest.raises(ValueError, match="CacheSettings has no accumulation_steps"):
        runs.upgraded(recipes.CacheSettings, "cache", config)


OF_COMMANDS = {
    "pretrain": recipes.PretrainSettings(run_dir="run"),
    "stack": recipes.StackSettings(run_dir="run"),
    "cache": recipes.CacheSettings(cache_dir="run"),
    "distill": recipes.DistillSettings(run_dir="run", teacher="t", student="s"),
    "finetune": recipes.FinetuneSettings(
        run_dir="run", task="RTE", data="glue", pretrained="mlm"
    ),
    "answer": recipes.AnswerSettings(
        run_dir="run", train="t", dev="d", pretrained="mlm"
    ),
    "embed": recipes.EmbedSettings(run_dir="run", data="glue", pretrained="mlm"),
}


@pytest.mark.parametrize("command", OF_COMMANDS)
@pytest.mark.parametrize("other", OF_COMMANDS)
def test_no_command_takes_over_the_directory_of_another(command, other):
    config = OF_COMMANDS[other].config()
    cls = type(OF_COMMANDS[command])
    if command == other:
        assert runs.upgraded(cls, "run", config) == config
        return
    with pytest.raises(
        ValueError, match=f"`directory` .*of `tfeff {other}`, not of `tfeff {command}`"
    ):
        runs.upgraded(cls, "run", config)


def test_a_folder_whose_models_could_not_be_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "x[1]").mkdir()
    monkeypatch.chdir(tmp_path / "x[1]")
    for run_dir in ("run", str(tmp_path / "x[1]" / "run")):
        settings = recipes.PretrainSettings(run_dir=run_dir)
        with pytest.raises(ValueError, match=r"`run_dir` must have no '\['.*x\[1\]"):
            runs.open_run(settings).__enter__()
    assert not os.listdir()


@pytest.mark.parametrize("run_dir", ["runs/a", "runs/a,b", 'a "quoted", run'])
def test_the_next_command_compares_the_run(run_dir, capsys):
    next_commands.print_report_next(run_dir)
    command = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert command[:2] == ["tfeff", "report"]
    value = command[2].removeprefix("--runs=")
    assert flags.ListParser().parse(value) == [run_dir]


def test_weights_that_are_not_finite_are_an_error():
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    runs.check_finite(model)
    model.weights[0].assign([[float("inf")]])
    with pytest.raises(tfeff.training.Diverged, match="has diverged.*`run_dir`"):
        runs.check_finite(model)


def test_pictures_need_matplotlib(monkeypatch):
    drawing.check_plots(False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="`plots` must be False without matplotlib"):
        drawing.check_plots(True)


def test_a_character_that_the_terminal_lacks_ends_no_training(monkeypatch):
    output = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", output)
    with runs.recipe_running():
        print("0.5 ± 0.1")
    assert output.errors == "strict"
    output.flush()
    assert output.buffer.getvalue() == b"0.5 ? 0.1\n"
    monkeypatch.setattr(sys, "stdout", io.StringIO())  # As in a notebook.
    with runs.recipe_running():
        print("0.5 ± 0.1")


def test_messages_about_exports_are_left_out_also_in_a_notebook(caplog):
    """There TensorFlow's logger has a level of its own."""
    logger = logging.getLogger("tensorflow")
    before = logger.level
    logger.setLevel(logging.INFO)
    try:
        with runs.recipe_running():
            logger.info("Assets written to: one")
            logger.warning("a warning")
        assert logger.level == logging.INFO
        logger.info("Assets written to: two")
    finally:
        logger.setLevel(before)
    assert "one" not in caplog.text and "a warning" in caplog.text
    assert "two" in caplog.text
