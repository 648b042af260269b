"""Runs of `tfeff` and of the examples as processes, and what they leave behind."""

import csv
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HELD_OUT = "ptb_sample.txt"


def run(folder: str, command: list[str]) -> None:
    """Runs a command of Python's to its end, unless the folder has its metrics.

    What it prints goes to a file beside the folder.
    """
    if Path(folder, "metrics.json").exists():
        return
    print(shlex.join(["python", *command]), flush=True)
    with open(f"{folder}.log", "w", encoding="utf-8") as log:
        subprocess.run(
            [sys.executable, *command],
            check=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def flags_of(settings: Mapping[str, Any]) -> list[str]:
    """Settings of a recipe as flags of its command; those of None are left out."""
    flags = []
    for name, value in settings.items():
        if value is None:
            continue
        if isinstance(value, Mapping):
            flags += [f"--{name}={k}={json.dumps(v)}" for k, v in value.items()]
        elif isinstance(value, bool):
            flags.append(f"--{'' if value else 'no'}{name}")
        elif isinstance(value, (list, tuple)):
            flags.append(f"--{name}={','.join(map(str, value))}")
        else:
            flags.append(f"--{name}={value}")
    return flags


def metrics(folder: str) -> dict[str, str]:
    """The numbers in a run's `metrics.json`; empty where one is undefined."""
    found = json.loads(Path(folder, "metrics.json").read_text(encoding="utf-8"))
    if "best" in found:  # Of a grid.
        found = found["best"]["mean"]
    return {
        name: "" if value is None else f"{value:.5f}"
        for name, value in found.items()
        if value is None or isinstance(value, (int, float))
    }


def curve(folder: str) -> list[dict[str, str]]:
    """Step, loss and validation loss of each validation of a pretraining run."""
    path = Path(folder, "metrics.csv")
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        names = ("step", "loss", "val_loss")
        return [{name: row[name] for name in names} for row in csv.DictReader(file)]


def texts(data: str) -> tuple[list[str], str]:
    """The files of text to train on, and the one to validate by."""
    folder = Path(data, "text")
    held_out = folder / HELD_OUT
    train = sorted(path for path in folder.glob("*.txt") if path != held_out)
    return [str(path) for path in train], str(held_out)
