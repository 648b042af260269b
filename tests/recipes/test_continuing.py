"""Pretraining that goes on from another run: longer, shorter, with other positions."""

import dataclasses
import json
import shutil

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import randomize
from tests.subjects.files import copy_of
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.recipes import PretrainSettings, pretrain
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.heads import PretrainedHeads
from tfeff.recipes.pretraining import settle
from tfeff.tasks.run_tokenizer import load_run_tokenizer
from tfeff.training.checkpoint_folder import checkpoint_path, checkpoint_steps

SIZES = {"hidden_dim": 8, "intermediate_dim": 8, "num_layers": 1, "num_heads": 2}


def make_model(objective, length=16, preset="bert_tiny", seed=0, **settings):
    encoder = tfeff.encoders.build(
        preset, vocabulary_size=60, max_sequence_length=length, **SIZES
    )
    model = tfeff.objectives.get(objective).make_model(encoder, **settings)
    randomize({weight.path: weight for weight in model.weights}, seed)
    model.compile()
    return model


def keep(run_dir, objective, models):
    """Writes what `PretrainedHeads` reads of a run: models by their steps."""
    (run_dir / "checkpoints").mkdir(parents=True)
    (run_dir / "config.json").write_text(json.dumps({"objective": objective}))
    for step, model in models.items():
        path = checkpoint_path(str(run_dir / "checkpoints"), step)
        tfeff.training.save_checkpoint(model, path)


def outside(model):
    """The weights that are not the encoder's, by their paths."""
    own = {id(weight) for weight in model.encoder.weights}
    return {w.path: w.numpy() for w in model.weights if id(w) not in own}


def copy_heads(pretrained, objective, model):
    return PretrainedHeads(pretrained, objective).copy(model)


def same(one, two):
    return list(one) == list(two) and all(
        np.array_equal(one[name], two[name]) for name in one
    )


def test_heads_come_along(tmp_path):
    old = {step: make_model("masked_lm", seed=step) for step in (2, 4)}
    keep(tmp_path / "run", "masked_lm", old)
    longer = make_model("masked_lm", length=24, seed=9)
    before = outside(longer), longer.encoder.get_weights()
    tfeff.tasks.save_pretrained(old[2].encoder, tokenizer(), tmp_path / "preset")
    assert not copy_heads(str(tmp_path / "preset"), "masked_lm", longer)
    # Same sizes, yet what the model learnt is something else.
    assert not copy_heads(str(tmp_path / "run"), "next_sentence", longer)
    assert same(outside(longer), before[0])
    for path, step in ((f"{tmp_path}/run", 4), (f"{tmp_path}/run@2", 2)):
        assert copy_heads(path, "masked_lm", longer)
        assert same(outside(longer), outside(old[step]))
    for weight, value in zip(longer.encoder.weights, before[1], strict=True):
        np.testing.assert_array_equal(weight, value)
    with pytest.raises(
        ValueError,
        match="`pretrained` .*: step 3 of .*run, which has those of steps 2, 4",
    ):
        copy_heads(f"{tmp_path}/run@3", "masked_lm", longer)


def test_the_head_of_a_preset_comes_along(tmp_path):
    old = make_model("masked_lm")
    tfeff.tasks.save_pretrained(old, tokenizer(), tmp_path / "preset")
    longer = make_model("masked_lm", length=24, seed=9)
    assert copy_heads(str(tmp_path / "preset"), "masked_lm", longer)
    assert same(outside(longer), outside(old))
    # Which another head would make something else of.
    relu = make_model("masked_lm", seed=9, activation="relu")
    before = outside(relu)
    assert not copy_heads(str(tmp_path / "preset"), "masked_lm", relu)
    assert same(outside(relu), before)


