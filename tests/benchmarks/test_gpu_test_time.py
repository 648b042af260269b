import os
import subprocess
import sys

import pytest

from tests.benchmarks.scripts import FOLDER, cells

jax = pytest.importorskip("jax", reason="jax is not installed (extra tpu)")


@pytest.fixture(scope="module")
def script(load):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BACKEND", "tensorflow")  # The module changes it.
        yield load("gpu_test_time.py")


def run(*arguments):
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, (FOLDER.parent, FOLDER))),
        "JAX_PLATFORMS": "cpu",
    }
    return subprocess.run(
        [sys.executable, FOLDER / "gpu_test_time.py", *arguments],
        env=environment,
        capture_output=True,
        text=True,
    )


def test_table(script):
    times = {("unfused_attention", "8"): "0.05", ("unfused_attention", "16"): "OOM"}
    times |= {("blockbert_n2", "16"): "0.1", ("bert", "8"): "0.02"}
    rows = [
        {"length": "1024", "variant": variant, "batch_size": size, "seconds": seconds}
        for (variant, size), seconds in times.items()
    ]
    assert [cells(line) for line in script["table"](rows)[2:]] == [
        ["unfused_attention", "0.05 (0.1371)", "OOM (OOM)"],
        ["blockbert_n2", "(0.099)", "0.1 (0.1869)"],
        ["bert", "0.02", ""],
    ]
    others = [{**row, "length": "512"} for row in rows]
    assert "(" not in "".join(script["table"](others))


def test_too_little_memory_is_an_outcome(script):
    too_much = RuntimeError(
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate"
    )
    assert script["is_out_of_memory"](too_much)
    assert not script["is_out_of_memory"](RuntimeError("INTERNAL: no kernel"))


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--runs=3", "No GPU: JAX"),
        ("--batch_sizes=8,0", "--batch_sizes"),
        ("--memory_fraction=2", "--memory_fraction"),
        ("--variants=brt", "--variants"),
    ],
)
def test_what_cannot_be_measured(flag, message, tmp_path):
    result = run(flag, f"--results={tmp_path / 'results'}")
    assert result.returncode != 0
    assert message in result.stdout + result.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
def test_rows_are_made_once(script, tmp_path):
    command = ["--allow_cpu", f"--results={tmp_path}", "--layers=1", "--hidden_dim=192"]
    command += ["--length=24", "--batch_sizes=1,2", "--runs=2"]
    command += ["--variants=unfused_attention,blockbert_n3"]
    result = run(*command)
    assert result.returncode == 0, result.stderr
    rows = script["read"](str(tmp_path / "gpu_test_time.csv"))
    assert [(row["variant"], row["batch_size"]) for row in rows] == [
        ("unfused_attention", "1"),
        ("unfused_attention", "2"),
        ("blockbert_n3", "1"),
        ("blockbert_n3", "2"),
    ]
    assert all(float(row["seconds"]) > 0 for row in rows)
    assert "| blockbert_n3 |" in (tmp_path / "gpu_test_time.md").read_text()
    again = run(*command)
    assert again.returncode == 0 and again.stdout == ""
