"""Workers of which one is told to end: all save the step at hand, and end."""

import signal

import numpy as np
import pytest

from tests.subjects.clusters import state
from tests.training.run_worker import train

TOLD = "was told to end by SIGTERM, and all workers have ended"


@pytest.mark.slow
@pytest.mark.parametrize("num_workers", [2, 4])
def test_one_is_told_and_none_loses_a_step(tmp_path, num_workers):
    alone, run = tmp_path / "uninterrupted" / "run", tmp_path / "told" / "run"
    statuses, errors = train(alone, num_workers)
    assert statuses == [0] * num_workers, errors
    # A step that has begun is done before the workers agree.
    for victims, phase, steps in (
        ([num_workers - 1], "after step 1", {1, 2}),
        (range(num_workers), "in the validation after step 4", {4, 5}),
        ([0], "in the save of step 6", {6, 7, 8}),  # A thread saves.
    ):
        told = {index: f"told {phase}" for index in victims}
        statuses, errors = train(run, num_workers, told)
        for index, (status, text) in enumerate(zip(statuses, errors)):
            if index in victims:
                assert status == -signal.SIGTERM, (phase, errors)
            else:
                name = f"LostWorker: worker {[*victims][0]} {TOLD}"
                assert status == 1 and name in text, (phase, errors)
        newest = max(state(run)[0])
        assert newest in {f"step-{n:08d}.keras" for n in steps}, (phase, newest)
    statuses, errors = train(run, num_workers)
    assert statuses == [0] * num_workers, errors
    assert state(run) == state(alone)
    with np.load(run / "export.npz") as weights, np.load(alone / "export.npz") as whole:
        for name in weights.files:
            np.testing.assert_array_equal(weights[name], whole[name])


@pytest.mark.slow
@pytest.mark.parametrize("end", ["frozen", "killed"])
def test_one_that_is_told_does_not_wait_for_one_that_is_lost(tmp_path, end):
    phases = {0: "told after step 3", 1: "frozen after step 3"}
    if end == "killed":
        phases[1] = "after step 3"
    statuses, errors = train(tmp_path / "run", 2, phases)
    assert statuses[0] == 1 and "LostWorker: " in errors[0], (statuses, errors)
    assert max(state(tmp_path / "run")[0]) == "step-00000002.keras"
