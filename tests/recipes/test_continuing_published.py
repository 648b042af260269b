"""`pretrain --pretrained=…` from converted checkpoints, and from another objective."""

import functools
import json
import shutil

import numpy as np
import pytest

import tfeff
from tests.convert.conversions import GOLDENS
from tests.subjects.files import copy_of
from tests.subjects.sentences import DOCUMENTS
from tfeff.recipes import PretrainSettings, pretrain
from tfeff.recipes.pretraining import settle
from tfeff.recipes.pretraining_model import make_model

HEADS = GOLDENS.parent / "head_goldens"
SIZES = {"hidden_dim": 8, "intermediate_dim": 8, "num_layers": 1, "num_heads": 2}
GENERATOR = {"generator_ratio": 0.5, "generator_override": {"num_heads": 1}}
# The checkpoint, the objective, and the heads that come along and that are new.
CHECKPOINTS = [
    (HEADS / "bert_pretraining", "masked_lm", ["masked_lm"], []),
    (
        HEADS / "bert_pretraining",
        "next_sentence",
        ["pooler", "next_sentence", "masked_lm"],
        [],
    ),
    (
        HEADS / "bert_pretraining",
        "sentence_order",
        ["pooler", "masked_lm"],
        ["sentence_order"],
    ),
    (GOLDENS / "albert", "masked_lm", ["masked_lm"], []),
    (
        HEADS / "albert_pretraining",
        "sentence_order",
        ["pooler", "sentence_order", "masked_lm"],
        [],
    ),
    (HEADS / "convbert_masked_lm", "masked_lm", ["masked_lm"], []),
    (GOLDENS / "convbert_small", "replaced_token", [], ["generator", "replaced_token"]),
    (HEADS / "xlnet_lm", "permutation_lm", ["permutation_lm"], []),
    (GOLDENS / "bert", "masked_lm", [], ["masked_lm"]),
]


