import os
import subprocess
import sys
import time

import numpy as np
import pytest
from absl import app, flags
from absl.testing import flagsaver

from tests.benchmarks.scripts import FOLDER

SETTINGS = dict(
    case="bert",
    task="train",
    dtype="float32",
    length="8",
    tokens="16",
    layers="1",
    width="24",
    vocabulary="30",
    dropout="0.0",
    rounds="2",
    environment="tuned",
    machine="some processor",
)


@pytest.fixture(scope="module")
def cpu(load):
    return load("cpu.py")


@pytest.fixture
def parsed(cpu):
    with flagsaver.flagsaver():
        # Not `tuned`, for which the program would start anew.
        yield lambda *args: flags.FLAGS(["cpu.py", "--environment=default", *args])


def row(contender, mode, seconds, left_out=""):
    return dict(
        SETTINGS,
        contender=contender,
        mode=mode,
        parameters="7",
        seconds=seconds,
        left_out=left_out,
    )


def test_ratios_are_of_the_same_round(cpu):
    ours = row("tfeff:bert_base", "XLA", "1 2 8")
    peer = row("keras_hub:bert", "XLA", "2 2 4")
    assert cpu["ratios"](ours, peer) == [0.5, 1.0, 2.0]
    assert cpu["spread"]([0.5, 1.0, 2.0], 2) == "1.00 (0.75–1.50)"


def test_rounds_run_every_step_once(load):
    calls = []
    steps = [(lambda: calls.append(0), 1), (lambda: calls.append(1), 3)]
    times = load("costs.py")["interleave"](steps, rounds=20)
    assert [len(of_step) for of_step in times] == [20, 20]
    firsts = []
    for start in range(0, 80, 4):
        in_round = calls[start : start + 4]
        assert in_round in ([0, 1, 1, 1], [1, 1, 1, 0])
        firsts.append(in_round[0])
    assert set(firsts) == {0, 1}


def test_rows_have_their_times_or_the_reason_why_not(load):
    costs = load("costs.py")
    rows = [{}, {}]
    steps = (lambda: time.sleep(0.01), int)
    costs["time_rows"]([(row, step, 2) for row, step in zip(rows, steps)], rounds=3)
    slow, fast = map(costs["seconds"], rows)
    assert len(slow) == len(fast) == 3
    assert min(slow) >= 0.01 > min(fast)
    assert costs["left_out"](OSError("a\nb")) == "OSError: a"
    assert costs["left_out"](ValueError()) == "ValueError: "


def test_summary_takes_the_better_of_each_side(cpu):
    rows = [
        row("tfeff:bert_base", "default", "4 4"),
        row("tfeff:bert_base", "XLA", "1 1"),
        row("tfeff:shatter_base", "default", "3 3"),
        row("keras_hub:bert", "default", "2 2"),
        row("keras_hub:bert", "XLA", "9 9"),
        row("model_garden:bert", "", "", "ImportError: no | such"),
        row("hugging_face:bert", "eager", "5 5"),
    ]
    cells = dict(cpu["summary"](rows, SETTINGS))
    assert cells["tfeff:bert_base"] == (
        *("bert", "train", "float32", "8"),
        *("tfeff:bert_base, XLA", "keras_hub:bert, default"),
        *("0.500 (0.500–0.500)", "≤ 0.95", ""),
    )
    assert cells["tfeff:shatter_base"][-3:] == ("1.500 (1.500–1.500)", "≤ 0.82", "")
    assert cpu["details"](rows)[-2:] == [
        "| model_garden:bert |  | 7 |  | ImportError: no \\| such |",
        "| hugging_face:bert | eager | 7 | 5000.0 (5000.0–5000.0) |  |",
    ]
    assert not list(cpu["summary"](rows[:3], SETTINGS))


def test_plan(cpu, parsed):
    parsed("--cases=bert,mixed_core", "--dtypes=float32")
    comparisons = [tuple(comparison.values()) for comparison in cpu["plan"]()]
    bert = [
        ("bert", task, "float32", length)
        for length in ("128", "512", "1024")
        for task in ("train", "inference")
    ]
    assert comparisons == [*bert, ("mixed_core", "inference", "float32", "512")]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--cases=brt"], "--cases must be among .*Received: brt"),
        (["--dtypes=half"], "--dtypes must be among .*Received: half"),
        (["--lengths=100"], "--lengths must divide --tokens=2048. Received: 100"),
        (["--lengths=0"], "--lengths must divide"),
        (["--width=100"], "--width must be a multiple of 12. Received: 100"),
    ],
)
def test_bad_flags(cpu, parsed, tmp_path, arguments, message):
    results = tmp_path / "results"
    parsed(*arguments, f"--results={results}")
    with pytest.raises(app.UsageError, match=message):
        cpu["main"]([])
    assert not results.exists()


