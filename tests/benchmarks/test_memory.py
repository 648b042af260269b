import pytest

from tests.benchmarks.scripts import FOLDER, cells, refuses, run

# Bytes a layer of every pair of positions, as `made_rows` makes them.
PARTS = {"bert_base": 6, "blockbert_n2_base": 3, "blockbert_n3_base": 2}


@pytest.fixture(scope="module")
def memory(load):
    return load("memory_report.py")


def row(preset, layers, batch_size, length, temporary, held=0, target="cpu"):
    values = (target, preset, layers, batch_size, length, temporary, held)
    names = ("target", "preset", "layers", "batch_size", "length", "temporary", "held")
    return dict(zip(names, map(str, values)))


def made_rows(lengths=(128, 256, 512, 1024, 2048)):
    """Bytes that are exactly a base, a part in N and a part in N² a layer."""
    return [
        row(
            preset,
            layers,
            4096 // length,
            length,
            10**8 + layers * 4096 * (1000 + part * length),
            10**7 + layers * 4096 * (500 + 2 * part * length),
        )
        for preset, part in PARTS.items()
        for length in lengths
        for layers in (2, 4)
    ]


def test_depths(memory):
    assert memory["a_layer"]({2: 100, 4: 130}) == 15
    assert memory["at_depth"]({2: 100, 4: 130}) == 250
    assert memory["at_depth"]({4: 130, 2: 100}) == 250
    with pytest.raises(ValueError, match="two depths"):
        memory["a_layer"]({2: 100})


def test_depths_of_counted_rows(memory):
    rows = [row("bert_base", 2, 4, 512, "", 7), row("bert_base", 4, 4, 512, 9, 8)]
    key = ("cpu", "bert_base", 4, 512)
    assert memory["by_depth"](rows, "temporary") == {key: {4: 9}}
    assert memory["by_depth"](rows, "held") == {key: {2: 7, 4: 8}}
    assert memory["complete"](rows, "temporary") == {}


@pytest.mark.parametrize(
    "kind, scale, rest", [("temporary", 1, 1000), ("held", 2, 500)]
)
def test_regression(memory, kind, scale, rest):
    table = memory["complete"](made_rows(), kind)
    for preset, part in PARTS.items():
        points = memory["points_of"](table, "cpu", preset, 4096)
        assert list(points) == [128, 256, 512, 1024, 2048]
        assert memory["split"](points) == pytest.approx(
            (4096 * part * scale, 4096 * rest), rel=1e-9
        )
    assert memory["points_of"](table, "v3:2x2", "bert_base", 4096) == {}
    assert memory["points_of"](table, "cpu", "bert_base", 1536) == {}


def test_regression_table(memory):
    lines = memory["regression_table"](made_rows(), "cpu", 4096)
    assert [cells(line) for line in lines[2:]] == [
        ["XLA", "bert_base", "0.05", "0.151", "1.0000", "1.0000", "4.83", "3.66"],
        ["XLA", "blockbert_n2_base", "0.05", "0.075", "0.5000", "0.5000", "4.84"]
        + ["1.83"],
        ["XLA", "blockbert_n3_base", "0.05", "0.050", "0.3333", "0.3333", "4.87"]
        + ["1.22"],
        ["held", "bert_base", "0.02", "0.302", "1.0000", "1.0000", "4.83", "3.66"],
        ["held", "blockbert_n2_base", "0.02", "0.151", "0.5000", "0.5000", "4.84"]
        + ["1.83"],
        ["held", "blockbert_n3_base", "0.02", "0.101", "0.3333", "0.3333", "4.87"]
        + ["1.22"],
    ]
    assert memory["regression_table"](made_rows(), "cpu", 1536) == []


