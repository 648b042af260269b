"""The commands of docs/CLUSTERS.md run as they stand, as far as one machine can."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time

import pytest
import yaml

import tfeff
from tests.checks.pages import REPOSITORY, code_blocks, printed_by, python_blocks
from tests.subjects.clusters import free_ports
from tests.subjects.recipes import SMALL

PAGE = "docs/CLUSTERS.md"
CLUSTER = REPOSITORY / "examples" / "cluster"
TERMINALS = [block for block in code_blocks(PAGE, "sh") if "TF_CONFIG=" in block]
(LOOP,) = [block for block in code_blocks(PAGE, "sh") if block.startswith("until")]


def programs(folder, **scripts):
    """A PATH on which there are these programs, before all others."""
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/bash\n{script}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_the_worker_script_sets_tf_config():
    command = ["sh", CLUSTER / "worker.sh", "1", "one:2222 two:2222", "sh", "-c"]
    command += ['echo "$TF_CONFIG" "$@"', "sh", "a b"]
    printed = subprocess.check_output(command, text=True)
    config, end = json.JSONDecoder().raw_decode(printed)
    assert config == {
        "cluster": {"worker": ["one:2222", "two:2222"]},
        "task": {"type": "worker", "index": 1},
    }
    assert printed[end:] == " a b\n"


@pytest.mark.parametrize("fails", [False, True])
def test_the_script_for_slurm(tmp_path, fails):
    path = programs(
        tmp_path / "bin",
        scontrol='if [ "$1" = show ]; then echo one; echo two; else echo "$@"; fi',
        srun='[ "$1" = --kill-on-bad-exit=1 ] && shift\n'
        'for SLURM_PROCID in 0 1; do export SLURM_PROCID; "$@" || exit 1; done',
    )
    command = ["bash", CLUSTER / "slurm.sh", "sh", "-c"]
    command += [f'echo "$TF_CONFIG" "$1"; {"false" if fails else "true"}', "sh", "a b"]
    environment = {"PATH": path, "SLURM_JOB_ID": "1234567", "SLURM_JOB_NODELIST": "x"}
    result = subprocess.run(
        command, env=environment, cwd=REPOSITORY, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    if fails:
        assert lines.pop() == "requeue 1234567"
    assert len(lines) == (1 if fails else 2)
    for index, line in enumerate(lines):
        config = json.loads(line.removesuffix(" a b"))
        assert config["cluster"] == {"worker": ["one:24567", "two:24568"]}
        assert config["task"] == {"type": "worker", "index": index}


def test_the_manifest_names_what_there_is():
    service, job = yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    name = job["metadata"]["name"]
    assert service["metadata"]["name"] == pod["subdomain"]
    assert service["spec"]["selector"] == {"job-name": name}
    (container,) = pod["containers"]
    shell, script, index, workers = container["command"]
    assert (REPOSITORY / script).exists()
    assert workers.split() == [
        f"{name}-{n}.{pod['subdomain']}:{container['ports'][0]['containerPort']}"
        for n in range(job["spec"]["completions"])
    ]
    assert job["spec"]["parallelism"] == job["spec"]["completions"]


def test_the_manifest_follows_the_schemas():
    validate = pytest.importorskip("kubernetes_validate")
    parts = list(yaml.safe_load_all((CLUSTER / "kubernetes.yaml").read_text()))
    for part in parts:
        validate.validate(part, validate.latest_version(), strict=True)
    parts[1]["spec"]["completion"] = 2
    with pytest.raises(validate.ValidationError, match="'completion' was unexpected"):
        validate.validate(parts[1], validate.latest_version(), strict=True)


@pytest.mark.slow
def test_code_of_the_page(tmp_path):
    assert printed_by(python_blocks(PAGE), tmp_path) == "writes\n"


@pytest.fixture
def terminals(tmp_path):
    """Starts a script as in a terminal, in a folder with a corpus."""
    documents = tfeff.data.docstrings(["keras"], max_characters=60_000)
    (tmp_path / "corpus").mkdir()
    text = "\n\n".join(re.sub(r"\n\s*\n", "\n", text) for text in documents)
    (tmp_path / "corpus" / "text.txt").write_text(text, encoding="utf-8")
    # As it stands on the page, but for a smaller model.
    command = (
        f'echo $$ >> pids; exec "{sys.executable}" -m tfeff "$@" {" ".join(SMALL)}'
    )
    path = programs(tmp_path / "bin", tfeff=command)
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY)}
    environment |= {"CUDA_VISIBLE_DEVICES": ""}
    ports = free_ports(2)
    with contextlib.ExitStack() as stack:

        def start(script, log):
            for before, port in zip(("23456", "23457"), ports, strict=True):
                script = script.replace(before, str(port))
            process = subprocess.Popen(
                ["bash", "-c", script],
                cwd=tmp_path,
                env=environment,
                stderr=stack.enter_context(open(tmp_path / log, "wb")),
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            stack.callback(_end, process)
            return process

        yield start


def _end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


@pytest.mark.slow
def test_two_terminals(terminals, tmp_path):
    started = [terminals(block, f"log{n}") for n, block in enumerate(TERMINALS)]
    assert len(started) == 2
    statuses = [process.wait() for process in started]
    assert statuses == [0, 0], (tmp_path / "log0").read_text()
    assert (tmp_path / "runs" / "two" / "SHA256SUMS").exists()


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_loops_start_a_lost_worker_again(terminals, tmp_path, victim):
    """The victim's process is killed; the loops of both workers go on by themselves."""
    started = [
        terminals(f"{block[: block.index('tfeff')]}\n{LOOP}", f"log{n}")
        for n, block in enumerate(TERMINALS)
    ]
    checkpoint = tmp_path / "runs" / "two" / "checkpoints" / "step-00000003.keras"
    while not checkpoint.exists():
        assert all(process.poll() is None for process in started)
        time.sleep(0.05)
    (child,) = subprocess.check_output(
        ["pgrep", "-P", str(started[victim].pid)], text=True
    ).split()
    os.kill(int(child), 9)
    statuses = [process.wait() for process in started]
    logs = [(tmp_path / f"log{n}").read_text() for n in range(2)]
    assert statuses == [0, 0], logs
    assert len((tmp_path / "pids").read_text().split()) >= 4
    assert "ended" in logs[1 - victim]
    assert (tmp_path / "runs" / "two" / "SHA256SUMS").exists()
