import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

WORKER = Path(__file__).with_name("worker.py")


@pytest.mark.slow
def test_two_workers_equal_one_device(tmp_path):
    addresses = [f"localhost:{port}" for port in free_ports(2)]
    configs = [
        json.dumps(
            {
                "cluster": {"worker": addresses},
                "task": {"type": "worker", "index": index},
            }
        )
        for index in range(2)
    ]
    results = [tmp_path / f"{name}.npz" for name in ("0", "1", "alone")]
    processes = [start(path, config) for path, config in zip(results, [*configs, None])]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    first, second, alone = (np.load(path) for path in results)
    assert [int(run["replicas"]) for run in (first, second, alone)] == [2, 2, 1]
    for name in alone.files:
        if name != "replicas":
            np.testing.assert_array_equal(first[name], second[name], err_msg=name)
            np.testing.assert_allclose(
                first[name], alone[name], rtol=1e-4, atol=1e-5, err_msg=name
            )


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("localhost", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def start(path, config):
    environment = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    if config:
        environment["TF_CONFIG"] = config
    environment["PYTHONPATH"] = str(WORKER.parents[2])
    return subprocess.Popen(
        [sys.executable, WORKER, path],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
    )
