"""Workers of a run that are killed, one after another, and started again."""

import multiprocessing
import signal
import zipfile

import numpy as np
import pytest

from tests.subjects.clusters import cluster
from tests.training import run_worker

PHASES = [
    "before the run",
    "before the first step",
    "when others have saved step 2",
    "in the validation after step 4",
    "when others have saved step 4",
    "after step 5",
    "frozen after step 5",
    "in the save of step 6",
    "in the save of step 8",
    "in the export",
]


def train(folder, num_workers, phases=()):
    """Starts workers, each of which does what `phases` tells it; waits for all.

    Returns:
        The exit statuses, and what the workers wrote to standard error.
    """
    phases = dict(phases)
    # It imports TensorFlow once for all workers of this file.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([run_worker.__name__])
    processes, logs = [], []
    for index, config in enumerate(cluster(num_workers)):
        run = folder / f"run{index}"
        run.mkdir(parents=True, exist_ok=True)
        logs.append(folder / f"errors{index}.txt")
        arguments = (config, run, phases.get(index, ""), logs[index])
        processes.append(context.Process(target=run_worker.main, args=arguments))
    try:
        for process in processes:
            process.start()
        for index, process in enumerate(processes):
            if not phases.get(index, "").startswith("frozen"):
                process.join()
    finally:
        for process in processes:  # After an error, or frozen.
            process.kill()
            process.join()
    statuses = [process.exitcode for process in processes]
    return statuses, [log.read_text(encoding="utf-8") for log in logs]


def state(run):
    """Checksums of all checkpoints' weights by step, and the table of metrics."""
    checkpoints = {}
    for path in sorted((run / "checkpoints").glob("step-*.keras")):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            checkpoints[path.name] = archive.getinfo("model.weights.h5").CRC
    metrics = run / "metrics.csv"
    # Lines may end in two ways.
    return checkpoints, metrics.read_text("utf-8") if metrics.exists() else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_workers", "first_victim", "phases"),
    [(2, 0, PHASES), (2, 1, PHASES), (3, 0, PHASES[::2])],
    ids=["2-0", "2-1", "3-0"],
)
def test_killed_in_every_phase(tmp_path, num_workers, first_victim, phases):
    alone = tmp_path / "uninterrupted"
    # Longer than TensorFlow waits for a worker that gives no sign of life.
    busy = {0: "keep=9", 1: "busy in the save of step 4"}
    statuses, errors = train(alone, num_workers, busy)
    assert statuses == [0] * num_workers, errors
    checkpoints, metrics = state(alone / "run0")
    export = np.load(alone / "run0" / "export.npz")
    tmp_path = tmp_path / "killed"
    victim = first_victim
    for phase in phases:
        statuses, errors = train(tmp_path, num_workers, {victim: phase})
        assert statuses[victim] == -signal.SIGKILL, (phase, errors)
        for index, (status, text) in enumerate(zip(statuses, errors)):
            told = "LostWorker: " in text and "start all workers again" in text
            if index != victim:
                assert told if status else phase == "in the export", (phase, text)
            found, _ = state(tmp_path / f"run{index}")
            assert found.items() <= checkpoints.items(), (phase, found)
        victim = (victim + 1) % num_workers
    statuses, errors = train(tmp_path, num_workers)
    assert statuses == [0] * num_workers, errors
    for index in range(num_workers):
        run = tmp_path / f"run{index}"
        assert not list(run.rglob(".partial-*"))
        found, table = state(run)
        assert list(found.items()) == list(checkpoints.items())[-2:]
        assert table == metrics
        with np.load(run / "export.npz") as weights:
            assert weights.files == export.files
            for name in weights.files:
                np.testing.assert_array_equal(weights[name], export[name])


@pytest.mark.slow
def test_workers_that_differ_are_refused_by_all(tmp_path):
    statuses, errors = train(tmp_path, 2, {1: "seed=1 data=2"})
    assert statuses == [1, 1]
    for text in errors:
        assert "ValueError: All workers must have the same settings and data" in text
        assert "seed: worker 0 has 0, worker 1 has '1'" in text
        assert "first training batch: worker 0 has " in text
        assert "first validation batch" not in text
    assert not list(tmp_path.glob("run*/checkpoints"))
