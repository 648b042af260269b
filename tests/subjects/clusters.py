"""Clusters of worker processes on this machine, for tests."""

import contextlib
import json
import multiprocessing
import os
import random
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def cluster(num_workers: int) -> list[str]:
    """TF_CONFIG of each worker of a cluster on free ports."""
    workers = [f"localhost:{port}" for port in free_ports(num_workers)]
    return [
        json.dumps(
            {
                "cluster": {"worker": workers},
                "task": {"type": "worker", "index": index},
            }
        )
        for index in range(num_workers)
    ]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at, below those that systems give to connections."""
    ports = []
    # Tests seed the other generators.
    for port in random.SystemRandom().sample(range(10_000, 30_000), 1000):
        with contextlib.suppress(OSError), socket.socket() as free:
            free.bind(("localhost", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise OSError("no free ports")


def state(run: Path) -> tuple[dict[str, int], str]:
    """Checksums of all checkpoints' weights by step, and the table of metrics."""
    checkpoints = {}
    for path in sorted((run / "checkpoints").glob("step-*.keras")):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None
            checkpoints[path.name] = archive.getinfo("model.weights.h5").CRC
    metrics = run / "metrics.csv"
    # Lines may end in two ways.
    return checkpoints, metrics.read_text("utf-8") if metrics.exists() else ""


def run_workers(
    main: Callable, calls: Sequence[tuple], frozen: Sequence[int] = ()
) -> list[int | None]:
    """Calls a function in a process for each worker, and waits for all.

    The module of the function is imported once for all workers of a file of tests.

    Args:
        main: the function.
        calls: its arguments in each process.
        frozen: the indices of the processes that do not end by themselves.

    Returns:
        The exit statuses.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([main.__module__])
    processes = [context.Process(target=main, args=arguments) for arguments in calls]
    try:
        for process in processes:
            process.start()
        for index, process in enumerate(processes):
            if index not in frozen:
                process.join()
    finally:
        for process in processes:  # After an error, or frozen.
            if process.pid is not None:
                process.kill()
                process.join()
    return [process.exitcode for process in processes]


@contextlib.contextmanager
def worker(
    program, arguments, config: str | None, errors, **variables: str
) -> Iterator:
    """A process of a worker, which does not outlive the block.

    Args:
        program: path of the script, or `-m` for a module. It may end when its standard
            input does: then it does not outlive this process either.
        arguments: of the script, or the module and its own.
        config: TF_CONFIG; `None` for a worker alone.
        errors: file for standard error.
        **variables: of its environment.
    """
    environment = {k: v for k, v in os.environ.items() if k != "TF_CONFIG"}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(REPOSITORY)}
    environment |= variables
    if config is not None:
        environment["TF_CONFIG"] = config
    with subprocess.Popen(
        [sys.executable, program, *map(str, arguments)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=errors,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