def test_size_and_goal_tables(memory):
    rows = [
        row("bert_base", 2, 16, 512, 800_000_000, 300_000_000),
        row("bert_base", 4, 16, 512, 1_000_000_000, 500_000_000),
        row("shatter_base", 2, 16, 512, 600_000_000, 250_000_000),
        row("shatter_base", 4, 16, 512, 700_000_000, 400_000_000),
        row("shatter_base", 2, 16, 256, 250_000_000, 100_000_000),
        row("shatter_base", 4, 16, 256, 300_000_000, 200_000_000),
        row("shatter_base", 2, 4, 128, 1_000_000),
    ]
    assert [cells(line) for line in memory["size_table"](rows, "cpu")[2:]] == [
        ["bert_base", "16 × 512", "1.80", "1.000", "100", "1.000", "100", "1.000"],
        ["shatter_base", "16 × 512", "1.10", "0.611", "50", "0.500", "75", "0.750"],
        ["shatter_base", "16 × 256", "0.50", "", "25", "", "50", ""],
    ]
    goals = memory["goal_table"](rows, "cpu")
    assert [cells(line) for line in goals[2:]] == [
        ["shatter_base / bert_base", "0.611", "0.500", "0.750", "≤ 0.55", ""],
        ["shatter_base at 256 / bert_base", "0.278", "0.250", "0.500", "", "0.5"],
    ]
    assert memory["goal_table"](rows, "v3:2x2") == []


def test_parts_table(memory):
    rows = [
        row("bert_base", 2, 8, 512, 1_500_000_000),
        row("bert_base", 4, 8, 512, 2_000_000_000),
        row("bert_base", 2, 1, 1024, 1_000_000_000),
        row("bert_base", 4, 1, 1024, 1_000_000_000),
    ]
    names = ("preset", "layers", "positions", "model", "gradients", "optimizer")
    parts = [
        dict(zip(names, ("bert_base", layers, "512", model, model, twice)))
        for layers, model, twice in (
            ("2", "200000000", "400000000"),
            ("4", "300000000", "600000000"),
        )
    ]
    # At 12 layers: 0.7 of weights, 0.7 + 1.4 of gradients and moments, 4.0 - 0.7 left.
    assert [cells(line) for line in memory["parts_table"](rows, parts, "cpu")[3:]] == [
        ["bert_base", "8 × 512", "0.70", "2.10", "3.30", "6.10", "54.1%"]
        + ["0.21 / 1.03 / 8.49"]
    ]
    assert memory["parts_table"](rows, parts[:1], "cpu") == []
    assert memory["parts_table"](rows, parts, "v3:2x2") == []


def test_process_table(memory):
    rows = [row("bert_base", 2, 4, 512, 2_000_000_000)]
    names = ("backend", "preset", "layers", "batch_size", "length", "peak")
    process = [
        dict(zip(names, ("jax", "bert_base", "2", "4", "512", "2200000000"))),
        dict(zip(names, ("tensorflow", "bert_base", "2", "4", "512", "3000000000"))),
        dict(zip(names, ("tensorflow", "albert_base", "2", "4", "512", "1000000000"))),
    ]
    assert [cells(line) for line in memory["process_table"](rows, process)[3:]] == [
        ["bert_base", "2, 4 × 512", "2.00", "2.20", "1.100", "3.00", "1.500"],
        ["albert_base", "2, 4 × 512", "", "", "", "1.00", ""],
    ]


def test_plot(memory, tmp_path):
    path = tmp_path / "memory.png"
    assert not memory["plot"](made_rows((512,)), ["cpu"], str(path))
    assert not path.exists()
    assert memory["plot"](made_rows(), ["cpu"], str(path))
    assert path.stat().st_size


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--sizes=16", "sequences x tokens"),
        ("--sizes=0x16", "sequences x tokens"),
        ("--regression=100", "divisors of 4096"),
        ("--regression=many", "divisors of 4096"),
        ("--presets=bert_vast", "must be among"),
    ],
)
def test_bad_flags(flag, message, tmp_path):
    pytest.importorskip("jax", reason="jax is not installed (extra tpu)")
    refuses("memory.py", flag, message, tmp_path)