def test_the_head_of_a_distilled_student_comes_along(tmp_path):
    """Such a run has no objective, and its checkpoints have a teacher."""
    old = make_model("masked_lm")
    keep(tmp_path, None, {2: old})
    (tmp_path / "config.json").write_text('{"stage": "general"}')
    tfeff.tasks.save_pretrained(old, tokenizer(), tmp_path / "preset")
    longer = make_model("masked_lm", length=24, seed=9)
    assert copy_heads(str(tmp_path), "masked_lm", longer)
    assert same(outside(longer), outside(old))


def test_the_head_of_a_step_of_a_student_comes_along(tmp_path):
    student, teacher = make_model("masked_lm"), make_model("masked_lm", seed=1)
    trained = tfeff.objectives.Distillation(student, teacher)
    trained.compile()
    keep(tmp_path, None, {2: trained})
    (tmp_path / "config.json").write_text('{"stage": "general"}')
    longer = make_model("masked_lm", length=24, seed=9)
    assert copy_heads(f"{tmp_path}@2", "masked_lm", longer)
    assert same(outside(longer), outside(student))


@pytest.mark.slow
def test_a_generator_comes_along_if_it_has_the_size(tmp_path):
    settings = {"generator_override": {"num_heads": 1}}
    old = make_model("replaced_token", generator_ratio=0.5, **settings)
    keep(tmp_path / "run", "replaced_token", {2: old})
    longer = make_model("replaced_token", 24, seed=9, generator_ratio=0.5, **settings)
    kept = copy_heads(f"{tmp_path}/run", "replaced_token", longer)
    assert kept == ["replaced_token", "generator"]
    found = outside(longer)
    assert same(found, outside(old))
    assert any("generator" in path for path in found)
    assert not any("position" in path for path in found)  # The encoder's own.
    wider = make_model("replaced_token", seed=9, generator_ratio=1.0, **settings)
    before = outside(wider)
    kept = copy_heads(f"{tmp_path}/run", "replaced_token", wider)
    assert kept == ["replaced_token"]
    expected = {
        path: outside(old)[path] if "discriminator" in path else value
        for path, value in before.items()
    }
    assert same(outside(wider), expected)


def test_settings_that_do_not_fit():
    for settings, message in (
        ({"swap_positions": "huang4"}, "`swap_positions` must be left out without"),
        (
            {"keep_steps": (100,), "eval_every": 200},
            r"keep_steps=\[100\], with a check",
        ),
        ({"keep_steps": (2000,)}, "`keep_steps` must be at most 1000"),
    ):
        with pytest.raises(ValueError, match=message):
            settle(PretrainSettings(run_dir="run", **settings))
    for steps in ((0,), (-5, 10)):
        with pytest.raises(ValueError, match="`keep_steps`"):
            PretrainSettings(run_dir="run", keep_steps=steps)
    with pytest.raises(ValueError, match="`sequence_length` must be .* 3"):
        PretrainSettings(run_dir="run", pretrained="other", sequence_length=2)
    assert settle(PretrainSettings(run_dir="run", keep_steps=(500,))).eval_every == 125


