import pytest
from absl import app, flags
from absl.testing import flagsaver

from tests.benchmarks.scripts import FOLDER
from tfeff.command.main import COMMANDS


@pytest.fixture(scope="module")
def recipes(load):
    return load("recipes.py")


@pytest.fixture
def parsed(recipes):
    with flagsaver.flagsaver():
        yield lambda *args: flags.FLAGS(["recipes.py", "--runs=runs", *args])


def test_every_run_has_its_place_and_its_sources(recipes, parsed, tmp_path):
    parsed(f"--data={tmp_path}", "--seeds=3,4")
    jobs = list(recipes["jobs"]())
    folders = [job.folder for job in jobs]
    assert len(set(folders)) == len(folders)
    for index, job in enumerate(jobs):
        script = FOLDER.parent / "examples" / job.script
        assert script.exists() or job.script in COMMANDS
        for source in job.sources:
            # Made before, by the very same command.
            assert source.command in [earlier.command for earlier in jobs[:index]]
            assert any(source.folder in flag for flag in job.arguments)
    glue = [job for job in jobs if job.stage == "glue"]
    assert len(glue) == 2 * len(recipes["SYSTEMS"]) * len(recipes["GLUE"])


def test_stacking_costs_what_its_rival_does(recipes, parsed, tmp_path):
    parsed(f"--data={tmp_path}", "--steps=300")
    (stacked,) = recipes["stack"]("0")
    flags_of = dict(flag.split("=", 1) for flag in stacked.arguments)
    switch, steps = int(flags_of["--switch_steps"]), int(flags_of["--steps"])
    assert 2 * switch + 4 * (steps - switch) == 4 * 300


def test_tables(recipes):
    values = [("a", "CoLA", "0", ""), ("a", "CoLA", "1", "0.1"), ("b", "RTE", "0", "1")]
    rows = [
        {"system": system, "task": task, "seed": seed, "metric": "m", "value": value}
        for system, task, seed, value in values
    ]
    assert recipes["table"](rows) == [
        "| system | CoLA m | RTE m |",
        "|---|---|---|",
        "| a | – (undefined, 0.100) |  |",
        "| b |  | 1.000 (1.000) |",
    ]


def test_bad_flags(recipes, parsed, tmp_path):
    parsed(f"--data={tmp_path}", "--stages=glue,steal")
    with pytest.raises(app.UsageError, match="--stages must be among .*steal"):
        recipes["main"]([])
    parsed(f"--data={tmp_path}", "--stages=glue", f"--runs={tmp_path / 'runs'}")
    with pytest.raises(app.UsageError, match="holds no text/ptb_sample.txt"):
        recipes["main"]([])
    assert not (tmp_path / "runs").exists()
