"""What tests of the benchmarks share: a script's names, without running it."""

import importlib
import runpy
import sys

import pytest
from absl import flags

from tests.benchmarks.campaign_rows import LOSSES, a_cell, a_cost, a_row
from tests.benchmarks.scripts import FOLDER


@pytest.fixture(scope="module")
def load():
    """Loads a benchmark as a module; its flags and imports are gone afterwards."""
    _forget_flags()
    before = set(sys.modules)
    sys.path.insert(0, str(FOLDER))
    yield lambda file: runpy.run_path(str(FOLDER / file))
    sys.path.remove(str(FOLDER))
    _forget_flags()
    for name in set(sys.modules) - before:
        if str(FOLDER) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


def _forget_flags():
    """Deletes the flags of scripts, which all would have one module's name."""
    for flag in list(flags.FLAGS.flags_by_module_dict().get("<run_path>", ())):
        if flag.name in flags.FLAGS:
            delattr(flags.FLAGS, flag.name)


@pytest.fixture(scope="module")
def campaign(load):
    return load("campaign.py")


@pytest.fixture(scope="module")
def part(campaign):
    return lambda name: importlib.import_module(f"evidence.{name}")


@pytest.fixture
def recorded(part, tmp_path):
    """A ledger of made-up losses, with curves of two points."""
    ledger = part("ledger").Ledger(str(tmp_path), "full")
    for system, losses in LOSSES.items():
        for seed, loss in enumerate(losses):
            curve = [
                {"step": step, "tokens": step * 2048, "loss": 6.0, "val_loss": value}
                for step, value in ((3700, 5.5), (7400, loss))
            ]
            row = a_row(
                {"loss": loss, "unigram_entropy": 6.0},
                tokens=15_155_200,
                command="tfeff pretrain --learning_rate=0.001 --steps=7400",
            )
            ledger.add(a_cell(system, seed), curve, row)
    for system, cost in (("BERT", 1.0), ("Part_Mask", 2.0)):
        ledger.add(a_cell(system, 0, "timing"), [], a_cost(cost))
    return ledger
