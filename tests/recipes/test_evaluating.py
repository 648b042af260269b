"""`tfeff evaluate` on a run of pretraining: the run's numbers, and literal ones."""

import csv
import json
import math
import re
import shutil

import fsspec
import numpy as np
import pytest

import tfeff
from tests.subjects.files import copy_of
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.command import main
from tfeff.recipes import (
    EvaluateSettings,
    PretrainSettings,
    data_record,
    evaluate,
    pretrain,
)
from tfeff.recipes.data_record import crosses_documents
from tfeff.recipes.evaluating import read_settings
from tfeff.tasks.run_tokenizer import save_run_tokenizer
from tfeff.utils.digests import sha256

TEXT = "Returns the sum of an array.\n\nA layer that adds its inputs."


def small(run_dir, corpus, **settings):
    arguments = {
        "corpus": (corpus,),
        "validation": (copy_of(corpus),),
        "vocabulary_size": 400,
        "sequence_length": 24,
        "batch_size": 2,
        "accumulation_steps": 2,
        "steps": 4,
        "eval_every": 2,
        "override": {"hidden_dim": 16, "intermediate_dim": 32},
    }
    return PretrainSettings(run_dir=str(run_dir), **(arguments | settings))


@pytest.fixture(scope="module")
def pretrained(corpus, tmp_path_factory):
    """The folder of a run in which each step has two batches."""
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    pretrain(small(run_dir, corpus))
    return run_dir


def digests(folder):
    return {p: sha256(p) for p in folder.rglob("*") if p.is_file()}


@pytest.mark.slow
def test_the_metrics_of_a_run_on_its_own_validation_text(
    pretrained, corpus, tmp_path, capsys
):
    before = digests(pretrained)
    output = tmp_path / "metrics.json"
    status = main.main(
        ["evaluate", f"--run_dir={pretrained}", f"--corpus={corpus}"]
        + ["--batch_size=2", f"--output={output}"]
    )
    assert status == 0
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(output.read_text())
    own = json.loads((pretrained / "metrics.json").read_text())
    assert {name: found[name] for name in own} == pytest.approx(own, rel=1e-6)
    assert found["step"] == 4
    assert found["perplexity"] == pytest.approx(math.exp(own["loss"]))
    assert digests(pretrained) == before


@pytest.mark.parametrize("name", ["text.txt", "link.txt", "run/config.json"])
def test_what_is_read_is_not_replaced(name, tmp_path):
    (tmp_path / "run").mkdir()
    for file in ("text.txt", "run/config.json"):
        (tmp_path / file).write_text("one two")
    (tmp_path / "link.txt").symlink_to("text.txt")
    settings = EvaluateSettings(
        run_dir=str(tmp_path / "run"),
        corpus=(str(tmp_path / "te*.txt"),),
        output=str(tmp_path / name),
    )
    with pytest.raises(ValueError, match=f"`output` must not replace what.*{name}"):
        evaluate(settings)
    for file in ("text.txt", "run/config.json"):
        assert (tmp_path / file).read_text() == "one two"


def test_text_at_a_url_is_not_replaced(tmp_path):
    (tmp_path / "run").mkdir()
    with fsspec.open("memory://corpus/a.txt", "w") as file:
        file.write("one two")
    settings = EvaluateSettings(
        run_dir=str(tmp_path / "run"),
        corpus=("memory://corpus/*.txt",),
        output="memory://corpus/a.txt",
    )
    with pytest.raises(ValueError, match="`output` must not replace what is read"):
        evaluate(settings)


@pytest.mark.slow
def test_text_is_cut_as_in_the_cache_of_a_run(tmp_path, capsys):
    folder, run_dir, text = (tmp_path / name for name in ("caches", "run", "text.txt"))
    text.write_text("\n\n".join(DOCUMENTS))
    folder.mkdir()
    save_run_tokenizer(tokenizer(), str(folder))
    for name in ("train", "validation"):
        tfeff.data.build_cache(
            DOCUMENTS, tokenizer(), folder / name, 16, cross_documents=True
        )
    pretrain(
        PretrainSettings(
            run_dir=str(run_dir),
            cache_dir=str(folder),
            preset="bert_tiny",
            override={"num_layers": 1, "hidden_dim": 16, "intermediate_dim": 16},
            sequence_length=16,
            vocabulary_size=60,
            steps=1,
        )
    )
    found = evaluate(EvaluateSettings(run_dir=str(run_dir), corpus=(str(text),)))
    own = json.loads((run_dir / "metrics.json").read_text())
    assert {name: found[name] for name in own} == pytest.approx(own, rel=1e-6)

    def crosses():
        return crosses_documents(str(run_dir), read_settings(str(run_dir)))

    # A run of before: it has no note of the cut.
    note = json.loads((run_dir / "read_data.json").read_text())
    assert note.pop("cross_documents") is True
    (run_dir / "SHA256SUMS").unlink()
    (run_dir / "read_data.json").write_text(json.dumps(note))
    assert crosses()
    shutil.rmtree(folder)
    assert not crosses()
    assert "taken to end with their documents" in capsys.readouterr().err


