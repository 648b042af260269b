"""Several workers with one run directory in a bucket, killed and started again."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tfeff
from tests.checks.pages import REPOSITORY, code_blocks
from tests.subjects import s3_worker
from tests.subjects.clusters import cluster, free_ports, run_workers, state, worker
from tests.subjects.recipes import SMALL
from tests.subjects.s3_worker import MANIFEST, UPLOAD
from tfeff import storage
from tfeff.storage.manifest import NAME, read_manifest
from tfeff.storage.place import Place

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("bucket")]

# The worker, and when it is killed.
PHASES = [
    (0, "before the first step"),
    (0, f"{UPLOAD}checkpoints/step-00000002.keras"),
    (0, f"{MANIFEST}checkpoints/step-00000004.keras"),
    (1, "after step 5"),
    (1, "in the validation after step 6"),
    (0, "after step 7"),
    (0, "in the save of step 8"),
    (0, f"{UPLOAD}export.npz"),
]


@pytest.fixture(name="train")
def _train(tmp_path):
    def train(
        directory,
        num_workers,
        phases=(),
        dropout=0.1,
        machine=0,
        shared=False,
        **variables,
    ):
        """Starts workers; each has a cache of its own, unless that is `shared`.

        Args:
            directory: folder or URL.
            num_workers: how many.
            phases: what some of the workers do.
            dropout: of the model.
            machine: the number of the machine that the chief is on.
            shared: whether the workers share `TFEFF_CACHE`.
            **variables: of the environment of the second worker.

        Returns:
            The exit statuses, and what the workers wrote to standard error.
        """
        phases = dict.fromkeys(range(num_workers), "") | dict(phases)
        calls, logs = [], []
        for index, config in enumerate(cluster(num_workers)):
            logs.append(tmp_path / f"errors{index}.txt")
            own = {k: v for k, v in os.environ.items() if k.startswith("AWS_")}
            copies = "copies" if shared else f"copies{index}-{index or machine}"
            own["TFEFF_CACHE"] = str(tmp_path / copies)
            own |= variables if index == 1 else {}
            arguments = (config, str(directory), phases[index], logs[index], dropout)
            calls.append((*arguments, own))
        statuses = run_workers(s3_worker.main, calls)
        return statuses, [log.read_text(encoding="utf-8") for log in logs]

    return train


def published(url):
    """What is published now, as a folder."""
    return pathlib.Path(storage.fetch(url))


def weights(run):
    with np.load(run / "export.npz") as found:
        return dict(found)


def test_killed_in_every_phase(train, url, tmp_path, bucket):
    alone = tmp_path / "uninterrupted" / "run"
    alone.parent.mkdir()
    statuses, errors = train(alone, 2, {0: "keep=9"})
    assert statuses == [0, 0], errors
    checkpoints, metrics = state(alone)
    for number, (victim, phase) in enumerate(PHASES):
        statuses, errors = train(url, 2, {victim: phase}, machine=number % 2)
        assert statuses[victim] == -signal.SIGKILL, (phase, errors)
        other = errors[1 - victim]
        is_named = "LostWorker: " in other and "start all workers again" in other
        assert statuses[1 - victim] and is_named, (phase, other)
        if phase != PHASES[0][1]:
            found, _ = state(published(url))
            assert found.items() <= checkpoints.items(), (phase, found)
    statuses, errors = train(url, 2)
    assert statuses == [0, 0], errors
    run = published(url)
    found, table = state(run)
    assert list(found.items()) == list(checkpoints.items())[-1:]
    assert table == metrics
    for name, value in weights(alone).items():
        np.testing.assert_array_equal(value, weights(run)[name])
    assert not objects_beside_the_manifest(bucket)
    # The second worker has copied what it has gone on from, and nothing else.
    (copy,) = (tmp_path / "copies1-1").glob("workers/*/worker-1/thing")
    assert files(copy) == ["checkpoints/step-00000008.keras"]


def objects_beside_the_manifest(bucket):
    client, name = bucket
    found = client.list_objects_v2(Bucket=name, Prefix="thing/")["Contents"]
    there = {x["Key"].removeprefix("thing/") for x in found}
    manifest = client.get_object(Bucket=name, Key=f"thing/{NAME}")["Body"].read()
    files = json.loads(manifest)["files"]
    named = {file.get("at", key) for key, file in files.items()}
    return {x for x in there - named if not x.startswith("tfeff-")}


def test_other_numbers_of_workers_go_on(train, url, tmp_path):
    """Also where the workers share a machine and a folder of copies."""
    alone = tmp_path / "alone" / "run"
    alone.parent.mkdir()
    assert train(alone, 1, dropout=0.0)[0] == [0]
    statuses, errors = train(url, 1, {0: "after step 3"}, 0.0)
    assert statuses == [-signal.SIGKILL], errors
    statuses, errors = train(url, 3, {2: "after step 5"}, 0.0, shared=True)
    assert statuses[2] == -signal.SIGKILL, errors
    assert sorted(state(published(url))[0]) == ["step-00000004.keras"]
    statuses, errors = train(url, 2, {1: "after step 7"}, 0.0, shared=True)
    assert statuses[1] == -signal.SIGKILL, errors
    assert sorted(state(published(url))[0]) == ["step-00000006.keras"]
    statuses, errors = train(url, 1)
    assert statuses == [0], errors
    found = weights(published(url))
    for name, value in weights(alone).items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    ("phase", "variables", "message"),
    [
        ("directory=s3://no-bucket-of-ours/thing", {}, "(it was given s3://no-bucket-"),
        (
            "",
            {"AWS_ACCESS_KEY_ID": None, "AWS_EC2_METADATA_DISABLED": "true"},
            "`directory` needs credentials for s3://",
        ),
        ("", {"AWS_ENDPOINT_URL": "http://localhost:9"}, "Reading s3://"),
        ("directory=nowhere", {}, "nowhere)"),
    ],
)
def test_a_worker_that_sees_another_place_is_named(
    phase, variables, message, train, url, tmp_path, bucket
):
    phase = phase.replace("nowhere", str(tmp_path / "nowhere"))
    statuses, errors = train(url, 2, {1: phase}, **variables)
    assert statuses == [1, 1], errors
    for text in errors:
        assert "worker 1 does not see there that worker 0 has opened s3://" in text
        assert message in text
    assert not objects_but_the_lease(bucket)


def objects_but_the_lease(bucket):
    client, name = bucket
    found = client.list_objects_v2(Bucket=name).get("Contents", ())
    return [x["Key"] for x in found if not x["Key"].startswith("thing/tfeff-lease/")]


def test_a_run_that_was_taken_over_ends_all(train, url, bucket):
    client, name = bucket

    def take_over():
        checkpoint = "thing/checkpoints/step-00000002.keras"
        while not client.list_objects_v2(Bucket=name, Prefix=checkpoint)["KeyCount"]:
            time.sleep(0.01)
        holder = {"id": "other", "pid": 7, "host": "far", "since": "now"}
        key = "thing/tfeff-lease/00000009.json"
        client.put_object(Bucket=name, Key=key, Body=json.dumps(holder).encode())

    thread = threading.Thread(target=take_over, daemon=True)
    thread.start()
    statuses, errors = train(url, 2)
    thread.join()
    assert statuses == [1, 1], errors
    for text in errors:
        assert "ValueError: " in text and "taken over by process 7 on far" in text


@pytest.mark.parametrize(
    ("command", "flags"),
    [("pretrain", []), ("stack", ["--num_layers=4", "--doublings=1"])],
)
def test_recipes_from_a_bucket_to_a_bucket(command, flags, url, bucket, tmp_path):
    client, name = bucket
    client.put_object(Bucket=name, Key="corpus/text.txt", Body=corpus())
    flags = [command, *SMALL, *flags, "--strategy=multi_worker"]
    flags.append(f"--corpus=s3://{name}/corpus/*.txt")
    whole = tmp_path / "whole"
    statuses, errors = recipe(tmp_path, *flags, f"--run_dir={whole}")
    assert statuses == [0, 0], errors
    flags.append(f"--run_dir={url}")

    def has_cache():
        return any(tmp_path.glob("copies1/workers/*/worker-1/thing/cache/*"))

    def has_checkpoint():
        manifest = read_manifest(Place("url", url))
        return manifest and "checkpoints/step-00000003.keras" in manifest.files

    for victim, is_time in ((1, has_cache), (0, has_checkpoint)):
        statuses, errors = recipe(tmp_path, *flags, victim=victim, is_time=is_time)
        assert statuses[victim] == -signal.SIGKILL, errors
        assert "start all workers again" in errors[1 - victim], errors
    shutil.rmtree(tmp_path / "copies0")  # The chief is on another machine now.
    statuses, errors = recipe(tmp_path, *flags)
    assert statuses == [0, 0], errors
    run = published(url)
    assert state(run) == state(whole)
    same = ("tokenizer.spm", "metrics.json", *files(whole, "cache"))
    for path in same:
        assert (run / path).read_bytes() == (whole / path).read_bytes(), path
    assert files(run, "cache") == files(whole, "cache")
    assert files(run, "export") == files(whole, "export")
    assert not objects_beside_the_manifest(bucket)
    # The checkpoint that the other worker went on from is gone from the run.
    (copy,) = tmp_path.glob("copies1/workers/*/worker-1/thing")
    assert {path.partition("/")[0] for path in files(copy)} == {
        "cache",
        "tokenizer.spm",
        "tokenizer.spm.sha256",
    }
    shutil.rmtree(tmp_path / "copies1")
    # Finished, it is only looked at.
    statuses, errors = recipe(tmp_path, *flags)
    assert statuses == [0, 0], errors


def files(folder, below=""):
    found = (path for path in (folder / below).rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in found)


def recipe(folder, *flags, victim=None, is_time=None):
    """Exit statuses and errors of two workers; one is killed when it is time."""
    logs = [folder / f"errors{index}.txt" for index in range(2)]
    with contextlib.ExitStack() as stack:
        processes = []
        for index, config in enumerate(cluster(2)):
            errors = stack.enter_context(open(logs[index], "wb"))
            copies = str(folder / f"copies{index}")
            arguments = ["tests.subjects.s3_worker", *flags]
            process = worker("-m", arguments, config, errors, TFEFF_CACHE=copies)
            processes.append(stack.enter_context(process))
        if victim is not None:
            while processes[victim].poll() is None and not is_time():
                time.sleep(0.01)
            processes[victim].kill()
        statuses = [process.wait() for process in processes]
    return statuses, [log.read_text(encoding="utf-8") for log in logs]


def test_the_command_of_the_page(bucket, tmp_path):
    """As it stands there, but for the hosts, the bucket and a smaller model."""
    client, name = bucket
    client.put_object(Bucket=name, Key="corpus/text.txt", Body=corpus())
    (command,) = [x for x in code_blocks("docs/CLUSTERS.md", "sh") if "s3://" in x]
    hosts = " ".join(f"localhost:{port}" for port in free_ports(2))
    for text, other in {
        "one:2222 two:2222": hosts,
        "s3://bucket/": f"s3://{name}/",
        "tfeff pretrain": f'"{sys.executable}" -m tfeff pretrain {" ".join(SMALL)}',
    }.items():
        assert text in command
        command = command.replace(text, other)
    logs = [tmp_path / f"errors{index}.txt" for index in range(2)]
    with contextlib.ExitStack() as stack:
        processes = []
        for index, log in enumerate(logs):
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command.replace('.sh 0', f'.sh {index}')}"],
                cwd=REPOSITORY,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)}
                | {"TFEFF_CACHE": f"{log}.copies", "CUDA_VISIBLE_DEVICES": ""},
                stdout=subprocess.DEVNULL,
                stderr=stack.enter_context(open(log, "wb")),
            )
            stack.callback(process.kill)
            processes.append(process)
        statuses = [process.wait() for process in processes]
    assert statuses == [0, 0], logs[0].read_text()
    assert storage.fetch(f"s3://{name}/run/SHA256SUMS")


def corpus():
    documents = tfeff.data.docstrings(["keras"], max_characters=60_000)
    return "\n\n".join(re.sub(r"\n\s*\n", "\n", x) for x in documents).encode()
