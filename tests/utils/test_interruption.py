"""Signals end the command with a line; importing tfeff changes no handler of them."""

import signal
import subprocess
import sys

import pytest

START = """
import os, signal, sys
from tfeff.utils.interruption import end_at_once, end_with_a_line
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", START + code], capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("name", "status"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)]
)
def test_a_signal_ends_the_process_with_a_line(name, status):
    code = f"signal.signal(signal.{name}, signal.SIG_DFL)\nend_with_a_line()\n"
    result = run(code + f"signal.raise_signal(signal.{name})")
    assert result.returncode == status
    assert result.stderr.splitlines() == [
        f"Ended by {name}. To go on with a run, start it again with the same flags."
    ]
    result = run(code + f"end_at_once()\nsignal.raise_signal(signal.{name})")
    assert result.returncode == -getattr(signal, name) and not result.stderr


def test_a_signal_that_is_ignored_stays_so():
    result = run(
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\nend_with_a_line()\n"
        "signal.raise_signal(signal.SIGINT)\nprint('on')"
    )
    assert result.returncode == 0 and result.stdout == "on\n"


@pytest.mark.slow
def test_imports_change_no_handler():
    result = run(
        "from tfeff.utils.interruption import SIGNALS\n"
        "before = [signal.getsignal(n) for n in SIGNALS]\n"
        "import tfeff.__main__\n"
        "from tfeff.recipes import pretraining, stacking, finetuning, answering\n"
        "end_at_once()\n"
        "after = [signal.getsignal(n) for n in SIGNALS]\n"
        "assert before == after, after"
    )
    assert result.returncode == 0, result.stderr


def test_a_signal_ends_the_process_where_nobody_reads_its_line():
    """Ctrl-C ends `tee`, too."""
    code = "end_with_a_line()\nread, write = os.pipe()\nos.close(read)\n"
    code += "os.dup2(write, 2)\nsignal.raise_signal(signal.SIGTERM)"
    assert run(code).returncode == 143
    code = "end_with_a_line()\nos.close(2)\nsignal.raise_signal(signal.SIGTERM)"
    assert run(code).returncode == 143