def test_a_cache_that_is_not_there_is_not_needed(tmp_path, monkeypatch, capsys):
    """A run of before is evaluated where the bucket of its cache cannot be reached."""

    def away(path):
        raise OSError(f"Reading {path} failed")

    monkeypatch.setattr(data_record, "cached_manifest", away)
    settings = PretrainSettings(run_dir=str(tmp_path), cache_dir="/gone/cache")
    assert not crosses_documents(str(tmp_path), settings)
    assert "Reading /gone/cache failed" in capsys.readouterr().err


def test_a_url_that_a_run_alone_names_is_not_asked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(data_record, "cached_manifest", None)
    settings = PretrainSettings(run_dir=str(tmp_path), cache_dir="s3://bucket/cache")
    assert not crosses_documents(str(tmp_path), settings)
    assert "s3://bucket/cache is not asked" in capsys.readouterr().err


@pytest.mark.slow
def test_pseudo_perplexity_masks_one_token_at_a_time(pretrained, tmp_path, capsys):
    (tmp_path / "text.txt").write_text(TEXT)
    found = evaluate(
        EvaluateSettings(
            run_dir=str(pretrained),
            corpus=(str(tmp_path / "text.txt"),),
            step=2,
            pseudo_perplexity=True,
            batch_size=3,
        )
    )
    path = pretrained / "checkpoints" / "step-00000002.keras"
    model = tfeff.training.load_checkpoint(str(path))
    pieces = tfeff.data.load_tokenizer(pretrained / "tokenizer.spm")
    total, count = 0.0, 0
    for document in TEXT.split("\n\n"):
        tokens = [int(token) for token in pieces(document)]
        for start in range(0, len(tokens), 22):
            ids = np.array(
                [
                    pieces.cls_token_id,
                    *tokens[start : start + 22],
                    pieces.sep_token_id,
                ]
            )
            for place in range(1, len(ids) - 1):
                masked = ids.copy()
                masked[place] = pieces.mask_token_id
                logits = model(
                    {
                        "token_ids": masked[None],
                        "segment_ids": 0 * masked[None],
                        "padding_mask": 0 * masked[None] + 1,
                        "mask_positions": np.array([[place]]),
                    }
                )
                logits = np.asarray(logits, "float64")[0, 0]
                total += np.log(np.sum(np.exp(logits))) - logits[ids[place]]
                count += 1
    assert found["step"] == 2 and found["tokens"] >= count > 10
    assert found["words"] == 12
    assert found["pseudo_perplexity"] == pytest.approx(math.exp(total / count), 1e-5)
    by_word = found["pseudo_perplexity_per_word"]
    assert by_word == pytest.approx(math.exp(total / 12), 1e-5)


@pytest.mark.slow
def test_a_preset_at_a_url(tmp_path):
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=60, num_layers=1, max_sequence_length=10
    )
    model = tfeff.objectives.MaskedLM(encoder)
    tfeff.tasks.save_pretrained(model, tokenizer(), (tmp_path / "preset").as_uri())
    tfeff.tasks.save_pretrained(model, tokenizer(), tmp_path / "copy")
    (tmp_path / "text.txt").write_text("A tiger followed seven boxes.")
    found = [
        evaluate(EvaluateSettings(pretrained=x, corpus=(str(tmp_path / "text.txt"),)))
        for x in ((tmp_path / "preset").as_uri(), str(tmp_path / "copy"))
    ]
    assert found[0] == found[1]
    settings = EvaluateSettings(pretrained="s3://b/run@3", corpus=("a.txt",))
    with pytest.raises(ValueError, match="`pretrained` must be a preset; of a run"):
        evaluate(settings)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["masked_lm", "permutation_lm"])
