"""What tests of the benchmarks share: a script's names, without running it."""

import runpy
import sys

import pytest
from absl import flags

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
