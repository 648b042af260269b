"""The benchmarks' scripts, run as users run them, and the tables that they write."""

import os
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


def run(file, *arguments):
    """The finished process of a benchmark, or of a path, with these arguments."""
    command = [sys.executable, str(FOLDER / file), *arguments]
    environment = os.environ | {"PYTHONPATH": str(FOLDER.parent)}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def refuses(file, flag, message, tmp_path):
    """Checks that a script ends with the message before it makes anything."""
    result = run(file, flag, f"--results={tmp_path / 'results'}")
    assert result.returncode == 1
    assert message in result.stdout + result.stderr
    assert not (tmp_path / "results").exists()


def cells(line):
    """The cells of a line of a Markdown table."""
    return [cell.strip() for cell in line.split("|")[1:-1]]