def test_a_preset_predicts_each_token_from_all_others(objective, tmp_path):
    """And the unigram baseline is that of the frequencies in the text."""
    pieces = tokenizer()
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=60,
        hidden_dim=16,
        num_heads=2,
        intermediate_dim=16,
        max_sequence_length=10,
    )
    kinds = {
        "masked_lm": tfeff.objectives.MaskedLM,
        "permutation_lm": tfeff.objectives.PermutationLM,
    }
    model = kinds[objective](encoder)
    for weight in model.weights:  # Far from uniform predictions.
        weight.assign(weight + 0.3 * np.random.normal(size=weight.shape))
    tfeff.tasks.save_pretrained(model, pieces, tmp_path / "preset")
    text = "A tiger followed seven boxes."
    (tmp_path / "text.txt").write_text(text)
    found = evaluate(
        EvaluateSettings(
            pretrained=str(tmp_path / "preset"),
            corpus=(str(tmp_path / "text.txt"),),
            pseudo_perplexity=True,
            batch_size=3,
        )
    )
    tokens = [int(token) for token in pieces(text)]
    total, counts = 0.0, {}
    for start in range(0, len(tokens), 8):
        part = [pieces.cls_token_id, *tokens[start : start + 8], pieces.sep_token_id]
        for place in range(1, len(part) - 1):
            counts[part[place]] = counts.get(part[place], 0) + 1
            ids = np.array([part])
            inputs = {
                "token_ids": ids.copy(),
                "segment_ids": 0 * ids,
                "padding_mask": 0 * ids + 1,
                "mask_positions": np.array([[place]]),
            }
            if objective == "masked_lm":
                inputs["token_ids"][0, place] = pieces.mask_token_id
            else:
                inputs["ranks"] = np.where(np.arange(len(part)) == place, 0, -1)[None]
            logits = np.asarray(model(inputs), "float64")[0, 0]
            total += np.log(np.sum(np.exp(logits))) - logits[part[place]]
    count = len(tokens)
    assert "step" not in found and found["words"] == 5
    assert found["pseudo_perplexity"] == pytest.approx(math.exp(total / count), 1e-4)
    by_word = found["pseudo_perplexity_per_word"]
    assert by_word == pytest.approx(math.exp(total / 5), 1e-4)
    entropy = -sum(n / count * math.log(n / count) for n in counts.values())
    assert found["unigram_entropy"] == pytest.approx(entropy)
    assert found["unigram_perplexity"] == pytest.approx(math.exp(entropy))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "names"),
    [
        ("replaced_token", {"masked_lm_accuracy", "replaced_precision", "perplexity"}),
        ("permutation_lm", {"accuracy", "perplexity"}),
        ("sentence_order", {"sentence_accuracy", "masked_lm_loss", "perplexity"}),
    ],
)
def test_other_objectives(corpus, tmp_path, objective, names):
    settings = small(tmp_path / "run", corpus, objective=objective, preset="bert_tiny")
    pretrain(settings)
    found = evaluate(
        EvaluateSettings(run_dir=settings.run_dir, corpus=(corpus,), batch_size=2)
    )
    own = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert names <= set(found)
    if objective != "replaced_token":  # Whose samples are drawn anew.
        assert {name: found[name] for name in own} == pytest.approx(own, rel=1e-6)
    (tmp_path / "text.txt").write_text(TEXT)
    found = evaluate(
        EvaluateSettings(
            run_dir=settings.run_dir,
            corpus=(str(tmp_path / "text.txt"),),
            pseudo_perplexity=True,
        )
    )
    assert 1 < found["pseudo_perplexity"] < found["pseudo_perplexity_per_word"]


@pytest.mark.slow
def test_batches_of_a_step_are_one_batch(pretrained, corpus, tmp_path):
    """Twice two sequences train as four, but for dropout, which is off."""
    rows = []
    for steps in (1, 2):
        override = {"hidden_dim": 16, "intermediate_dim": 32, "dropout": 0.0}
        run_dir = tmp_path / str(steps)
        pretrain(
            small(
                run_dir,
                corpus,
                batch_size=4 // steps,
                accumulation_steps=steps,
                override=override,
            )
        )
        with open(run_dir / "metrics.csv", encoding="utf-8", newline="") as file:
            rows.append(list(csv.DictReader(file)))
    for one, other in zip(*rows, strict=True):
        assert one["learning_rate"] == other["learning_rate"]
        for name in ("loss", "val_loss"):
            assert float(one[name]) == pytest.approx(float(other[name]), rel=1e-5)


