"""A run with a WordPiece tokenizer of its own: text, tasks, and what is served."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.files import copy_of
from tests.subjects.sentences import DOCUMENTS
from tfeff.recipes import (
    EvaluateSettings,
    FinetuneSettings,
    PretrainSettings,
    evaluate,
    finetune,
    pretrain,
)

pytestmark = pytest.mark.slow


def settings(run_dir, corpus, **changes):
    arguments = {
        "corpus": (corpus,),
        "validation": (copy_of(corpus),),
        "tokenizer_kind": "wordpiece",
        "vocabulary_size": 400,
        "masking": "whole_word",
        "sequence_length": 24,
        "batch_size": 4,
        "steps": 4,
        "eval_every": 2,
        "override": {"hidden_dim": 16, "intermediate_dim": 32},
    }
    return PretrainSettings(run_dir=str(run_dir), **(arguments | changes))


@pytest.fixture(scope="module")
def finished(corpus, tmp_path_factory):
    run_dir = tmp_path_factory.mktemp("runs") / "run"
    pretrain(settings(run_dir, corpus))
    return run_dir


def fingerprint(folder):
    _, tokenizer = tfeff.tasks.load_pretrained(folder)
    return tfeff.data.tokenizer_fingerprint(tokenizer)


def test_the_preset_and_what_is_served(finished):
    import tensorflow_text  # noqa: F401

    _, tokenizer = tfeff.tasks.load_pretrained(finished)
    assert isinstance(tokenizer, tfeff.data.BertTokenizer)
    assert tokenizer.vocabulary_size() == 400
    served = tf.saved_model.load(str(finished / "export" / "1"))
    output = served.signatures["fill_mask"](text=tf.constant(["a [MASK] of a layer"]))
    assert output["fillings"].shape == (1, 1, 5)


def test_a_run_that_lost_its_end_goes_on(finished, corpus, tmp_path):
    run_dir = tmp_path / "run"
    shutil.copytree(finished, run_dir)
    before = fingerprint(run_dir)
    for name in ("preset", "export"):
        shutil.rmtree(run_dir / name)
    for name in ("metrics.json", "SHA256SUMS"):
        (run_dir / name).unlink()
    (run_dir / "checkpoints" / "step-00000004.keras").unlink()
    pretrain(settings(run_dir, corpus))
    assert fingerprint(run_dir) == before
    for name in ("metrics.csv", "metrics.json"):
        assert (run_dir / name).read_text() == (finished / name).read_text()


def test_evaluation_and_further_pretraining(finished, corpus, tmp_path):
    own = json.loads((finished / "metrics.json").read_text())
    settings_ = EvaluateSettings(run_dir=str(finished), corpus=(corpus,), batch_size=4)
    found = evaluate(settings_)
    assert {name: found[name] for name in own} == pytest.approx(own, rel=1e-6)

    _, tokenizer = tfeff.tasks.load_pretrained(finished)
    tfeff.data.save_tokenizer(tokenizer, tmp_path / "given.json")
    given = {"tokenizer": str(tmp_path / "given.json"), "steps": 2}
    with pytest.raises(ValueError, match="`tokenizer_kind` must be left out.*given"):
        pretrain(settings(tmp_path / "more", corpus, **given))
    given["tokenizer_kind"] = "sentencepiece"
    pretrain(settings(tmp_path / "more", corpus, **given))
    assert fingerprint(tmp_path / "more") == fingerprint(finished)


def test_fine_tuning(finished, tmp_path):
    (tmp_path / "SST-2").mkdir()
    for split in ("train", "dev"):
        rows = [f"{DOCUMENTS[i]}\t{i % 2}" for i in range(8)]
        text = "\n".join(["sentence\tlabel", *rows])
        (tmp_path / "SST-2" / f"{split}.tsv").write_text(text, encoding="utf-8")
    run_dir = tmp_path / "run"
    finetune(
        FinetuneSettings(
            run_dir=str(run_dir),
            task="SST-2",
            data=str(tmp_path),
            pretrained=str(finished),
            steps=2,
            batch_sizes=(4,),
        )
    )
    served = tf.saved_model.load(str(run_dir / "export" / "1")).signatures["classify"]
    output = served(text=tf.constant(DOCUMENTS[:2]))
    assert all(np.isfinite(output["probabilities"]).ravel())


def test_spans_of_answers_in_their_passage(finished):
    encoder, tokenizer = tfeff.tasks.load_pretrained(finished)
    passage = "Returns the keras.layers of an Array-like, (naïvely) 12 at once."
    answer = "keras.layers"
    start = passage.index(answer)
    question = tfeff.data.Question(
        "a", "What returns?", passage, spans=((start, start + len(answer)),)
    )
    features = tfeff.data.make_span_features([question], tokenizer, 64)
    positions = np.arange(64)
    (found,) = tfeff.data.best_spans(
        features,
        5.0 * (positions == features.start_positions[:, None]),
        5.0 * (positions == features.end_positions[:, None]),
    )
    assert (found.text, found.start) == (answer, start)
