import contextlib
import json
from pathlib import Path

import numpy as np
import pytest

import tfeff
from tests.subjects.clusters import cluster, run_workers, worker
from tests.training.gathering_worker import main

TEXTS = [f"the {i} small men see {i * i} ant hills" for i in range(20)]
WORKER = Path(__file__).with_name("worker.py")


@pytest.mark.slow
@pytest.mark.parametrize("source", ["shared rows", "own rows"])
def test_two_workers_equal_one_device(source, tmp_path):
    cache = []
    if source == "own rows":
        cache = [tmp_path / "cache"]
        tokenizer = tfeff.data.train_tokenizer(TEXTS, 30)
        tfeff.data.build_cache(TEXTS, tokenizer, *cache, 12, progress=False)
    results = [tmp_path / f"{name}.npz" for name in ("0", "1", "alone")]
    log = tmp_path / "errors.txt"
    with contextlib.ExitStack() as stack:
        errors = stack.enter_context(open(log, "wb"))
        processes = [
            stack.enter_context(worker(WORKER, [path, *cache], config, errors))
            for path, config in zip(results, [*cluster(2), None])
        ]
        statuses = [process.wait() for process in processes]
    assert statuses == [0, 0, 0], log.read_text()
    first, second, alone = (np.load(path) for path in results)
    assert [int(run["replicas"]) for run in (first, second, alone)] == [2, 2, 1]
    for name in alone.files:
        if name != "replicas":
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
            np.testing.assert_allclose(
                first[name], alone[name], rtol=1e-4, atol=1e-5, err_msg=name
            )


@pytest.mark.slow
def test_none_leaves_before_all_have_what_was_gathered(tmp_path):
    """A process may end at once then, which would abort what others still receive."""
    late = [0, 4]
    paths = [tmp_path / f"{index}.json" for index in range(2)]
    statuses = run_workers(main, [*zip(cluster(2), late, paths)])
    assert statuses == [0, 0]
    for path in paths:
        everyone, seconds = json.loads(path.read_text())
        assert everyone == {"worker 0": 0, "worker 1": 4}
        assert seconds >= 4
