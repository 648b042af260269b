"""Workers of a run that are killed, one after another, and started again."""

import shutil
import signal

import numpy as np
import pytest

from tests.subjects.clusters import state
from tests.training.run_worker import train

PHASES = [
    "before the run",
    "before the first step",
    "in the save of step 2",
    "in the validation after step 4",
    "when step 4 is saved",
    "after step 5",
    "frozen after step 5",
    "in the save of step 6",
    "in the save of step 8",
    "in the export",
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_workers", "first_victim", "phases"),
    [(2, 0, PHASES), (2, 1, PHASES), (4, 0, PHASES)],
    ids=["2-0", "2-1", "4-0"],
)
def test_killed_in_every_phase(tmp_path, num_workers, first_victim, phases):
    alone, run = tmp_path / "uninterrupted" / "run", tmp_path / "killed" / "run"
    # Longer than TensorFlow waits for a worker that gives no sign of life.
    busy = {0: "keep=9 busy in the save of step 4"}
    statuses, errors = train(alone, num_workers, busy)
    assert statuses == [0] * num_workers, errors
    checkpoints, metrics = state(alone)
    assert len(checkpoints) == 4
    victim = first_victim
    for phase in phases:
        statuses, errors = train(run, num_workers, {victim: phase})
        assert statuses[victim] == -signal.SIGKILL, (phase, errors)
        for index, (status, text) in enumerate(zip(statuses, errors)):
            is_named = "LostWorker: " in text and "start all workers again" in text
            if index != victim:
                assert status and is_named, (phase, text)
        found, _ = state(run)
        assert found.items() <= checkpoints.items(), (phase, found)
        victim = (victim + 1) % num_workers
    statuses, errors = train(run, num_workers)
    assert statuses == [0] * num_workers, errors
    assert not list(run.rglob(".partial-*"))
    found, table = state(run)
    assert list(found.items()) == list(checkpoints.items())[-1:]
    assert table == metrics
    with np.load(run / "export.npz") as weights, np.load(alone / "export.npz") as whole:
        assert weights.files == whole.files
        for name in weights.files:
            np.testing.assert_array_equal(weights[name], whole[name])


@pytest.mark.slow
def test_other_numbers_of_workers_go_on(tmp_path):
    """With the same global batches, to the same weights but for rounding."""
    alone = tmp_path / "alone" / "run"
    assert train(alone, 1, dropout=0.0)[0] == [0]
    with np.load(alone / "export.npz") as whole:
        whole = dict(whole)
    run = tmp_path / "2" / "run"
    statuses, errors = train(run, 2, {1: "after step 5"}, dropout=0.0)
    assert statuses == [1, -signal.SIGKILL], errors
    for number in (1, 4):
        other = tmp_path / str(number) / "run"
        shutil.copytree(run, other)
        statuses, errors = train(other, number)
        assert statuses == [0] * number, errors
        with np.load(other / "export.npz") as weights:
            for name in whole:
                np.testing.assert_allclose(
                    weights[name], whole[name], rtol=0, atol=1e-6, err_msg=name
                )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ("seed=1", "ValueError: All workers must have the same settings and data"),
        ("data=2", "first training batch: worker 0 has "),
        ("directory=none", "worker 1 does not see there that worker 0 has opened"),
    ],
)
def test_workers_that_differ_are_refused_by_all(tmp_path, phase, message):
    run = tmp_path / "run"
    elsewhere = phase.replace("directory=", f"directory={tmp_path}/")
    statuses, errors = train(run, 2, {1: elsewhere})
    assert statuses == [1, 1]
    for text in errors:
        assert message in text
        assert "seed: worker 0 has 0, worker 1 has '1'" in text or phase != "seed=1"
        assert "first validation batch" not in text
    assert not (run / "checkpoints").exists()
    assert phase == "data=2" or not run.exists()


@pytest.mark.slow
def test_an_error_of_the_chief_ends_all(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "other.txt").touch()
    statuses, errors = train(run, 2)
    assert statuses == [1, 1]
    for text in errors:
        assert "`directory` must be a run's" in text
    assert [path.name for path in run.iterdir()] == ["other.txt"]
