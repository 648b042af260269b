import csv
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.benchmarks.scripts import FOLDER


@pytest.fixture(scope="module")
def gpu_campaign(load):
    return load("gpu_campaign.py")


def test_masks_are_of_the_step_alone(gpu_campaign):
    rows = np.arange(5, 5 + 40 * 22).reshape(40, 22).astype("uint16")
    rows[:, 0], rows[:, -1] = 2, 3
    arguments = (rows, 1000, 8, 3)
    inputs, labels = gpu_campaign["batch"](*arguments, 7)
    again, _ = gpu_campaign["batch"](*arguments, 7)
    np.testing.assert_array_equal(inputs["token_ids"], again["token_ids"])
    other, _ = gpu_campaign["batch"](*arguments, 8)
    assert (inputs["token_ids"] != other["token_ids"]).any()
    assert labels.shape == inputs["mask_positions"].shape == (8, 3)
    restored = inputs["token_ids"].copy()
    np.put_along_axis(restored, inputs["mask_positions"], labels, axis=1)
    assert {tuple(row) for row in restored} <= {tuple(row) for row in rows.tolist()}
    assert (restored[:, 0] == 2).all() and (inputs["token_ids"][:, -1] == 3).all()
    # An epoch has each sequence once.
    epoch = [gpu_campaign["batch"](*arguments, step) for step in range(5)]
    firsts = []
    for inputs, labels in epoch:
        np.put_along_axis(inputs["token_ids"], inputs["mask_positions"], labels, axis=1)
        firsts += inputs["token_ids"][:, 1].tolist()
    assert sorted(firsts) == sorted(rows[:, 1].tolist())


def test_shares_of_masks(gpu_campaign):
    rows = np.full((500, 102), 9, "uint16")
    draw = np.random.default_rng(0)
    inputs, labels = gpu_campaign["masked"](rows, 50, draw)
    at = np.take_along_axis(inputs["token_ids"], inputs["mask_positions"], axis=1)
    assert (labels == 9).all() and labels.shape == (500, 15)
    assert abs((at == 4).mean() - 0.8) < 0.02 and abs((at == 9).mean() - 0.1) < 0.02


@pytest.mark.slow
def test_a_training_that_was_stopped_ends_with_the_same_loss(tmp_path):
    pytest.importorskip("jax", reason="jax is not installed (extra tpu)")
    draw = np.random.default_rng(0)
    for name, length in (("tokens", 16), ("longer", 24)):
        np.savez(
            tmp_path / f"{name}.npz",
            train=draw.integers(5, 30, size=(40, length)).astype("uint16"),
            final=draw.integers(5, 30, size=(8, length)).astype("uint16"),
            vocabulary_size=30,
            unigram_entropy=3.2,
        )

    def start(name, *more):
        command = [sys.executable, str(FOLDER / "gpu_campaign.py"), "--allow_cpu"]
        command += ["--size=toy", "--variants=bert,shatter", "--seeds=0"]
        command += ["--batch_size=4", "--million_tokens=0.000512", "--points=4"]
        command += ["--save_minutes=0", "--dtype=float32"]
        command += [f"--tokens={tmp_path / 'tokens.npz'}"]
        command += [f"--runs={tmp_path / name}", f"--results={tmp_path / name}", *more]
        environment = {"PYTHONPATH": str(FOLDER.parent), "JAX_PLATFORMS": "cpu"}
        return subprocess.Popen(command, env=os.environ | environment)

    def rows_of(name):
        path = tmp_path / name / "gpu_campaign.csv"
        if not path.exists():
            return []
        with open(path, encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    assert start("whole").wait() == 0
    whole = rows_of("whole")
    assert [row["variant"] for row in whole] == ["bert", "shatter"]
    process = start("parts")
    while not list((tmp_path / "parts").glob("*.npz")):
        assert process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert len(rows_of("parts")) < 2
    assert start("parts").wait() == 0
    losses = [row["loss"] for row in rows_of("parts")]
    assert losses == [row["loss"] for row in whole]
    # What the numbers depend on is another training, in the same folders.
    one = ["--variants=bert"]
    assert start("parts", *one, f"--tokens={tmp_path / 'longer.npz'}").wait() == 0
    assert start("parts", *one, "--dtype=mixed_bfloat16").wait() == 0
    assert start("parts", *one).wait() == 0
    rows = rows_of("parts")
    assert len(rows) == 4 and len({row["loss"] for row in rows}) == 4


def test_the_page_has_a_row_a_system_and_a_picture_of_each_setting(load, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    script = load("gpu_campaign_report.py")
    key = ("size", "variant", "seed", "device", "million_tokens", "batch_size")
    key += ("rate", "dtype", "points", "tokens_digest")
    rows, points = [], []
    for size, variant, seed, loss in (
        ("small", "no_position", 0, 5.0),
        ("small", "bert", 0, 3.0),
        ("small", "bert", 1, 3.2),
        ("small", "shatter", 0, 2.9),
        ("base", "bert", 0, 2.5),
    ):
        values = (size, variant, seed, "A card", 1, 4, 0.5, "float32", 40, "abc")
        case = dict(zip(key, map(str, values)))
        more = {"length": 16, "loss": loss, "unigram_entropy": 6.0}
        rows.append(case | more | {"tokens_a_second": 12345})
        points += [
            case | {"step": step, "loss": loss - 1, "val_loss": loss + (10 - step) / 10}
            for step in range(1, 11)
        ]
    path = str(tmp_path / "gpu_campaign.csv")
    for name, found in ((path, rows), (path.replace(".csv", "_curves.csv"), points)):
        with open(name, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, found[0])
            writer.writeheader()
            writer.writerows(found)
    script["report"](path, key)
    page = (tmp_path / "gpu_campaign.md").read_text()
    small = "3.100 (3.000, 3.200) | 2.100 (2.000, 2.200) | 0.100 (0.100, 0.100)"
    assert f"| BERT | {small} | 6.000 | 12,345 |" in page
    assert page.index("| BERT | 3.100") < page.index("| No_Position | 5.000")
    assert page.index("| Shatter | 2.900") < page.index("| BERT | 2.500 (2.500)")
    pictures = sorted(found.name for found in tmp_path.glob("*.png"))
    assert pictures == ["gpu_campaign_0.png", "gpu_campaign_1.png"]
    assert all(f"({name})" in page for name in pictures)
