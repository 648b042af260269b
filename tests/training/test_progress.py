"""The line that tells how a training is doing: its speed and the time left."""

import math
import re
import time

import pytest

from tests.subjects.streams import UNREADABLE, unreadable
from tfeff.training import TrainingProgress
from tfeff.utils.progress import ProgressReport


@pytest.fixture
def clock(monkeypatch):
    """The seconds that there are; a test moves them on."""
    seconds = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    return seconds


def run_epoch(progress, clock, epoch, seconds, logs=None):
    """Four steps, of which the first also compiles, and a validation."""
    progress.on_epoch_begin(epoch)
    for batch in range(4):
        clock[0] += 100 if batch == 0 else seconds
        progress.on_train_batch_end(batch, {"loss": 2.5})
    clock[0] += 500
    progress.on_epoch_end(epoch, {"loss": 2.5, **(logs or {})})


def test_speed_and_time_left(clock, capsys):
    progress = TrainingProgress(20, steps_per_epoch=4, tokens_per_step=40)
    progress.on_train_begin()
    run_epoch(progress, clock, 0, seconds=2.0)
    assert progress.tokens_per_second == pytest.approx(20)
    run_epoch(progress, clock, 1, seconds=8.0, logs={"val_loss": 2.25})
    assert progress.tokens_per_second == pytest.approx(8)  # 6 steps in 30 seconds.
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "step 1/20 loss 2.5000"  # It took more than a minute.
    first, second = (line for line in lines if line.startswith(("step 4/", "step 8/")))
    assert first == "step 4/20 loss 2.5000 20 tokens/s 0:32 left"
    assert second == "step 8/20 loss 2.5000 val_loss 2.2500 8 tokens/s 1:00 left"


def test_a_line_a_minute_within_an_epoch(clock, capsys):
    progress = TrainingProgress(100_000, steps_per_epoch=1000, tokens_per_step=40)
    progress.on_train_begin()
    progress.on_epoch_begin(0)
    for batch in range(200):
        clock[0] += 1.0
        progress.on_train_batch_end(batch, {"loss": 2.5})
    assert capsys.readouterr().err.splitlines() == [
        "step 60/100,000 loss 2.5000 40 tokens/s 27:45:40 left",
        "step 120/100,000 loss 2.5000 40 tokens/s 27:44:40 left",
        "step 180/100,000 loss 2.5000 40 tokens/s 27:43:40 left",
    ]


def test_a_line_where_a_metric_is_new(clock, capsys):
    """Scores of an evaluation within an epoch, once each, also at its end."""
    progress = TrainingProgress(
        6, steps_per_epoch=6, tokens_per_step=40, metric="dev_f1"
    )
    progress.on_train_begin()
    progress.on_epoch_begin(0)
    scores = [{}, {"dev_f1": 0.5}, {"dev_f1": 0.5}, {"dev_f1": math.nan}]
    for batch, score in enumerate([*scores, scores[3], {"dev_f1": 0.25}]):
        clock[0] += 1.0
        progress.on_train_batch_end(batch, {"loss": 2.5, **score})
    progress.on_epoch_end(0, {"loss": 2.5, "dev_f1": 0.25})
    assert capsys.readouterr().err.splitlines() == [
        "step 2/6 loss 2.5000 dev_f1 0.5000 40 tokens/s 0:04 left",
        "step 4/6 loss 2.5000 dev_f1 nan 40 tokens/s 0:02 left",
        "step 6/6 loss 2.5000 dev_f1 0.2500 40 tokens/s 0:00 left",
    ]


def test_steps_that_were_done_before_do_not_count(clock, capsys):
    progress = TrainingProgress(20, steps_per_epoch=4, tokens_per_step=40, first_step=2)
    progress.on_train_begin()
    run_epoch(progress, clock, 0, seconds=2.0)
    assert progress.tokens_per_second == pytest.approx(20)  # One step in 2 seconds.
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("step 4/20 loss 2.5000 20 tokens/s")


def test_a_terminal_has_a_bar(clock, capsys, monkeypatch):
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "99"}.items():
        monkeypatch.setenv(name, value)
    progress = TrainingProgress(20, steps_per_epoch=4, tokens_per_step=40)
    progress.on_train_begin()
    run_epoch(progress, clock, 0, seconds=2.0)
    progress.on_train_end()
    told = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().err)
    fifth = 8 * "━"
    assert f"step 4/20 loss 2.5000 20 tokens/s 0:32 left {fifth}" in told
    assert told.endswith("\x1b[?25h")  # The cursor is shown again.


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_nobody_can_read_ends_nothing(
    kind, is_terminal, clock, capsys, monkeypatch
):
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
    with unreadable(kind) as stream:
        monkeypatch.setattr("sys.stderr", stream)
        progress = TrainingProgress(20, steps_per_epoch=4, tokens_per_step=40)
        progress.on_train_begin()
        run_epoch(progress, clock, 0, seconds=2.0)
        run_epoch(progress, clock, 1, seconds=2.0)
        progress.on_train_end()
        with ProgressReport("Reading", "lines", 2, True) as report:
            report.advance(1)
            report.advance(1)
        print("standard output is still there")
        assert "still there" in capsys.readouterr().out


def test_lines_do_not_wrap(clock, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "9")
    progress = TrainingProgress(20, steps_per_epoch=4, tokens_per_step=40)
    progress.on_train_begin()
    run_epoch(progress, clock, 0, seconds=2.0)
    *_, line = capsys.readouterr().err.splitlines()
    assert line == "step 4/20 loss 2.5000 20 tokens/s 0:32 left"
