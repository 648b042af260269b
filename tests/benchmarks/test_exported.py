import pytest
from absl import app, flags
from absl.testing import flagsaver

from tests.benchmarks.scripts import cells

SMALL = (
    "--environment=default",
    "--layers=1",
    "--lengths=8",
    "--batch_sizes=2",
    "--width=24",
    "--vocabulary=30",
    "--rounds=2",
)


@pytest.fixture(scope="module")
def exported(load):
    return load("exported.py")


@pytest.fixture
def parsed(exported):
    with flagsaver.flagsaver():
        yield lambda *args: flags.FLAGS(["exported.py", *args])


def row(contender, mode, seconds, left_out=""):
    return dict(contender=contender, mode=mode, seconds=seconds, left_out=left_out)


ROWS = [
    row("tfeff:bert_base", "SavedModel", "1 1"),
    row("tfeff:bert_base", "ONNX Runtime", "2 2"),
    row("tfeff:bert_base", "LiteRT", "", "RuntimeError: no | such operation"),
    row("tfeff:shatter_base", "ONNX Runtime", "3 3"),
    row("hugging_face:bert", "ONNX Runtime", "4 4"),
    row("hugging_face:bert", "PyTorch, sdpa", "2 2"),
    row("keras_hub:bert", "", "", "ImportError: no keras_hub"),
]


def test_ratios_are_to_the_usual_export_and_to_the_fastest_peer(exported):
    lines = exported["summary"](ROWS)
    usual = "/ hugging_face:bert by ONNX Runtime: "
    best = "/ the fastest peer (hugging_face:bert, PyTorch, sdpa): "
    assert lines == [
        f"- tfeff:bert_base by ONNX Runtime {usual}**0.500 (0.500–0.500)**, goal ≤ 1.0",
        f"- tfeff:bert_base at its best (SavedModel) {best}0.500 (0.500–0.500)",
        f"- tfeff:shatter_base by ONNX Runtime {usual}**0.750 (0.750–0.750)**, "
        "goal ≤ 1.0",
        f"- tfeff:shatter_base at its best (ONNX Runtime) {best}1.500 (1.500–1.500)",
    ]
    table = exported["table"](ROWS)
    assert table[:4] == lines
    assert cells(table[7]) == [
        "tfeff:bert_base",
        "SavedModel",
        "1000.00 (1000.00–1000.00)",
        "",
    ]
    assert "| tfeff:bert_base | LiteRT |  | RuntimeError: no \\| such" in table[9]
    alone = exported["summary"](ROWS[:4])  # Without peers nothing is compared.
    assert alone == []


def test_plan(exported, parsed):
    parsed("--cases=bert", "--layers=2", "--lengths=32,128", "--batch_sizes=1,8")
    comparisons = [tuple(c.values()) for c in exported["plan"]()]
    assert comparisons == [
        ("bert", "2", length, size) for length in ("32", "128") for size in ("1", "8")
    ]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--cases=brt"], "--cases must be among .*Received: brt"),
        (["--lengths=-8"], "--lengths must be integers. Received: -8"),
        (["--batch_sizes=0"], "--batch_sizes must be integers. Received: 0"),
        (["--width=100"], "--width must be a multiple of 12. Received: 100"),
    ],
)
def test_bad_flags(exported, parsed, tmp_path, arguments, message):
    results = tmp_path / "results"
    parsed(*arguments, "--environment=default", f"--results={results}")
    with pytest.raises(app.UsageError, match=message):
        exported["main"]([])
    assert not results.exists()


def test_inputs_are_told_by_their_names(exported):
    import runtimes

    batch = dict(token_ids="ids", segment_ids="segments", padding_mask="mask")
    for name in ("token_ids", "input_ids", "serving_default_token_ids:0"):
        assert runtimes._of(name, batch) == "ids"
    for name in ("segment_ids", "token_type_ids", "serve_segment_ids:0"):
        assert runtimes._of(name, batch) == "segments"
    for name in ("padding_mask", "attention_mask"):
        assert runtimes._of(name, batch) == "mask"


@pytest.mark.slow
def test_a_tiny_run(exported, parsed, tmp_path):
    parsed("--cases=bert", *SMALL, f"--results={tmp_path}")
    exported["main"]([])
    path = tmp_path / "exported.csv"
    rows = exported["read"](path)
    assert {row["contender"] for row in rows} == {
        *("tfeff:bert_base", "tfeff:shatter_base", "hugging_face:bert"),
        "keras_hub:bert",
    }
    for row in rows:
        assert row["left_out"] or len(row["seconds"].split()) == 2
    ran = {(row["contender"], row["mode"]) for row in rows if row["seconds"]}
    for name in ("tfeff:bert_base", "tfeff:shatter_base"):
        assert (name, "SavedModel") in ran
    report = (tmp_path / "exported.md").read_text(encoding="utf-8")
    assert "## case bert, layers 1, length 8, batch_size 2" in report
    size = path.stat().st_size
    exported["main"]([])  # Nothing is left to do.
    assert path.stat().st_size == size


@pytest.mark.slow
def test_every_runtime_gives_what_the_encoder_does(exported, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("tf2onnx")
    import keras
    import numpy as np
    import peers
    from peers.keras3 import exports, hidden_states
    from peers.tfeff import build

    sizes = peers.Sizes(2, 24, 30, length=16, batch_size=2, dropout=0.0)
    batch = peers.make_batch(sizes)
    model = hidden_states(build("bert_base", sizes))
    inputs = {name: keras.ops.convert_to_tensor(batch[name]) for name in model.input}
    expected = np.array(model(inputs)["sequence_output"])
    found = {}
    for mode, load in exports(lambda: model, sizes, str(tmp_path)).items():
        try:
            found[mode] = load()(batch)()
        except RuntimeError as error:
            assert mode == "LiteRT" and "Select TensorFlow op" in str(error)
    assert {"SavedModel", "ONNX Runtime"} <= set(found)
    for states in found.values():
        np.testing.assert_allclose(states, expected, atol=2e-5)
