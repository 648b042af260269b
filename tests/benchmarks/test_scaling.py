import inspect
import math

import pytest

import tfeff
from tests.benchmarks.scripts import cells, refuses, run
from tfeff.layers.attention import Attention


@pytest.fixture(scope="module")
def scaling(load):
    return load("scaling.py")


@pytest.fixture(scope="module")
def attentions(load):
    return load("attentions.py")


def row(attention, length, seconds, temporary=1_000_000):
    return dict(
        hidden_dim="768",
        num_heads="12",
        attention=attention,
        length=str(length),
        seconds=seconds,
        temporary=temporary,
        flops=1,
    )


@pytest.mark.parametrize("power", [1, 2, 1.5])
def test_exponent(scaling, power):
    points = {length: 3e-4 * length**power for length in (128, 256, 512, 1024)}
    points[128] *= 10  # Three octaves before the last: it does not count.
    assert scaling["exponent"](points) == pytest.approx(power, abs=1e-12)


def test_exponent_of_too_few(scaling):
    assert scaling["exponent"]({512: 1.0}) is None
    assert scaling["exponent"]({}) is None
    assert scaling["exponent"]({128: 1.0, 4096: 2.0}) is None


def test_head_blocks(attentions):
    head_blocks = attentions["head_blocks"]
    assert head_blocks(12, 1) == [12]
    assert head_blocks(12, 2) == [10, 2]
    assert head_blocks(12, 3) == [8, 2, 2]
    assert head_blocks(12, 5) == [8, 2, 2, 0, 0]


@pytest.mark.parametrize("length", [100, 128, 300, 4096])
def test_blocks_keep_their_size(scaling, length):
    layer = scaling["attentions"](12, length)["blockwise"]()
    assert len(layer.head_blocks) == math.ceil(length / scaling["BLOCK"])


def test_every_attention_is_there(scaling, attentions):
    layers = [make() for make in scaling["attentions"](12, 128).values()]
    made = {type(layer) for layer in layers}
    public = vars(tfeff.layers)
    assert made == {
        public[name]
        for name in tfeff.layers.__all__
        if inspect.isclass(public[name]) and issubclass(public[name], Attention)
    }
    methods = {layer.method for layer in layers if hasattr(layer, "method")}
    assert methods == set(attentions["RELATIVE"])
    assert set(scaling["LINEAR"]) < set(scaling["attentions"](12, 128))


def test_table(scaling):
    rows = [row("self", n, str(n * n * 1e-6), n * n) for n in (1000, 2000, 4000)]
    rows += [row("blockwise", n, str(n * 1e-5), 2000 * n) for n in (1000, 2000, 4000)]
    rows += [row("huang3", 4000, "", 10**9), row("huang3", 2000, "1.5", 10**9)]
    assert [cells(line) for line in scaling["table"](rows, "seconds")] == [
        ["ms", "1000", "2000", "4000", "exponent", "goal", "/ self at 4000"],
        ["---"] * 7,
        ["self", "1000.0", "4000.0", "16000.0", "2.00", "", "1.000"],
        ["blockwise", "10.0", "20.0", "40.0", "1.00", "1", "0.003"],
        ["huang3", "–", "1500.0", "–", "–", "", "–"],
    ]
    assert [cells(line) for line in scaling["table"](rows, "temporary")[2:]] == [
        ["self", "1.0", "4.0", "16.0", "2.00", "", "1.000"],
        ["blockwise", "2.0", "4.0", "8.0", "1.00", "1", "0.500"],
        ["huang3", "–", "1000.0", "1000.0", "0.00", "", "62.500"],
    ]


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--lengths=128,0", "above 0"),
        ("--hidden_dim=100", "divide"),
        ("--attentions=self,other", "must be among"),
    ],
)
def test_bad_flags(flag, message, tmp_path):
    pytest.importorskip("jax", reason="jax is not installed (extra tpu)")
    refuses("scaling.py", flag, message, tmp_path)


def test_each_attention_is_drawn_once(scaling):
    drawn = [name for names in scaling["FAMILIES"].values() for name in names]
    known = scaling["attentions"](4, 128)
    assert sorted([scaling["REFERENCE"], *drawn]) == sorted(known)
    assert set(scaling["TITLES"]) == set(known)


@pytest.mark.slow
def test_end_to_end(scaling, tmp_path):
    pytest.importorskip("jax", reason="jax is not installed (extra tpu)")
    sizes = ["--hidden_dim=16", "--num_heads=4", "--rounds=1", f"--results={tmp_path}"]
    names = "--attentions=self,dynamic_conv"
    first = run("scaling.py", *sizes, names, "--lengths=8", "--memory_limit=0")
    assert first.returncode == 0
    (one, other) = scaling["read"](str(tmp_path / "scaling.csv"))
    assert one["seconds"] == other["seconds"] == ""
    assert int(one["temporary"]) > 0
    result = run("scaling.py", *sizes, names, "--lengths=16,8")
    assert result.returncode == 0, result.stderr
    rows = scaling["read"](str(tmp_path / "scaling.csv"))
    assert rows[:2] == [one, other]  # Not made again.
    assert [(row["attention"], row["length"]) for row in rows[2:]] == [
        ("self", "16"),
        ("dynamic_conv", "16"),
    ]
    assert all(float(row["seconds"]) > 0 for row in rows[2:])
    assert (tmp_path / "scaling_16_4.png").exists()
    assert "Width 16, 4 heads" in (tmp_path / "scaling.md").read_text()