def test_batch_is_masked_where_tokens_are(cpu):
    import peers

    sizes = peers.Sizes(1, 24, 30, length=20, batch_size=3, dropout=0.0)
    batch = peers.make_batch(sizes)
    assert batch["padding_mask"].sum(axis=1).tolist() == [20, 20, 18]
    assert batch["mask_positions"].shape == batch["labels"].shape == (3, 3)
    chosen = np.take_along_axis(batch["padding_mask"], batch["mask_positions"], axis=1)
    assert chosen.all()
    assert (np.diff(batch["mask_positions"]) > 0).all()
    assert batch["segment_ids"][0].tolist() == [0] * 10 + [1] * 10


def test_two_streams_see_what_is_given_and_predicted_before(cpu):
    import peers.common

    batch = {
        "token_ids": np.zeros((1, 4), "int32"),
        "mask_positions": np.array([[1, 3]], "int32"),
    }
    assert peers.common.visible_pairs(batch)[0].tolist() == [
        [1, 0, 1, 0],
        [1, 0, 1, 0],
        [1, 0, 1, 0],
        [1, 1, 1, 0],
    ]
    assert peers.common.target_rows(batch)[0].tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]


def test_torch_and_triton_come_before_anything_is_compiled(tmp_path):
    modules, log = tmp_path / "modules", tmp_path / "log"
    for name in ("torch", "triton", "keras", "tensorflow", "tfeff", "keras_hub"):
        (modules / name).mkdir(parents=True)
        source = f"with open({str(log)!r}, 'a') as file: file.write('{name}\\n')\n"
        (modules / name / "__init__.py").write_text(source)
    # A broken PyTorch is left out, like a missing one.
    with open(modules / "torch" / "__init__.py", "a") as file:
        file.write("raise OSError('libcudart.so')")
    environment = {**os.environ, "PYTHONPATH": str(modules)}
    command = [sys.executable, str(FOLDER / "cpu.py"), "--cases=bert", "--layers=1"]
    for option in ("--environment=default", "--environment=tuned"):
        result = subprocess.run(
            [*command, option, f"--results={tmp_path}"],
            env=environment,
            capture_output=True,
            text=True,
        )
        # The faked Keras can do nothing: all comparisons fail, after their imports.
        assert result.returncode == 1 and "failed: bert" in result.stderr
        assert log.read_text().split()[:3] == ["torch", "triton", "keras"]
        log.unlink()


@pytest.mark.slow
def test_a_tiny_run(cpu, parsed, tmp_path):
    parsed(
        "--cases=bert,mixed_core",
        "--dtypes=float32",
        "--lengths=8",
        "--tokens=16",
        "--layers=1",
        "--width=24",
        "--vocabulary=30",
        "--rounds=2",
        f"--results={tmp_path}",
    )
    cpu["main"]([])
    path = tmp_path / "cpu.csv"
    rows = cpu["read"](path)
    trained = {
        row["contender"]: row["parameters"]
        for row in rows
        if row["task"] == "train" and row["seconds"]
    }
    # The same work: BERT has the same weights, whoever wrote it.
    shatter = trained.pop("tfeff:shatter_base")
    assert {"tfeff:bert_base", "keras_hub:bert"} <= set(trained)
    assert len(set(trained.values())) == 1
    assert int(shatter) < int(trained["tfeff:bert_base"]) + 24 * 512
    for row in rows:
        assert row["left_out"] or len(row["seconds"].split()) == 2
        assert not (row["left_out"] and row["contender"].startswith("tfeff"))
    report = (tmp_path / "cpu.md").read_text(encoding="utf-8")
    assert "| mixed_core | inference | float32 | 8 |" in report
    size = path.stat().st_size
    cpu["main"]([])  # Nothing is left to do.
    assert path.stat().st_size == size