@pytest.fixture(scope="module", autouse=True)
def _no_exports():
    """Other tests are of what is served, which takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfeff.export, "save_version", lambda _, __, path, **___: path)
        yield


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(DOCUMENTS * 4), encoding="utf-8")
    return str(path)


def save_bert(path):
    """A preset as of a published BERT, of 8 positions; its tokenizer."""
    words = sorted({w for t in DOCUMENTS for w in t.lower().replace(";", " ").split()})
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    tokenizer = tfeff.convert.BertTokenizer(pieces, lowercase=True, strip_accents=True)
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=len(pieces), max_sequence_length=8, **SIZES
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer, path)
    return tokenizer


class Stop(keras.callbacks.Callback):
    """Ends a training by an error in its second epoch."""

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 1:
            raise RuntimeError("stopped")


def run(run_dir, text, callbacks=(), **settings):
    """A small run in this process; its losses on the text that it is trained on."""
    arguments = {
        "corpus": (text,),
        "validation": (copy_of(text),),
        "sequence_length": 16,
        "batch_size": 4,
        "steps": 4,
        "eval_every": 2,
        "keep_checkpoints": 1,
    }
    if "pretrained" not in settings:
        arguments |= {"vocabulary_size": 60, "override": SIZES}
    pretrain(
        PretrainSettings(run_dir=str(run_dir), **(arguments | settings)), callbacks
    )
    return json.loads((run_dir / "metrics.json").read_text())


@pytest.fixture(scope="module")
def first(text, tmp_path_factory):
    """A run that has kept step 2, and its metrics."""
    run_dir = tmp_path_factory.mktemp("runs") / "first"
    return run_dir, run(run_dir, text, preset="bert_tiny", keep_steps=(2,))


def test_a_finished_run_at_a_url_has_its_heads(first, monkeypatch, tmp_path):
    """Its preset is of the encoder alone: the heads are in the checkpoint."""
    monkeypatch.setenv("TFEFF_CACHE", str(tmp_path / "copies"))
    run_dir, url = first[0], "memory://runs/heads"
    tfeff.storage.publish(run_dir, url)
    local, remote = (PretrainedHeads(x, "masked_lm").arrays for x in (run_dir, url))
    assert local and local.keys() == remote.keys()
    models = [tfeff.tasks.load_masked_lm(x)[0] for x in (run_dir, url)]
    for one, other in zip(*(model.weights for model in models), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(ValueError, match=f"Received: path='{url}'"):
        tfeff.tasks.load_objective(url, "next_sentence")


@pytest.mark.slow
def test_a_run_goes_on_where_another_ended(first, text, tmp_path, capsys):
    """At a rate of nothing, its loss is that of the other: encoder and head are."""
    run_dir, metrics = first
    still = {"learning_rate": 1e-12, "steps": 1, "eval_every": 1, "warmup_steps": 0}
    again = run(tmp_path / "again", text, pretrained=str(run_dir), **still)
    assert again["loss"] == pytest.approx(metrics["loss"], rel=1e-5)
    assert "its heads of masked_lm" in capsys.readouterr().out
    assert (
        load_run_tokenizer(tmp_path / "again").proto
        == load_run_tokenizer(run_dir).proto
    )
    # The preset alone has the encoder alone.
    alone = run(tmp_path / "alone", text, pretrained=f"{run_dir}/preset", **still)
    assert abs(alone["loss"] - metrics["loss"]) > 1e-3
    assert "with new heads of masked_lm" in capsys.readouterr().out
    # The step that it has kept, longer.
    with pytest.warns(UserWarning, match="from 16 to 32 rows"):
        run(
            tmp_path / "longer",
            text,
            pretrained=f"{run_dir}@2",
            sequence_length=32,
            **still,
        )
    longer, _ = tfeff.tasks.load_pretrained(tmp_path / "longer")
    old, _ = tfeff.tasks.load_pretrained(f"{run_dir}@2")
    assert longer.max_sequence_length == 32
    table = longer.embedding.position_embedding.embeddings
    for new, weight in zip(longer.weights, old.weights, strict=True):
        new = new.numpy()[: weight.shape[0]]
        np.testing.assert_allclose(new, weight, atol=1e-6)
    assert 0.005 < table.numpy()[16:].std() < 0.03
    # Shorter, and with relative positions; the head comes along in both.
    run(
        tmp_path / "shorter",
        text,
        pretrained=str(run_dir),
        sequence_length=8,
        swap_positions="huang4",
        **still,
    )
    shorter, _ = tfeff.tasks.load_pretrained(tmp_path / "shorter")
    assert (shorter.max_sequence_length, shorter.position) == (16, "none")
    assert shorter.blocks[0].attention.method == "huang4"
    assert "its heads of masked_lm" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_that_has_begun_needs_its_source_no_more(first, text, tmp_path):
    """A source that trains on deletes its older checkpoints."""
    source = tmp_path / "source"
    shutil.copytree(first[0], source)
    settings = {"pretrained": f"{source}@2", "learning_rate": 1e-3}
    whole = run(tmp_path / "whole", text, **settings)
    with pytest.raises(RuntimeError, match="stopped"):
        run(tmp_path / "run", text, [Stop()], **settings)
    shutil.rmtree(source)
    assert run(tmp_path / "run", text, **settings) == whole
    with pytest.raises(ValueError, match="`pretrained`"):
        run(tmp_path / "other", text, **settings)
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_on_two_replicas_in_batches_of_an_update(first, text, tmp_path, capsys):
    run_dir, _ = first
    run(
        tmp_path / "run",
        text,
        pretrained=f"{run_dir}@2",
        keep_steps=(2,),
        steps_per_execution=2,
        accumulation_steps=2,
        strategy="mirrored",
        learning_rate=1e-12,
    )
    assert "its heads of masked_lm" in capsys.readouterr().out
    assert checkpoint_steps(str(tmp_path / "run" / "checkpoints")) == [2, 4]
    found, old = (
        tfeff.tasks.load_pretrained(f"{path}@2")[0]
        for path in (tmp_path / "run", run_dir)
    )
    for new, weight in zip(found.weights, old.weights, strict=True):
        np.testing.assert_allclose(new, weight, atol=1e-6)


@pytest.mark.slow
def test_a_word_piece_preset_is_pretrained_further(text, tmp_path):
    bert = save_bert(tmp_path / "bert")
    settings = {"pretrained": str(tmp_path / "bert"), "masking": "whole_word"}
    with pytest.warns(UserWarning, match="from 8 to 16 rows"):
        metrics = run(tmp_path / "run", text, **settings)
    _, kept = tfeff.tasks.load_pretrained(tmp_path / "run")
    fingerprint = tfeff.data.tokenizer_fingerprint
    assert fingerprint(kept) == fingerprint(bert)
    # Started again after it was killed in its second epoch.
    (tmp_path / "run" / "SHA256SUMS").unlink()
    (tmp_path / "run" / "metrics.json").unlink()
    # It goes on from its checkpoint, whose table has grown already.
    assert run(tmp_path / "run", text, **settings) == metrics
    found = tfeff.recipes.evaluate(
        tfeff.recipes.EvaluateSettings(
            run_dir=str(tmp_path / "run"), corpus=(text,), batch_size=4
        )
    )
    assert found["loss"] == pytest.approx(metrics["loss"], rel=1e-5)


@pytest.mark.slow
def test_detection_of_replaced_tokens_goes_on_at_another_length(text, tmp_path):
    settings = {
        "objective": "replaced_token",
        "generator_ratio": 0.5,
        "generator_override": {"num_heads": 1},
    }
    run(tmp_path / "first", text, preset="bert_tiny", **settings)
    with pytest.warns(UserWarning, match="from 16 to 24 rows"):
        run(
            tmp_path / "more",
            text,
            pretrained=str(tmp_path / "first"),
            sequence_length=24,
            learning_rate=1e-12,
            **settings,
        )
    first, more = (
        tfeff.training.load_checkpoint(
            checkpoint_path(str(tmp_path / name / "checkpoints"), 4)
        )
        for name in ("first", "more")
    )
    assert more.generator.token_embedding is more.encoder.token_embedding
    for name, value in outside(first).items():
        np.testing.assert_allclose(outside(more)[name], value, atol=1e-6)


@pytest.mark.slow
def test_a_preset_of_discriminator_and_generator_goes_on(text, tmp_path, capsys):
    settings = {"generator_ratio": 0.5, "generator_override": {"num_heads": 1}}
    old = make_model("replaced_token", **settings)
    tfeff.tasks.save_pretrained(old, tokenizer(), tmp_path / "preset")
    run(
        tmp_path / "run",
        text,
        pretrained=str(tmp_path / "preset"),
        objective="replaced_token",
        learning_rate=1e-12,
        **settings,
    )
    assert "its heads of replaced_token, generator" in capsys.readouterr().out
    more = tfeff.training.load_checkpoint(
        checkpoint_path(str(tmp_path / "run" / "checkpoints"), 4)
    )
    for one, other in zip(more.weights, old.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["default", "mirrored"])
def test_scores_by_steps_of_pretraining(first, text, tmp_path, strategy, monkeypatch):
    run_dir, _ = first
    tracked, of_training = [], Callbacks.of_training

    def noted(self, folder, config, **options):
        tracked.append(config["pretrained_step"])
        return of_training(self, folder, config, **options)

    monkeypatch.setattr(Callbacks, "of_training", noted)
    (tmp_path / "SST-2").mkdir()
    rows = "".join(f"{t}\t{i % 2}\n" for i, t in enumerate(DOCUMENTS[:8]))
    for split in ("train", "dev"):
        (tmp_path / "SST-2" / f"{split}.tsv").write_text(f"sentence\tlabel\n{rows}")
    settings = tfeff.recipes.FinetuneSettings(
        run_dir=str(tmp_path / "run"),
        task="SST-2",
        data=str(tmp_path),
        pretrained=str(run_dir),
        pretrained_steps=(2, 4),
        learning_rates=(1e-3, 1e-2),
        batch_sizes=(4,),
        steps=2,
        strategy=strategy,
        plots=True,
    )
    summary = tfeff.recipes.finetune(settings)
    found = [row["setting"]["pretrained_step"] for row in summary["rows"]]
    assert found == [2, 2, 4, 4] == tracked
    assert "| pretrained_step | learning_rate |" in (
        tmp_path / "run" / "summary.md"
    ).read_text(encoding="utf-8")
    assert (tmp_path / "run" / "plots" / "score_curve.png").exists()
    wrong = tfeff.recipes.FinetuneSettings(
        **{
            **{
                name: getattr(settings, name) for name in ("task", "data", "pretrained")
            },
            "run_dir": str(tmp_path / "wrong"),
            "pretrained_steps": (2, 3),
        }
    )
    message = "`pretrained_steps` must .*: step 3 of .*, which has those of steps 2, 4"
    with pytest.raises(ValueError, match=message):
        tfeff.recipes.finetune(wrong)
    assert not (tmp_path / "wrong").exists()


@pytest.mark.slow
def test_relative_positions_in_place_of_a_published_berts(tmp_path):
    """Huang et al., section 4.4: method 4, not clipped, for 3 epochs at 5e-5."""
    save_bert(tmp_path / "bert")
    answers = [{"text": DOCUMENTS[0][:9], "answer_start": 0}]
    questions = [{"id": "q", "question": "What watched?", "answers": answers}]
    data = [{"paragraphs": [{"context": DOCUMENTS[0], "qas": questions}]}]
    file = tmp_path / "squad.json"
    file.write_text(json.dumps({"version": "1.1", "data": data}))
    squad = dataclasses.replace(
        tfeff.datasets.get("squad1"),
        scorer=lambda *_: {"f1": 0.5, "exact_match": 0.25},
    )
    settings = tfeff.recipes.AnswerSettings(
        run_dir=str(tmp_path / "run"),
        task=squad.name,
        train=str(file),
        dev=str(file),
        pretrained=str(tmp_path / "bert"),
        swap_positions="huang4",
        sequence_length=24,
        stride=9,
        batch_sizes=(1,),
        learning_rates=(5e-5,),
        epochs=3,
    )
    assert tfeff.recipes.answer(settings, squad)["f1"] == 0.5
    model = tfeff.training.load_checkpoint(str(tmp_path / "run" / "model.keras"))
    encoder = model.encoder
    assert (encoder.position, encoder.max_sequence_length) == ("none", 24)
    attention = encoder.blocks[0].attention
    assert (attention.method, attention.max_distance) == ("huang4", 7)
    table = attention.relative_embedding.embeddings.numpy()
    assert 0 < np.abs(table).max() < 1e-3  # Learnt from zeros.
