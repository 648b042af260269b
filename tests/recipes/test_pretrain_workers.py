"""`tfeff pretrain` on two workers, one of them killed while it exports."""

import contextlib
import time

import pytest

from tests.subjects.clusters import cluster, worker
from tests.subjects.recipes import SMALL


def pretrain(folder, flags, kill_when=None):
    """Exit statuses and errors of two workers; the last is killed at a path."""
    logs = [folder / f"errors{index}.txt" for index in range(2)]
    with contextlib.ExitStack() as stack:
        processes = []
        for index, config in enumerate(cluster(2)):
            errors = stack.enter_context(open(logs[index], "wb"))
            arguments = ["tfeff", "pretrain", f"--run_dir={folder}/run{index}", *flags]
            process = worker("-m", arguments, config, errors)
            processes.append(stack.enter_context(process))
        if kill_when is not None:
            while processes[-1].poll() is None and not kill_when.exists():
                time.sleep(0.01)
            processes[-1].kill()
        statuses = [process.wait() for process in processes]
    return statuses, [log.read_text(encoding="utf-8") for log in logs]


@pytest.mark.slow
def test_a_worker_is_killed_before_its_export(corpus, tmp_path):
    flags = (*SMALL, f"--corpus={corpus}", "--strategy=multi_worker")
    runs = [tmp_path / "run0", tmp_path / "run1"]
    preset = runs[1] / "preset"
    statuses, errors = pretrain(tmp_path, flags, kill_when=preset)
    assert preset.exists() and statuses[1] == -9, errors
    assert not (runs[1] / "export").exists()
    statuses, errors = pretrain(tmp_path, flags)
    assert statuses == [0, 0], errors
    for name in ("metrics.csv", "metrics.json", "tokenizer.spm"):
        first, second = ((run / name).read_bytes() for run in runs)
        assert first == second, name
    assert all((run / "export" / "1" / "saved_model.pb").exists() for run in runs)
