"""`tfeff pretrain` on two workers with one directory, of which one is killed."""

import contextlib
import csv
import time

import pytest

from tests.subjects.clusters import cluster, worker
from tests.subjects.recipes import SMALL


def pretrain(folder, flags, victim=None, kill_when=None, command="pretrain"):
    """Exit statuses and errors of two workers; one is killed when a path exists."""
    logs = [folder / f"errors{index}.txt" for index in range(2)]
    with contextlib.ExitStack() as stack:
        processes = []
        for index, config in enumerate(cluster(2)):
            errors = stack.enter_context(open(logs[index], "wb"))
            arguments = ["tfeff", command, f"--run_dir={folder}/run", *flags]
            process = worker("-m", arguments, config, errors)
            processes.append(stack.enter_context(process))
        if kill_when is not None:
            while processes[victim].poll() is None and not kill_when.exists():
                time.sleep(0.01)
            processes[victim].kill()
        statuses = [process.wait() for process in processes]
    return statuses, [log.read_text(encoding="utf-8") for log in logs]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "when"),
    [
        (1, "cache/train"),
        (0, "cache/train"),
        (1, "checkpoints/step-00000003.keras"),
        (0, "preset"),
    ],
)
def test_a_worker_is_killed(corpus, tmp_path, victim, when):
    flags = (*SMALL, f"--corpus={corpus}", "--strategy=multi_worker")
    run = tmp_path / "run"
    statuses, errors = pretrain(tmp_path, flags, victim, run / when)
    assert (run / when).exists() and statuses[victim] == -9, errors
    statuses, errors = pretrain(tmp_path, flags)
    assert statuses == [0, 0], errors
    assert (run / "export" / "1" / "saved_model.pb").exists()
    assert (run / "SHA256SUMS").exists() and (run / "metrics.json").exists()
    assert sorted(path.name for path in tmp_path.glob("run*")) == ["run"]


@pytest.mark.slow
def test_a_batch_that_replicas_cannot_share_is_refused(corpus, tmp_path):
    flags = (*SMALL, f"--corpus={corpus}", "--strategy=multi_worker", "--batch_size=3")
    statuses, errors = pretrain(tmp_path, flags)
    assert statuses == [1, 1] and not (tmp_path / "run").exists()
    for text in errors:
        assert "batch size must be a multiple of the number of replicas" in text
        assert "batches of 3, 2 replicas" in text


@pytest.mark.slow
def test_stacking_goes_on_at_the_depth_that_it_had(corpus, tmp_path):
    flags = (*SMALL, f"--corpus={corpus}", "--strategy=multi_worker")
    flags += ("--num_layers=4", "--doublings=2")
    run = tmp_path / "run"
    saved = run / "checkpoints" / "step-00000006.keras"
    statuses, errors = pretrain(tmp_path, flags, 1, saved, "stack")
    assert saved.exists() and statuses[1] == -9, errors
    statuses, errors = pretrain(tmp_path, flags, command="stack")
    assert statuses == [0, 0], errors
    with open(run / "metrics.csv", encoding="utf-8", newline="") as file:
        rows = [(row["step"], row["num_layers"]) for row in csv.DictReader(file)]
    assert rows == [("3", "1"), ("6", "2"), ("9", "4")]
