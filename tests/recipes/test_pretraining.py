"""`tfeff pretrain` as a user runs it: to the end, killed, and misused."""

import csv
import dataclasses
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tfeff
from tests.checks.replicas import two_replicas
from tests.subjects.files import flip_bit
from tests.subjects.recipes import ENVIRONMENT, SMALL
from tfeff.objectives import registry
from tfeff.recipes import PretrainSettings, corpora, pretraining, pretraining_model


def command(run_dir, *flags):
    return [sys.executable, "-m", "tfeff", "pretrain", f"--run_dir={run_dir}", *flags]


def run(run_dir, *flags):
    return subprocess.run(
        command(run_dir, *flags), env=ENVIRONMENT, capture_output=True, text=True
    )


def metrics(run_dir):
    with open(run_dir / "metrics.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    """The folder of a run that nothing interrupted, and what it printed."""
    run_dir = tmp_path_factory.mktemp("runs") / "whole"
    result = run(run_dir, *SMALL, f"--corpus={corpus}", "--plots")
    assert result.returncode == 0, result.stderr
    return run_dir, result


def test_a_run_from_text_to_a_served_model(finished):
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    run_dir, result = finished
    entropy = float(re.search(r"validation text: ([\d.]+) nats", result.stdout)[1])
    loss = float(re.search(r"validation loss: ([\d.]+) nats", result.stdout)[1])
    rows = metrics(run_dir)
    assert [row["step"] for row in rows] == ["3", "6", "9"]
    assert float(rows[-1]["val_loss"]) == pytest.approx(loss, abs=6e-4)
    assert 3 < entropy < 6 and 3 < loss < 6.2  # ln 400 = 5.99
    assert "step 9/9 loss" in result.stderr
    config = json.loads((run_dir / "config.json").read_text())
    assert config["preset"] == "shatter_tiny" and config["steps"] == 9
    final = json.loads((run_dir / "metrics.json").read_text())
    assert final["loss"] == pytest.approx(loss, abs=6e-4)
    encoder, _ = tfeff.tasks.load_pretrained(run_dir)
    assert encoder.hidden_dim == 16
    for name in ("tokenizer.spm", "cache", "checkpoints", "tensorboard", "export"):
        assert (run_dir / name).exists(), name
    pictures = [run_dir / "learning_curve.png", *(run_dir / "plots").iterdir()]
    assert len(pictures) == 7
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in pictures)
    served = tf.saved_model.load(str(run_dir / "export" / "1"))
    output = served.signatures["fill_mask"](text=tf.constant(["a [MASK] of a layer"]))
    assert output["fillings"].shape == (1, 1, 5)


@pytest.mark.slow
def test_a_run_that_was_killed_has_the_same_metrics(finished, corpus, tmp_path):
    run_dir = tmp_path / "killed"
    flags = (*SMALL, f"--corpus={corpus}")
    with subprocess.Popen(
        command(run_dir, *flags),
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        first = run_dir / "checkpoints" / "step-00000003.keras"
        while process.poll() is None and not first.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    assert first.exists()
    assert not (run_dir / "export").exists()
    result = run(run_dir, *flags)
    assert result.returncode == 0, result.stderr
    assert metrics(run_dir) == metrics(finished[0])


def test_a_flipped_byte_of_any_file_is_found_by_the_next_start(finished, tmp_path):
    run_dir = tmp_path / "run"
    shutil.copytree(finished[0], run_dir)
    config = json.loads((run_dir / "config.json").read_text())
    rng = random.Random(0)
    paths = [path for path in sorted(run_dir.rglob("*")) if path.is_file()]
    folders = {path.relative_to(run_dir).parts[0] for path in paths}
    assert {"cache", "checkpoints", "export", "preset", "tensorboard"} <= folders
    count = 0
    for path in paths:
        if path.name == "SHA256SUMS" and path.parent == run_dir:
            continue  # See `tests/training/test_damage.py`.
        size = path.stat().st_size
        for place in {0, size - 1, *(rng.randrange(size) for _ in range(6))}:
            bit = rng.randrange(8)
            flip_bit(path, place, bit)
            with pytest.raises(ValueError) as error:
                tfeff.training.RunDirectory(run_dir, config)
            assert str(path) in str(error.value) or path.name == "config.json"
            flip_bit(path, place, bit)
            count += 1
    assert count > 200
    tfeff.training.RunDirectory(run_dir, config).close()


@pytest.mark.slow
def test_signals_end_a_run_with_one_line_and_a_checkpoint(corpus, tmp_path):
    flags = (*SMALL, f"--corpus={corpus}", "--steps=3000")
    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        before = set(tmp_path.glob("run/checkpoints/*"))
        with subprocess.Popen(
            command(tmp_path / "run", *flags),
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while process.poll() is None:
                if set(tmp_path.glob("run/checkpoints/*")) - before:
                    process.send_signal(number)
                    break
                time.sleep(0.01)
            errors = process.stderr.read()
        assert process.returncode == status, errors
        name = signal.Signals(number).name
        assert (
            errors.count(f"Ended by {name}. To go on with a run, start it again with")
            == 1
        )
        assert "Traceback" not in errors
        assert not (tmp_path / "run" / "run.lock").exists()
        steps = [row["step"] for row in metrics(tmp_path / "run")]
        assert steps == [str(step) for step in range(3, 3 * len(steps) + 1, 3)]


@pytest.mark.slow
def test_the_default_corpus_is_enough_for_the_default_vocabulary():
    defaults = PretrainSettings(run_dir="run")
    train, _ = corpora.train_and_validation(defaults)
    tokenizer = corpora.train_tokenizer(train, defaults)
    assert tokenizer.vocabulary_size() == defaults.vocabulary_size == 32_000


@pytest.mark.slow
def test_signals_before_the_training_leave_nothing(tmp_path):
    for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        with subprocess.Popen(
            command(tmp_path / "run"),
            env=ENVIRONMENT,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while process.poll() is None:
                if (tmp_path / "run" / "config.json").exists():
                    process.send_signal(number)
                    break
                time.sleep(0.01)
            errors = process.stderr.read()
        assert process.returncode == status, errors
        assert "Ended by" in errors and "Traceback" not in errors
        assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_second_start_is_refused_at_once(corpus, tmp_path):
    holder = tfeff.training.RunDirectory(tmp_path / "run", {})
    result = run(tmp_path / "run", *SMALL, f"--corpus={corpus}")
    assert result.returncode == 1
    lines = [line for line in result.stderr.splitlines() if "cuInit" not in line]
    assert len(lines) == 1 and f"process {os.getpid()} on" in lines[0]
    assert sorted(os.listdir(holder.directory)) == ["config.json", "run.lock"]


@pytest.mark.slow
def test_other_flags_in_the_same_folder_are_refused(finished, corpus):
    before = metrics(finished[0])
    result = run(finished[0], *SMALL, f"--corpus={corpus}", "--seed=1")
    assert result.returncode != 0
    assert "seed: there 0, now 1" in result.stderr
    assert f"--pretrained={finished[0]}" in result.stderr
    assert metrics(finished[0]) == before


@pytest.mark.slow
def test_a_short_run_needs_no_other_flags_and_is_trained_further(corpus, tmp_path):
    flags = [flag for flag in SMALL if not flag.startswith(("--eval", "--warm"))]
    flags = [*flags, f"--corpus={corpus}", "--steps=6"]
    result = run(tmp_path / "first", *flags)
    assert result.returncode == 0, result.stderr
    config = json.loads((tmp_path / "first" / "config.json").read_text())
    assert (config["eval_every"], config["warmup_steps"]) == (6, 1)
    assert config["pretrained"] is None

    more = (f"--pretrained={tmp_path / 'first'}", "--learning_rate=1e-9", "--steps=2")
    kept = [flag for flag in flags if "override" not in flag and "vocab" not in flag]
    result = run(tmp_path / "more", *kept, *more)
    assert result.returncode == 0, result.stderr
    first, more = (
        tfeff.tasks.load_pretrained(tmp_path / name) for name in ("first", "more")
    )
    for before, after in zip(first[0].weights, more[0].weights, strict=True):
        np.testing.assert_allclose(after, before, atol=1e-6)
    assert first[1].proto == more[1].proto


@pytest.mark.slow
def test_a_run_that_diverges_says_so(corpus, tmp_path):
    flags = (*SMALL, f"--corpus={corpus}", "--learning_rate=1e30")
    result = run(tmp_path / "run", *flags)
    assert result.returncode == 1
    assert "error: The training has diverged in epoch 1" in result.stderr
    assert "Traceback" not in result.stderr
    for name in ("metrics.json", "preset", "export"):
        assert not (tmp_path / "run" / name).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--preset=shater_tiny"], "Did you mean 'shatter_tiny'?"),
        (["--objective=masked_ml"], "objective='masked_ml'. Did you mean 'masked_lm'?"),
        (["--strategy=gpu"], "`strategy` must be one of"),
        (["--override=num_layers"], "NAME=VALUE"),
        (["--override=num_layers=1,hidden_dim=32"], "must be one NAME=VALUE, given"),
        (["--override=num_layer=2"], "Did you mean 'num_layers'?"),
        (["--corpus=nowhere/*.txt"], "nowhere/*.txt"),
        (["--strategy=tpu"], "TPU"),
        (["--steps=60", "--warmup_steps=60"], "`warmup_steps` must be below `steps`"),
        (["--steps=60", "--eval_every=50"], "a multiple of `eval_every`"),
        (["--objective=permutation_lm", "--masking=ngram"], "masking='ngram'"),
        (["--generator_ratio=0.5"], "generator_ratio=0.5"),
        (["--nomasked_lm"], "masked_lm=False"),
        (
            ["--objective=next_sentence", "--nomasked_lm", "--mask_share=0.9"],
            "mask_share=0.9",
        ),
        (["--pretrained=nowhere"], "nowhere"),
        (["--pretrained=nowhere", "--preset=bert_tiny"], "`pretrained` stands for"),
    ],
)
def test_bad_flags_leave_no_folder(tmp_path, flags, message):
    result = run(tmp_path / "run", *flags)
    assert result.returncode != 0
    assert message in result.stderr + result.stdout
    assert "Traceback" not in result.stderr
    assert len(result.stderr.splitlines()) < 5  # No page of help.
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "flags", "names"),
    [
        (
            "replaced_token",
            ("--preset=bert_tiny", "--generator_ratio=0.5", "--nobias_correction"),
            {"masked_lm_loss", "replaced_loss", "replaced_auc", "replaced_recall"},
        ),
        ("permutation_lm", ("--mask_rate=0.3",), {"accuracy"}),
        (
            "sentence_order",
            ("--masking=whole_word", "--random_share=0"),
            {"sentence_accuracy", "masked_lm_accuracy"},
        ),
        (
            "next_sentence",
            ("--nomasked_lm", "--validation_fraction=0.4"),
            {"accuracy"},
        ),
        ("masked_lm", ("--masking=ngram",), {"accuracy"}),
    ],
)
def test_every_objective_runs_and_goes_on(corpus, tmp_path, objective, flags, names):
    run_dir = tmp_path / "run"
    flags = (*SMALL, f"--corpus={corpus}", f"--objective={objective}", *flags)
    result = run(run_dir, *flags)
    assert result.returncode == 0, result.stderr
    final = json.loads((run_dir / "metrics.json").read_text())
    assert names | {"loss"} <= set(final)
    rows = metrics(run_dir)
    assert float(rows[-1]["val_loss"]) == pytest.approx(final["loss"], rel=1e-5)
    config = json.loads((run_dir / "config.json").read_text())
    assert config["objective"] == objective and config["mask_share"] is None
    assert tfeff.tasks.load_pretrained(run_dir)[0].num_layers == 2
    assert (run_dir / "export" / "1").exists()

    newest = run_dir / "checkpoints" / "step-00000009.keras"
    newest.unlink()
    again = run(run_dir, *flags)
    assert again.returncode == 0, again.stderr
    assert metrics(run_dir) == rows


def test_too_few_documents_to_hold_some_out(tmp_path):
    (tmp_path / "text.txt").write_text("One document alone.\n")
    settings = PretrainSettings(
        run_dir=tmp_path / "run", corpus=(str(tmp_path / "text.txt"),)
    )
    message = "`validation_fraction` must leave .*=0.02, documents: 1. .*blank line"
    with pytest.raises(ValueError, match=message):
        pretraining.pretrain(settings)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("objective", "masking"),
    [
        ("masked_lm", "whole_word"),
        pytest.param("sentence_order", "ngram", marks=pytest.mark.slow),
    ],
)
def test_words_that_are_all_too_long_are_refused(tmp_path, objective, masking):
    """Text without spaces is one word a sequence, which no budget is enough for."""
    draws = random.Random(0)
    characters = [chr(code) for code in range(0x4E00, 0x4E00 + 40)]
    text = ["".join(draws.choices(characters, k=60)) for _ in range(60)]
    (tmp_path / "text.txt").write_text("\n\n".join(text), encoding="utf-8")
    settings = PretrainSettings(
        run_dir=str(tmp_path / "run"),
        corpus=(str(tmp_path / "text.txt"),),
        validation_fraction=0.3,
        vocabulary_size=60,
        sequence_length=24,
        objective=objective,
        masking=masking,
        steps=1,
        preset="bert_tiny",
        override={"hidden_dim": 8, "num_heads": 2, "intermediate_dim": 8},
    )
    message = rf"^`masking` must be 'token' .*Received: masking='{masking}', mask_rate="
    with pytest.raises(ValueError, match=message):
        pretraining.pretrain(settings)
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_pretrained_encoder_has_a_low_rate_by_default():
    """That of new weights, 2e-3, would undo what a published model has learnt."""
    rates = {None: 2e-3, "preset": 5e-5}
    for pretrained, rate in rates.items():
        settings = PretrainSettings(run_dir="run", pretrained=pretrained)
        assert pretraining.settle(settings).learning_rate == rate
        given = dataclasses.replace(settings, learning_rate=1e-3)
        assert pretraining.settle(given).learning_rate == 1e-3


@dataclasses.dataclass(frozen=True)
class LastTokens(tfeff.data.Examples):
    """Examples of a user's objective, which masks no share of the tokens."""

    count: int = 1

    @property
    def mask_rate(self):
        """No setting."""
        return 0.3

    def mapping(self, manifest, seed, tokenizer):
        raise NotImplementedError


@pytest.mark.parametrize("objective", ["masked_lm", "sentence_order", "next_sentence"])
def test_a_new_head_is_like_a_new_encoder(objective):
    own = {"feedforward": {"activation": "relu"}, "layer_norm_epsilon": 1e-6}
    for override, expected in (({}, ("gelu", 1e-12)), (own, ("relu", 1e-6))):
        sizes = {"num_layers": 1, "hidden_dim": 16, "num_heads": 4, **override}
        settings = PretrainSettings(
            **dict(run_dir="run", preset="bert_tiny", objective=objective, steps=2),
            override={**sizes, "intermediate_dim": 16},
            vocabulary_size=60,
        )
        found = pretraining_model.make_model(settings).head_settings
        assert (found["activation"], found["layer_norm_epsilon"]) == expected


def test_an_objective_without_a_mask_rate(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    tfeff.objectives.register(
        tfeff.objectives.PretrainingObjective(
            "last", LastTokens(), tfeff.objectives.MaskedLM
        )
    )
    settings = PretrainSettings(run_dir="run", objective="last")
    assert pretraining_model.objective(settings).examples == LastTokens()
    settled = pretraining.settle(settings)
    assert pretraining_model.objective(settled).examples == LastTokens()
    for name, value in (
        ("mask_rate", 0.3),
        ("masked_lm", False),
        ("generator_override", {"num_heads": 1}),
    ):
        changed = dataclasses.replace(settings, **{name: value})
        message = f"'last' has the settings .*count, .* Received: {name}={value}"
        with pytest.raises(ValueError, match=message):
            pretraining_model.objective(changed)


def test_no_compilation_by_xla_on_several_replicas(tmp_path, monkeypatch):
    """Their loop is TensorFlow's own: it would be left out in silence."""
    monkeypatch.setattr(tfeff.training, "make_strategy", lambda *_: two_replicas())
    settings = PretrainSettings(run_dir=str(tmp_path / "run"), jit_compile=True)
    with pytest.raises(ValueError, match="`jit_compile` must be False on several"):
        pretraining.pretrain(settings)
    assert not (tmp_path / "run").exists()
    # A run that began on one replica goes on: here, up to its directory.
    monkeypatch.setattr(pretraining, "has_checkpoint", lambda run_dir: True)
    monkeypatch.setattr(pretraining, "open_run", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        pretraining.pretrain(settings)


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ["--objective=permutation_lm"],
        [
            "--objective=replaced_token",
            "--preset=bert_tiny",
            "--generator_override=intermediate_dim=4",
        ],
        ["--objective=sentence_order", "--masking=ngram", "--random_share=0"],
        ["--objective=next_sentence", "--nomasked_lm", "--validation_fraction=0.4"],
    ],
    ids=lambda flags: flags[0].partition("=")[2],
)
def test_every_objective_is_trained_by_command(corpus, tmp_path, flags):
    result = run(tmp_path / "run", *SMALL, f"--corpus={corpus}", *flags)
    assert result.returncode == 0, result.stderr
    assert [row["step"] for row in metrics(tmp_path / "run")] == ["3", "6", "9"]
    other = run(tmp_path / "run", *SMALL, f"--corpus={corpus}", "--seed=1", *flags)
    assert "seed: there 0, now 1" in other.stderr
    assert "objective: there" not in other.stderr


@pytest.mark.slow
def test_every_strategy_and_precision_runs(corpus, tmp_path):
    flags = ("--strategy=mirrored", "--dtype=mixed_float16", "--steps_per_execution=3")
    result = run(tmp_path / "run", *SMALL, f"--corpus={corpus}", *flags)
    assert result.returncode == 0, result.stderr
    assert len(metrics(tmp_path / "run")) == 3