@pytest.fixture(scope="module", autouse=True)
def _no_exports():
    """Other tests are of what is served, which takes most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tfeff.export, "save_for_serving", lambda *_, **__: None)
        yield


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n\n".join(f"{t}\n{t}" for t in DOCUMENTS), encoding="utf-8")
    return str(path)


def run(run_dir, text, **settings):
    """A small run in this process; its losses on the text that it is trained on."""
    arguments = {
        **dict(corpus=(text,), validation=(copy_of(text),)),
        **dict(sequence_length=12, batch_size=4, steps=1, eval_every=1),
        **dict(warmup_steps=0, learning_rate=1e-12),
    }
    pretrain(PretrainSettings(run_dir=str(run_dir), **(arguments | settings)))
    return json.loads((run_dir / "metrics.json").read_text())


def converted(checkpoint, folder):
    """The preset of a checkpoint, with a tokenizer if it has none."""
    source = shutil.copytree(checkpoint, folder / "source")
    if not any((source / name).exists() for name in ("vocab.txt", "spiece.model")):
        name = "albert" if "albert" in checkpoint.name else "bert"
        name = "xlnet" if "xlnet" in checkpoint.name else name
        for file in ("vocab.txt", "spiece.model", "tokenizer_config.json"):
            if (GOLDENS / name / file).exists():
                shutil.copy(GOLDENS / name / file, source)
    tfeff.convert.convert(source, folder / "preset")
    return folder / "preset"


def check_same_encoder(one, other):
    encoders = (tfeff.tasks.load_pretrained(path)[0] for path in (one, other))
    for new, old in zip(*(encoder.weights for encoder in encoders), strict=True):
        np.testing.assert_allclose(new, old, atol=1e-6)


def told(kept, new):
    kept = f", its heads of {', '.join(kept)}" if kept else ""
    return f"its encoder and tokenizer{kept}" + (
        f", with new heads of {', '.join(new)}" if new else "\n"
    )


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """Function from a checkpoint to its preset, which is made once."""
    return functools.cache(
        lambda checkpoint: converted(checkpoint, tmp_path_factory.mktemp("preset"))
    )


@pytest.mark.parametrize(
    ("checkpoint", "objective", "kept", "new"),
    [
        pytest.param(
            *row,
            id=f"{row[0].name}-{row[1]}",
            marks=() if index < 2 else pytest.mark.slow,
        )
        for index, row in enumerate(CHECKPOINTS)
    ],
)
def test_the_model_of_a_converted_checkpoint(
    checkpoint, objective, kept, new, preset, capsys
):
    settings = GENERATOR if objective == "replaced_token" else {}
    settings = PretrainSettings(
        run_dir="run",
        pretrained=str(preset(checkpoint)),
        objective=objective,
        sequence_length=12,
        **settings,
    )
    model = make_model(settle(settings))
    assert told(kept, new) in capsys.readouterr().out
    if new:
        theirs, _ = tfeff.tasks.load_pretrained(preset(checkpoint))
        model = model.encoder
    else:
        theirs, _ = tfeff.tasks.load_objective(preset(checkpoint), objective)
    for one, other in zip(model.weights, theirs.weights, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("checkpoint", "objective"),
    [
        (HEADS / "bert_pretraining", "next_sentence"),
        (HEADS / "albert_pretraining", "sentence_order"),
        (GOLDENS / "convbert_small", "replaced_token"),
        (HEADS / "xlnet_lm", "permutation_lm"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_a_converted_checkpoint_goes_on(checkpoint, objective, preset, text, tmp_path):
    settings = GENERATOR if objective == "replaced_token" else {}
    run_dir, preset = tmp_path / "run", preset(checkpoint)
    run(run_dir, text, pretrained=str(preset), objective=objective, **settings)
    check_same_encoder(run_dir, preset)
    fingerprint = tfeff.data.tokenizer_fingerprint
    tokenizers = (tfeff.tasks.load_pretrained(path)[1] for path in (run_dir, preset))
    assert len({fingerprint(tokenizer) for tokenizer in tokenizers}) == 1
    if objective != "replaced_token":  # At a rate of nothing it is the published one.
        ours, _ = tfeff.tasks.load_objective(run_dir, objective)
        theirs, _ = tfeff.tasks.load_objective(preset, objective)
        for one, other in zip(ours.weights, theirs.weights, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.fixture(scope="module")
def first(text, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "first"
    settings = dict(preset="bert_tiny", override=SIZES, vocabulary_size=60)
    run(run_dir, text, **settings, steps=4, eval_every=2, learning_rate=1e-2)
    return run_dir


@pytest.mark.slow
def test_a_longer_schedule_on_a_finished_run(first, text, tmp_path, capsys):
    before = json.loads((first / "metrics.json").read_text())
    settings = dict(steps=30, eval_every=10, learning_rate=1e-2, warmup_steps=3)
    # In the same folder the schedule is another one, and the message says what to do.
    own = dict(preset="bert_tiny", override=SIZES, vocabulary_size=60)
    with pytest.raises(ValueError, match="steps.*--pretrained="):
        run(first, text, **own, **settings)
    after = run(tmp_path / "more", text, pretrained=str(first), **settings)
    assert after["loss"] < before["loss"]
    assert told(["masked_lm"], []) in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "objective", ["replaced_token", "permutation_lm", "next_sentence"]
)
def test_another_objective_and_back(objective, first, text, tmp_path, capsys):
    settings = GENERATOR if objective == "replaced_token" else {}
    run(
        tmp_path / "other",
        text,
        pretrained=str(first),
        objective=objective,
        **settings,
    )
    check_same_encoder(tmp_path / "other", first)
    assert "its encoder and tokenizer" in capsys.readouterr().out
    run(tmp_path / "back", text, pretrained=str(tmp_path / "other"))
    check_same_encoder(tmp_path / "back", first)
