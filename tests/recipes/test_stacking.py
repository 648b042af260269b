"""`tfeff stack` as a user runs it."""

import csv
import dataclasses
import json
import subprocess
import sys

import pytest

import tfeff
from tests.subjects.recipes import ENVIRONMENT, SMALL
from tfeff.command import flags
from tfeff.recipes import runs, stacking

STAGES = ("--num_layers=4", "--doublings=2")


def run(run_dir, *flags):
    return subprocess.run(
        [
            *(sys.executable, "-m", "tfeff", "stack"),
            f"--run_dir={run_dir}",
            *SMALL,
            *flags,
        ],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_from_one_layer_to_four(corpus, tmp_path):
    run_dir = tmp_path / "run"
    flags = (*STAGES, f"--corpus={corpus}")
    result = run(run_dir, *flags)
    assert result.returncode == 0, result.stderr
    with open(run_dir / "metrics.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["num_layers"] for row in rows] == ["1", "2", "4"]
    metrics = json.loads((run_dir / "metrics.json").read_text())
    assert metrics["loss"] == pytest.approx(float(rows[-1]["val_loss"]), abs=1e-4)
    encoder, tokenizer = tfeff.tasks.load_pretrained(run_dir)
    assert encoder.num_layers == 4 and tokenizer.vocabulary_size() == 400
    assert (run_dir / "export" / "1").exists()
    again = run(run_dir, *flags)
    assert again.returncode == 0, again.stderr
    other = run(run_dir, *flags, "--switch_steps=3,6")
    assert other.returncode != 0
    assert "switch_steps: there None, now [3, 6]" in other.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--num_layers=6", "--doublings=2"], "multiple of 2"),
        ([*STAGES, "--switch_steps=3"], "one for each"),
        ([*STAGES, "--switch_steps=3,six"], "integers"),
        ([*STAGES, "--optimizer=new"], "`optimizer`"),
    ],
)
def test_bad_flags_leave_no_folder(tmp_path, flags, message):
    result = run(tmp_path / "run", *flags)
    assert result.returncode != 0
    assert message in result.stderr + result.stdout
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "albert_base"}, r"`preset` must have weights of its own in each"),
        ({"override": {"sharing": "all"}}, r"`preset` must have weights of its own"),
        (
            {"override": {"sharing": "all", "sharing_group_size": 4}},
            r"divide `num_layers / 2\*\*doublings`. .* num_layers / 2\*\*doublings=2",
        ),
        (
            {
                "objective": "replaced_token",
                "generator_override": {"num_layers": 2},
            },
            "`generator_override` must leave out num_layers: the generator grows",
        ),
    ],
)
def test_models_that_cannot_grow_leave_no_folder(tmp_path, changes, message):
    sizes = dict(hidden_dim=8, intermediate_dim=8, num_heads=2)
    settings = tfeff.recipes.StackSettings(
        run_dir=str(tmp_path / "run"),
        num_layers=4,
        steps=2,
        **changes | {"override": {**sizes, **changes.get("override", {})}},
    )
    with pytest.raises(ValueError, match=message):
        tfeff.recipes.stack(settings)
    assert not (tmp_path / "run").exists()


def test_there_is_no_encoder_to_begin_with():
    settings = tfeff.recipes.StackSettings(run_dir="run")
    for name in ("pretrained", "swap_positions"):
        assert f"\n  --{name}=" not in flags.usage("stack", type(settings))
        message = f"Unknown command line flag '{name}'. It is a setting of other com"
        with pytest.raises(ValueError, match=message):
            flags.parse(type(settings), ["--run_dir=run", f"--{name}=huang4"])
        with pytest.raises(ValueError, match=f"of another command.*has no {name}"):
            runs.upgraded(type(settings), "run", {**settings.config(), name: None})
    with pytest.raises(ValueError, match="`config` must be of a training that begins"):
        type(settings).named("convbert_small_512", run_dir="run")


@pytest.mark.parametrize(
    ("given", "num_layers"),
    [
        ({}, 4),
        ({"num_layers": 6, "preset": "bert_base"}, 6),
        ({"preset": "bert_base"}, 12),
        ({"preset": "shatter_tiny"}, 2),
        ({"config": "bert_large"}, 24),
    ],
)
def test_the_depth_is_the_presets_where_one_is_named(monkeypatch, given, num_layers):
    command = [f"--{name}={value}" for name, value in given.items()]
    settings = flags.parse(tfeff.recipes.StackSettings, ["--run_dir=run", *command])
    trained = []
    monkeypatch.setattr(stacking, "run_pretraining", lambda *args: trained.extend(args))
    tfeff.recipes.stack(settings)
    assert trained[0].num_layers == num_layers
    assert trained[0].preset == given.get("preset", settings.preset or "shatter_tiny")
    assert trained[2].keywords["num_layers"] == num_layers
    given = dict(doublings=2, steps=90, eval_every=3, switch_steps=(3, 9))
    trained.clear()
    tfeff.recipes.stack(
        tfeff.recipes.StackSettings(
            run_dir="run", num_layers=4, optimizer="reset", **given
        )
    )
    assert trained[2].keywords == dict(
        num_layers=4, switch_steps=[3, 9], optimizer="reset"
    )
    unknown = dataclasses.replace(settings, preset="bert_bas", num_layers=None)
    with pytest.raises(ValueError, match="`preset` must be one of.*Did you mean"):
        tfeff.recipes.stack(unknown)


def test_each_stage_has_an_evaluation(tmp_path):
    settings = tfeff.recipes.StackSettings(
        run_dir=str(tmp_path / "run"), num_layers=4, doublings=2, steps=4, eval_every=2
    )
    with pytest.raises(ValueError, match="`eval_every` must leave an evaluation"):
        tfeff.recipes.stack(settings)
    assert not (tmp_path / "run").exists()