@pytest.mark.slow
def test_what_is_no_such_run_is_named(pretrained, corpus, tmp_path):
    def check(message, run_dir, **settings):
        run_dir = run_dir and str(run_dir)
        settings = EvaluateSettings(run_dir=run_dir, corpus=(corpus,), **settings)
        with pytest.raises(ValueError, match=message):
            evaluate(settings)

    check("must be the folder of a run, which has a config.json", tmp_path)
    check("One of `run_dir` and `pretrained` must be given", "x", pretrained="y")
    check("`sequence_length` must be left out", pretrained, sequence_length=9)
    at = f"pretrained='{pretrained}@4'. Give `run_dir='{pretrained}'` and `step=4`$"
    check(at, None, pretrained=f"{pretrained}@4")
    text = tmp_path / "blank.txt"
    for content, message in (("", "is empty"), ("\n \n", "blank lines only")):
        text.write_text(content)
        settings = EvaluateSettings(run_dir=str(pretrained), corpus=(str(text),))
        with pytest.raises(ValueError, match=f"{text}.*{message}"):
            evaluate(settings)
    text = tmp_path / "blank.jsonl"
    text.write_text('{"text": " "}\n')
    settings = EvaluateSettings(run_dir=str(pretrained), corpus=(str(text),))
    with pytest.raises(ValueError, match=f"`corpus` must hold text.*{text}"):
        evaluate(settings)
    encoder, pieces = tfeff.tasks.load_pretrained(pretrained)
    tfeff.tasks.save_pretrained(encoder, pieces, tmp_path / "plain")
    with pytest.raises(ValueError, match="with a head of masked_lm.*with no heads"):
        evaluate(EvaluateSettings(pretrained=str(tmp_path / "plain"), corpus=(corpus,)))
    check("step 3 of .*, which has those of steps 2, 4$", pretrained, step=3)
    (tmp_path / "config.json").write_text('{"task": "SST-2"}')
    check("of `tfeff pretrain` or `tfeff stack`.*metrics.json", tmp_path)
    (tmp_path / "config.json").write_text("{")
    check("is not valid JSON", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "edited, message",
    [
        ({"objective": "permutation_lm"}, "`run_dir` must have .* PermutationLM"),
        ({"objective": "sentence_order"}, "`run_dir` must have .* a MaskedLM$"),
        ({"sequence_length": 64}, "`sequence_length` must fit .*run_dir='"),
        ({}, "`run_dir` must be "),  # Its tokenizer is missing.
    ],
)
def test_settings_of_another_model(edited, message, pretrained, corpus, tmp_path):
    run_dir = tmp_path / "run"
    if "sequence_length" in edited:
        pretrain(small(run_dir, corpus, preset="bert_tiny"))
    else:
        shutil.copytree(pretrained, run_dir)
    (run_dir / "SHA256SUMS").unlink()
    path = run_dir / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | edited))
    if not edited:
        (run_dir / "tokenizer.spm").unlink()
    with pytest.raises(ValueError, match=message):
        evaluate(EvaluateSettings(run_dir=str(run_dir), corpus=(corpus,)))


def test_a_run_of_another_kind_is_evaluated_as_a_preset(tmp_path):
    """A distillation's steps are of no objective, its student is."""

    (tmp_path / "text.txt").write_text("one two")

    def check(message, **given):
        with pytest.raises(ValueError, match=re.escape(message) + "$"):
            evaluate(EvaluateSettings(corpus=(f"{tmp_path}/text.txt",), **given))

    run = str(tmp_path / "run")
    step = f"must be a preset, and no step of a run. Received: pretrained='{run}@4'"
    check(step, pretrained=f"{run}@4")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.json").write_text('{"stage": "general"}')
    check(step, pretrained=f"{run}@4")
    none = "whose config.json is without its `command`, as of an earlier version of"
    check(f"run_dir='{run}', {none} tfeff", run_dir=run)
    (tmp_path / "run" / "config.json").write_text('{"command": "distill"}')
    check(f"run_dir='{run}', whose config.json is of `tfeff distill`", run_dir=run)
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=60, num_layers=1)
    model = tfeff.objectives.MaskedLM(encoder)
    tfeff.tasks.save_pretrained(model, tokenizer(), tmp_path / "run" / "preset")
    advice = f". `pretrained='{run}'` is the end of this run"
    check(f"{step}{advice}", pretrained=f"{run}@4")
    check(
        f"run_dir='{run}', whose config.json is of `tfeff distill`{advice}", run_dir=run
    )
