import dataclasses

import numpy as np
import pytest
from absl import app, flags
from absl.testing import flagsaver

from tests.benchmarks.scripts import cells


@pytest.fixture(scope="module")
def int8(load):
    return load("int8.py")


@pytest.fixture
def parsed(int8):
    with flagsaver.flagsaver():
        yield lambda *args: flags.FLAGS(["int8.py", "--runs=runs", *args])


def row(variant, seconds, left_out="", size="2000000"):
    return dict(
        variant=variant,
        bytes="" if left_out else size,
        accuracy="" if left_out else "0.7500",
        same="" if left_out else "0.9900",
        seconds=seconds,
        left_out=left_out,
    )


def test_ratios_are_to_the_file_that_was_quantized(int8):
    lines = int8["table"](
        [
            row("ONNX, float32", "4 4"),
            row("ONNX, int8 by `quantize_dynamic`", "1 1", size="600000"),
            row("LiteRT, float32", "2 2"),
            row("LiteRT, int8 of dynamic range", "3 3"),
            row("LiteRT, int8 throughout", "", "RuntimeError: no | such"),
        ]
    )
    found = [cells(line) for line in lines[2:6]]
    assert [line[5] for line in found] == [
        "",
        "0.250 (0.250–0.250)",
        "",
        "1.500 (1.500–1.500)",
    ]
    assert found[1][1] == "0.6" and found[0][4] == "4000.00 (4000.00–4000.00)"
    assert lines[6].endswith("RuntimeError: no \\| such |")


def test_a_missing_float_file_has_no_ratio(int8):
    lines = int8["table"]([row("ONNX, float32", "", "x"), row("ONNX, int8", "1 1")])
    assert cells(lines[3])[5] == ""


def test_predictions_are_of_all_rows_in_order(int8):
    inputs = {"token_ids": np.arange(70)[:, None], "padding_mask": np.ones((70, 1))}

    def runner(batch):
        odd = batch["token_ids"] % 2
        return lambda: np.concatenate([1 - odd, odd], axis=1)

    for size in (None, 1):
        found = int8["predict"](runner, inputs, size)
        np.testing.assert_array_equal(found, np.arange(70) % 2)
    with pytest.raises(ArithmeticError, match="not finite"):
        int8["predict"](lambda batch: lambda: np.full((1, 2), np.nan), inputs, 1)


def test_bad_flags(int8, parsed, tmp_path):
    parsed(f"--data={tmp_path}", f"--runs={tmp_path / 'runs'}")
    with pytest.raises(app.UsageError, match="holds no glue/SST-2/dev.tsv"):
        int8["main"]([])
    assert not (tmp_path / "runs").exists()


def test_every_variant_has_a_file_and_one_before_it(int8, parsed, tmp_path):
    parsed()
    made = int8["variants"](None, {}, str(tmp_path))
    names = [variant.name for variant in made]
    assert len(set(names)) == len({v.file for v in made}) == len(made) == 5
    for index, variant in enumerate(made):
        assert variant.before in names[: index + 1]
    assert all(dataclasses.is_dataclass(variant) for variant in made)


@pytest.mark.slow
def test_a_tiny_run(int8, parsed, tmp_path, monkeypatch):
    """A model of two words, trained by the recipes and quantized."""
    import environment

    # Else the program would start anew.
    monkeypatch.setattr(environment, "ensure", lambda: None)
    (tmp_path / "data" / "text").mkdir(parents=True)
    (tmp_path / "data" / "glue" / "SST-2").mkdir(parents=True)
    words = ["the", "film", "was", "very", "good", "or", "quite", "bad", "at", "last"]
    source = np.random.default_rng(0)
    texts = [" ".join(source.choice(words, 9)) for _ in range(400)]
    for name in ("a.txt", "ptb_sample.txt"):
        (tmp_path / "data" / "text" / name).write_text("\n\n".join(texts))
    lines = [f"{text}\t{int('good' in text)}" for text in texts]
    for split, part in (("train", lines[:300]), ("dev", lines[300:])):
        path = tmp_path / "data" / "glue" / "SST-2" / f"{split}.tsv"
        path.write_text("\n".join(["sentence\tlabel", *part]) + "\n")
    parsed(
        "--presets=bert_base",
        "--override=num_layers=1",
        "--override=hidden_dim=16",
        "--override=num_heads=2",
        "--steps=10",
        "--task_steps=4",
        "--length=12",
        "--dev_examples=20",
        "--ranges=4",
        "--rounds=2",
        "--vocabulary_size=30",
        f"--data={tmp_path / 'data'}",
        f"--runs={tmp_path / 'runs'}",
        f"--results={tmp_path}",
    )
    int8["main"]([])
    rows = int8["read"](tmp_path / "int8.csv")
    assert len(rows) == 5
    for row in rows:
        assert row["left_out"] or len(row["seconds"].split()) == 2
        assert row["left_out"] or 0 <= float(row["accuracy"]) <= 1
    report = (tmp_path / "int8.md").read_text(encoding="utf-8")
    assert "## preset bert_base, steps 10, task_steps 4" in report
    int8["main"]([])  # Nothing is left to do.
    assert int8["read"](tmp_path / "int8.csv") == rows
