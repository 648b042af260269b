"""The examples tell how they are called where they are called otherwise."""

import pathlib
import runpy
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_is_printed_and_nothing_is_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit, match=f"python examples/{name}"):
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert not list(tmp_path.iterdir())
