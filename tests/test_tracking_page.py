"""The code and the commands of docs/TRACKING.md run as they stand, in a folder."""

import json
import re
import shlex

import pytest

from tests.checks.pages import REPOSITORY, python_blocks
from tests.subjects.sentences import DOCUMENTS
from tfeff.command import main

PAGE = REPOSITORY / "docs" / "TRACKING.md"
# What wandb has of what is used here. The real one was seen to work, too.
WANDB = """
import json

run = None


class Run:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        global run
        run = None


def init(**settings):
    global run
    with open("wandb.jsonl", "a") as file:
        file.write(json.dumps(settings) + "\\n")
    run = Run()
    return run
"""
LOGGER = """
import keras
import wandb


class WandbMetricsLogger(keras.callbacks.Callback):
    def __init__(self, log_freq="epoch"):
        super().__init__()
        assert wandb.run is not None
        self.log_freq = log_freq

    def on_epoch_end(self, epoch, logs=None):
        assert wandb.run is not None
        with open("logged.txt", "a") as file:
            file.write(f"{epoch} {logs['loss']}\\n")
"""
# In place of the defaults, which take minutes.
SMALL = (
    "--vocabulary_size=60 --sequence_length=12 --batch_size=2 --steps=2 --eval_every=1 "
    "--preset=bert_tiny --override=hidden_dim=8 --override=num_heads=2 "
    "--override=intermediate_dim=8"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "corpus").mkdir()
    text = "\n\n".join(DOCUMENTS * 4)
    (folder / "corpus" / "text.txt").write_text(text, encoding="utf-8")
    (folder / "my_callbacks.py").write_text(python_blocks("docs/TRACKING.md")[0])
    integration = folder / "wandb" / "integration"
    (integration / "keras").mkdir(parents=True)
    (folder / "wandb" / "__init__.py").write_text(WANDB)
    (integration / "__init__.py").touch()
    (integration / "keras" / "__init__.py").write_text(LOGGER)
    return folder


@pytest.fixture(autouse=True)
def _inside(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)


def commands():
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return [shlex.split(block.replace("\\\n", "")) for block in blocks]


@pytest.mark.slow
@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_commands(command, folder, monkeypatch):
    while command[0] != "tfeff":
        monkeypatch.setenv(*command.pop(0).split("="))
    assert main.main([*command[1:], *SMALL.split()]) == 0
    (run,) = [x.partition("=")[2] for x in command if x.startswith("--run_dir")]
    if run == "runs/first":
        assert (folder / "losses.csv").read_text().count("\n") == 3
    if run == "runs/second":
        assert re.fullmatch(r"0 \S+\n1 \S+\n", (folder / "notes.txt").read_text())
    if run == "runs/fourth":
        (made,) = map(json.loads, (folder / "wandb.jsonl").read_text().splitlines())
        assert made["name"] == run and made["config"]["vocabulary_size"] == 60
        assert made["id"] == (folder / run / "wandb_id.txt").read_text()
        assert made["resume"] == "allow"
        assert (folder / "logged.txt").read_text().count("\n") == 2


@pytest.mark.slow
def test_code(folder):
    for block in python_blocks("docs/TRACKING.md")[1:]:
        exec(block, {})
    assert re.fullmatch(r"0 \d\.\d{4}\n.*", (folder / "third.txt").read_text(), re.S)


@pytest.mark.slow
def test_files_that_a_run_writes(folder):
    """Those of the page's first table, after the first command."""
    assert main.main([*commands()[0][1:], *SMALL.split()]) == 0
    run = folder / "runs" / "first"
    for name in ("metrics.csv", "tensorboard", "metrics.json"):
        assert (run / name).exists(), name
    header = (run / "metrics.csv").read_text().splitlines()[0].split(",")
    assert {"loss", "val_loss", "learning_rate", "step"} <= set(header)
