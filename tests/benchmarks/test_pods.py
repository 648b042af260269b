"""Steps compiled for slices of TPU pods, and what their collective operations take."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.scripts import cells
from tests.subjects import training_steps

# Four chips; eight of two hosts; sixteen: hosts, chips and replicas.
SLICES = {"v5e:2x2": (1, 4, 4), "v3:2x4": (2, 8, 16), "v5e:4x4": (4, 16, 16)}
PROGRAM = """
  %a = (f32[3,4]{1,0:T(8,128)}, bf16[5]{0}, /*index=2*/f32[]) all-reduce(%x, %y, %z)
  %b = (f32[2]{0}, f32[8]{0}) all-gather-start(%p), dimensions={0}
  %c = f32[8]{0} all-gather-done(%b)
  %d = s32[6]{0} get-tuple-element(%all-reduce.1), index=0
"""


@pytest.fixture(scope="module")
def pods(load):
    return load("pods.py")


@pytest.fixture(scope="module")
def collectives(load):
    return load("collectives.py")


def test_bytes_of_a_program(collectives):
    found = collectives["collectives"](PROGRAM)
    assert [(x.kind, x.elements, x.bytes) for x in found] == [
        ("all-reduce", 12 + 5 + 1, 48 + 10 + 4),
        ("all-gather", 8, 32),
    ]


def test_time_of_a_ring(collectives):
    """Four chips pass each byte on 2 · 3/4 times, by two links of 70 GB/s."""
    reduction = collectives["Collective"]("all-reduce", 35 * 10**9, 140 * 10**9)
    gathering = collectives["Collective"]("all-gather", 35 * 10**9, 140 * 10**9)
    assert collectives["seconds"]([reduction], "v3", 4) == pytest.approx(1.5)
    assert collectives["seconds"]([gathering], "v3", 4) == pytest.approx(0.75)
    assert collectives["seconds"]([reduction], "v3", 1) == 0


def test_table(pods):
    row = dict(
        layers="12",
        batch_size="16",
        length="512",
        preset="bert_base",
        topology="v3:2x2",
        hosts="1",
        chips="4",
        replicas="8",
        seconds="0.099",
        cycles="1",
        temporary="3000000000",
        arguments="1",
        weights="400000000",
        reduced="200000000",
        moved="0",
        collective_seconds="0.001",
    )
    assert cells(pods["table"]([row])[2]) == [
        *("bert_base", "v3:2x2", "1", "4", "8", "99.0", "1.00", "0.010"),
        *("200.0", "0.0", "400.0", "3000.0", "655,360"),
    ]


@pytest.mark.slow
@pytest.mark.skipif(
    not (importlib.util.find_spec("jax") and importlib.util.find_spec("libtpu")),
    reason="jax and libtpu are not installed (extra tpu)",
)
@pytest.mark.parametrize("name", training_steps.NAMES)
def test_a_step_of_all_replicas(name, tmp_path):
    program = Path(__file__).with_name("pod_step.py")
    result = subprocess.run(
        [sys.executable, str(program), name, str(tmp_path), *SLICES],
        env={k: v for k, v in os.environ.items() if k != "XLA_FLAGS"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["topology"] for row in rows] == list(SLICES)
    for row in rows:
        print({k: v for k, v in row.items() if k != "operations"})
        assert (row["hosts"], row["chips"], row["replicas"]) == SLICES[row["topology"]]
        reduced = [x for x in row["operations"] if x["kind"] == "all-reduce"]
        # The gradient of each weight, in float32 or bfloat16; a table that embeds
        # tokens and predicts them has two. The rest are single numbers.
        elements = sum(x["elements"] for x in reduced)
        assert row["weights"] <= elements < 1.5 * row["weights"]
        assert 2 * elements <= sum(x["bytes"] for x in reduced) <= 4 * elements
        assert 0 < row["collective_seconds"] < 1 and 0 < row["seconds"] < 1
