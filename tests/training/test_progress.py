"""The line that tells how a training is doing: its speed and the time left."""

import time

import pytest

from tfeff.training import TrainingProgress


@pytest.fixture
def clock(monkeypatch):
    """The seconds that there are; a test moves them on."""
    seconds = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    return seconds


def run_epoch(progress, clock, epoch, steps, seconds, logs=None):
    progress.on_epoch_begin(epoch)
    for batch in range(steps):
        clock[0] += seconds
        progress.on_train_batch_end(batch, {"loss": 2.5})
    progress.on_epoch_end(epoch, {"loss": 2.5, **(logs or {})})


def test_speed_and_time_left(clock, capsys):
    progress = TrainingProgress(20, steps_per_epoch=4, tokens_per_step=40)
    progress.on_train_begin()
    clock[0] += 100  # The first step of an epoch compiles, or follows a validation.
    run_epoch(progress, clock, 0, steps=4, seconds=2.0)
    assert progress.tokens_per_second == pytest.approx(20)
    clock[0] += 500
    run_epoch(progress, clock, 1, steps=4, seconds=8.0, logs={"val_loss": 2.25})
    assert progress.tokens_per_second == pytest.approx(8)  # 6 steps in 30 seconds.
    first, second = capsys.readouterr().err.splitlines()
    assert first == "step 4/20 loss 2.5000 20 tokens/s 0:32 left"
    assert second == "step 8/20 loss 2.5000 val_loss 2.2500 8 tokens/s 1:00 left"


def test_steps_that_were_done_before_do_not_count(clock, capsys):
    progress = TrainingProgress(20, steps_per_epoch=4, tokens_per_step=40, first_step=2)
    progress.on_train_begin()
    run_epoch(progress, clock, 0, steps=4, seconds=2.0)
    assert progress.tokens_per_second == pytest.approx(20)  # One step in 2 seconds.
    assert capsys.readouterr().err.startswith("step 4/20 ")