def test_the_peak_is_that_of_the_process_itself(tmp_path):
    """Not of what started it: this process, with TensorFlow, has more."""
    script = tmp_path / "peak.py"
    script.write_text(f"""
import sys
sys.path.insert(0, {str(FOLDER)!r})
import memory
before = memory.resident()
filled = b"1" * 50_000_000
print(memory.resident("VmHWM") - before, memory.resident("VmHWM"))
""")
    result = run(script)
    assert result.returncode == 0, result.stderr
    grown, peak = map(int, result.stdout.split())
    # The kernel counts pages in batches.
    assert 45e6 < grown < 60e6
    assert peak < 250e6


@pytest.mark.slow
def test_end_to_end(memory, tmp_path):
    pytest.importorskip("jax", reason="jax is not installed (extra tpu)")
    flags = ["--presets=bert_tiny", "--sizes=2x24", "--layers=1", "--process=2x16"]
    flags += ["--regression=", f"--results={tmp_path}"]
    result = run("memory.py", *flags)
    assert result.returncode == 0, result.stderr
    rows = memory["read"](str(tmp_path / "memory.csv"))
    assert [(row["layers"], row["length"]) for row in rows] == [
        ("1", "24"),
        ("1", "16"),
        ("2", "24"),
        ("2", "16"),
    ]
    held = {(int(row["layers"]), int(row["length"])): int(row["held"]) for row in rows}
    # Scores, one [2, 2, T, T] in a block, are the part in T²: with what is linear in
    # T taken from another length, the difference of two depths shows them.
    assert held[2, 24] > held[1, 24] > held[1, 16]
    assert all(int(row["temporary"]) > int(row["held"]) / 2 for row in rows)
    peaks = memory["read"](str(tmp_path / "memory_process.csv"))
    assert [row["backend"] for row in peaks] == ["jax", "tensorflow"]
    before = (tmp_path / "memory.csv").read_text()
    assert run("memory.py", *flags).returncode == 0
    assert (tmp_path / "memory.csv").read_text() == before
    assert "bert_tiny | 2 × 24" in (tmp_path / "memory.md").read_text()


@pytest.mark.slow
def test_held_bytes_of_blocks(tmp_path):
    """The part in N² of n blocks is exactly 1/n of that of one."""
    pytest.importorskip("jax", reason="jax is not installed (extra tpu)")
    program = f"""
import os, sys
os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
sys.path.insert(0, {str(FOLDER)!r})
import memory, steps, tfeff
for blocks in ("4", "3:1", "2:1:1"):
    bytes_of = []
    for layers in (1, 2):
        for batch_size, length in ((4, 12), (2, 24), (1, 48)):
            encoder = tfeff.encoders.build(
                "bert_tiny", vocabulary_size=50, num_layers=layers, num_heads=4,
                hidden_dim=16, dropout=0.0,
                attention=dict(name="blockwise", head_blocks=blocks),
            )
            model = tfeff.objectives.MaskedLM(encoder)
            batch = steps.make_batch(batch_size, length)
            bytes_of.append(memory.held_bytes(model, batch))
    print(*(two - one for one, two in zip(bytes_of[:3], bytes_of[3:])))
"""
    script = tmp_path / "held.py"
    script.write_text(program)
    result = run(script)
    assert result.returncode == 0, result.stderr
    by_blocks = [list(map(int, line.split())) for line in result.stdout.splitlines()]
    # Scores of 4 heads in float32 at 48 tokens in all: 4 · 4 · 48 · N / n bytes; and a
    # byte for each head and block of 4, 2 and 1 sequences: whether it sees a key.
    for blocks, (first, second, third) in zip((1, 2, 3), by_blocks, strict=True):
        assert second - first == 4 * 4 * 48 * 12 // blocks + 4 * blocks * (2 - 4)
        assert third - second == 4 * 4 * 48 * 24 // blocks + 4 * blocks * (1 - 2)
