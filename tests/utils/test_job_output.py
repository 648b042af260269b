"""Lines of a job: they come at once, and end nothing where nobody can read them."""

import os
import sys

import pytest

from tests.subjects.streams import UNREADABLE, unreadable
from tfeff.utils.job_output import job_output, say


@pytest.mark.parametrize("kind", UNREADABLE)
def test_lines_that_nobody_can_read_end_nothing(kind, monkeypatch):
    with unreadable(kind) as output, unreadable(kind) as errors:
        monkeypatch.setattr("sys.stdout", output)
        monkeypatch.setattr("sys.stderr", errors)
        with job_output():
            for _ in range(3):
                print("line" * 9000)
            say("said")
            sys.stdout.flush()
        with pytest.raises(ZeroDivisionError), job_output():
            raise ZeroDivisionError
        assert sys.stdout is output
        with pytest.raises(OSError):
            print("line", flush=True)


def test_lines_come_at_once_and_have_what_their_file_can_say(tmp_path, monkeypatch):
    path = tmp_path / "log"
    with open(path, "w", encoding="ascii") as file:
        monkeypatch.setattr("sys.stdout", file)
        with job_output():
            print("größe")
            assert path.read_text() == "gr??e\n"
            assert sys.stdout.fileno() == file.fileno()  # All else is the file's own.
        with pytest.raises(UnicodeEncodeError):
            print("größe")
        print("late")  # Not before the file is closed.
        assert path.read_text() == "gr??e\n"


def test_there_may_be_no_streams(monkeypatch):
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    with job_output():
        print("line")
        say("said")
    assert sys.stdout is None


def test_lines_of_capturing_code(capsys):
    with job_output():
        print("line")
        say(ValueError("said"))
        os.write(1, b"")
    found = capsys.readouterr()
    assert (found.out, found.err) == ("line\n", "said\n")
