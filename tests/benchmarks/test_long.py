import pytest
from absl import flags
from absl.testing import flagsaver

import tfeff
from tests.benchmarks.scripts import cells, refuses, run
from tfeff.layers.scored_attention import ScoredAttention

CASE = dict(machine="some processor", width="768", task="train")
SIZES = (512, 1024, 2048, 4096, 8192, 16384)


@pytest.fixture(scope="module")
def script(load):
    """The program, loaded once: it defines its flags."""
    return load("long.py")


@pytest.fixture(scope="module")
def report(load):
    return load("long_report.py")


def memory_rows(way, attention, lengths, bytes_of):
    row = CASE | {"attention": attention, "way": way}
    return [row | {"length": str(n), "temporary": str(bytes_of(n))} for n in lengths]


def time_row(contender, way, seconds, left_out="", attention="shatter"):
    case = CASE | {"attention": attention, "length": "4096"}
    row = dict(contender=contender, way=way, seconds=seconds, left_out=left_out)
    return case | row | {"note": "Two at once."}


def test_every_attention_that_scores_pairs(script, load):
    names = script["SCORED"]
    makers = load("attentions.py")["attentions"](12, 512)
    assert len(set(names)) == len(names)
    scored = {
        name
        for name, make in makers.items()
        if isinstance(make(), ScoredAttention)
        and not isinstance(
            make(), (tfeff.layers.BlockwiseAttention, tfeff.layers.MixedAttention)
        )
    }
    assert set(names) == scored


def test_memory_tables(report):
    rows = memory_rows("whole", "self", SIZES[:4], lambda n: 10 * n * n)
    rows += memory_rows("whole", "shatter", SIZES[:4], lambda n: 10 * n * n)
    rows += memory_rows("blocks of 128", "self", SIZES, lambda n: 4096 * n)
    rows += memory_rows("blocks of 128", "shatter", SIZES, lambda n: n * n)
    rows += memory_rows("blocks of 128", "rpe", SIZES[4:], lambda n: 10**6 * n)
    tables = [
        [cells(line) for line in lines.splitlines() if line.startswith("|")]
        for lines in "\n".join(report["memory_tables"](rows, "train")).split("###")[1:]
    ]
    whole, blocks = tables
    assert whole[0] == ["MB", *map(str, SIZES), "exponent"]
    assert whole[2] == ["self", "2.6", "10.5", "41.9", "167.8", "–", "–", "2.00"]
    assert blocks[0] == ["MB", *map(str, SIZES), "exponent", "/ whole at 4096"]
    assert blocks[2][-2:] == ["1.00", "0.10"]
    assert blocks[3][-2:] == ["2.00 *", "0.10"]
    assert blocks[4] == ["rpe", *4 * "–", "8192.0", "16384.0", "1.00", "–"]


def test_the_exponent_is_that_of_the_last_three_octaves(report):
    rows = memory_rows("blocks of 128", "self", SIZES, lambda n: n * max(n, 2048))
    rows[0]["temporary"] = rows[1]["temporary"] = "1"
    (line,) = [x for x in report["memory_tables"](rows, "train") if "| self" in x]
    assert cells(line)[-2] == "2.00 *"


def test_goals(report):
    judged = report["judged"]
    assert judged(None) == "–"
    assert judged(0.1) == judged(0.104) == "0.10"
    assert judged(0.106) == "0.11 *"
    assert judged(1.1, 1.1) == "1.10"
    assert judged(2.0, 1.1, has_goal=False) == "2.00"


def test_time_table(report):
    peer = report["PEER"]
    rows = [
        time_row("shatter", "whole", "4 8"),
        time_row("shatter", "blocks of 128", "2 2"),
        time_row("self", "whole", "1 2"),
        time_row(peer, "", "", "ImportError: no | torch"),
    ]
    table = report["time_table"](rows, "train")
    assert table[-2:] == ["", "Two at once.\n"]
    assert [cells(line) for line in table[3:-2]] == [
        ["shatter", "4096", "whole", "6000.0", "1", "4.00 (4.00–4.00)", "", ""],
        ["shatter", "4096", "blocks of 128", "2000.0", "0.38 (0.31–0.44)"]
        + ["1.50 (1.25–1.75)", "", ""],
        ["self", "4096", "whole", "1500.0", "0.25 (0.25–0.25)", "1", "", ""],
        [peer, "4096", "", "", "", "", "", "ImportError: no \\", "torch"],
    ]


def test_long_sequences_do_not_go_whole(script):
    with flagsaver.flagsaver():
        flags.FLAGS(["long.py", "--whole_limit=1024"])
        assert script["ways"](1024) == list(script["WAYS"])
        assert script["ways"](1025) == [*script["WAYS"]][1:]


@pytest.mark.parametrize(
    "flag, message",
    [
        ("--lengths=128,0", "above 0"),
        ("--width=100", "multiple of 24"),
        ("--attentions=self,blockwise", "must be among"),
    ],
)
def test_bad_flags(flag, message, tmp_path):
    refuses("long.py", flag, message, tmp_path)


@pytest.mark.slow
def test_end_to_end(report, tmp_path):
    pytest.importorskip("jax", reason="jax is not installed (extra tpu)")
    flags = ["--quick", "--attentions=self,shatter", "--tasks=train"]
    result = run("long.py", *flags, f"--results={tmp_path}")
    assert result.returncode == 0, result.stderr
    rows = report["read"](str(tmp_path / "long.csv"))
    ways = ["whole", "blocks of 128", "blocks of 256", "near and far"]
    assert [(row["length"], row["attention"], row["way"]) for row in rows] == [
        (length, name, way)
        for length in ("256", "512")
        for name in ("self", "shatter")
        for way in ways
    ]
    assert all(int(row["temporary"]) > 0 for row in rows)
    times = report["read"](str(tmp_path / "long_times.csv"))
    contenders = [row["contender"] for row in times if row["length"] == "512"]
    peer = report["PEER"]
    assert contenders == [*4 * ["self"], peer, *4 * ["shatter"], "self", peer]
    for row in times:
        if row["contender"] == peer and row["left_out"]:
            assert row["left_out"].startswith("ModuleNotFoundError")
        else:
            assert len(row["seconds"].split()) == 2
    files = {path: path.read_text() for path in tmp_path.glob("*.csv")}
    assert run("long.py", *flags, f"--results={tmp_path}").returncode == 0
    assert files == {path: path.read_text() for path in tmp_path.glob("*.csv")}
    assert "### Time, train" in (tmp_path / "long.md").read_text()
