"""`tfeff embed`: trained, scored and served."""

import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.data.finetuning.sentence_features import SentenceFeatures
from tfeff.recipes import EmbedSettings, embed
from tfeff.recipes.embedding import make_model
from tfeff.recipes.heads import own_head_names, read_embedding_settings


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An encoder that has never been trained, and files of texts."""
    monkeypatch.chdir(tmp_path)
    for name, dropout in (("preset", 0.1), ("dry", 0.0)):
        encoder = tfeff.encoders.build(
            "bert_tiny",
            vocabulary_size=60,
            num_layers=1,
            hidden_dim=16,
            intermediate_dim=16,
            max_sequence_length=16,
            dropout=dropout,
        )
        tfeff.tasks.save_pretrained(encoder, tokenizer(), name)
    for task in ("STS-B", "SST-2", "RTE"):
        (tmp_path / task).mkdir()
    rows = [
        f"{a}\t{b}\t{i % 5}" for i, (a, b) in enumerate(zip(DOCUMENTS, DOCUMENTS[3:]))
    ]
    for split in ("train", "dev"):
        (tmp_path / "STS-B" / f"{split}.tsv").write_text(
            "\n".join(["sentence1\tsentence2\tscore", *rows])
        )
    (tmp_path / "texts.txt").write_text("\n".join(DOCUMENTS))
    pairs = ["anchor\tpositive", *map("\t".join, zip(DOCUMENTS, DOCUMENTS[1:]))]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs))
    return tmp_path


def settings(**others):
    values = dict(run_dir="run", pretrained="preset", data=".")
    if "examples" in others:
        values |= dict(batch_sizes=(4,), steps=3, eval_every=2, learning_rates=(1e-3,))
    return EmbedSettings(**values | others)


@pytest.mark.slow
def test_trains_scores_and_serves(folder, capsys):
    import tensorflow_text  # noqa: F401

    summary = embed(settings(examples="texts.txt", seeds=(0, 1)))
    assert json.loads((folder / "run" / "metrics.json").read_text()) == summary
    assert set(summary["untrained"]) == {"dev_pearson", "dev_spearman"}
    assert summary["metric"] == "dev_spearman" and len(summary["rows"]) == 1
    assert "before training: dev_pearson" in capsys.readouterr().out
    model, read = tfeff.tasks.load_task("run")
    assert isinstance(model, tfeff.tasks.SentenceEmbedding)
    expected = model.embed(DOCUMENTS, read)
    served = tf.saved_model.load("run/export/1").signatures["sentence_embeddings"]
    embeddings = served(text=tf.constant(DOCUMENTS))["embeddings"].numpy()
    np.testing.assert_allclose(embeddings, expected, atol=1e-5)
    # The best model is the one of the score.
    units = expected / np.linalg.norm(expected, axis=1, keepdims=True)
    dataset = tfeff.datasets.get("STS-B")
    cosines = [units[i] @ units[i + 3] for i in range(len(units) - 3)]
    score = dataset.metrics(dataset.read("dev", "."), np.array(cosines))
    cell = json.loads(Path(summary["best"]["folder"], "metrics.json").read_text())
    assert score["spearman"] == pytest.approx(cell["dev_spearman"], abs=0.02)
    assert embed(settings(examples="texts.txt", seeds=(0, 1))) == summary  # Finished.


@pytest.mark.slow
def test_pairs_in_half_precision_on_the_training_part(folder):
    summary = embed(
        settings(
            examples="pairs.tsv",
            pretrained="dry",
            split="train",
            pooling="cls",
            dtype="mixed_bfloat16",
            train_examples=9,
            lora_rank=2,
        )
    )
    assert set(summary["best"]["mean"]) == {"train_pearson", "train_spearman"}


@pytest.mark.slow
def test_without_examples_the_encoder_is_scored(folder):
    summary = embed(settings())
    assert list(summary) == ["untrained"]
    assert (folder / "run" / "export" / "1").is_dir()
    encoder, _ = tfeff.tasks.load_pretrained("run")
    before, _ = tfeff.tasks.load_pretrained("preset")
    for one, other in zip(encoder.get_weights(), before.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
def test_a_run_is_scored_with_the_query_that_it_has_trained(folder):
    embed(settings(examples="pairs.tsv", pooling="layerwise"))
    again = settings(run_dir="judged", pretrained="run", pooling="layerwise")
    summary = embed(again)
    models = [
        tfeff.training.load_checkpoint(f"{run}/model.keras")
        for run in ("run", "judged")
    ]
    for one, other in zip(*(model.get_weights() for model in models), strict=True):
        np.testing.assert_array_equal(one, other)
    best = json.loads((folder / "run" / "metrics.json").read_text())["best"]["mean"]
    for name, value in summary["untrained"].items():
        assert value == pytest.approx(best[name], abs=1e-6)


def test_a_query_at_a_url(folder):
    encoder, pieces = tfeff.tasks.load_pretrained("preset")
    model = tfeff.tasks.SentenceEmbedding(encoder, "layerwise")
    tfeff.tasks.save_pretrained(model, pieces, "layerwise")
    tfeff.storage.publish("layerwise", "memory://layerwise")
    given = settings(pretrained="memory://layerwise", pooling="layerwise")
    made = make_model(given, encoder)
    (expected,), (found,) = (
        model.heads()["layerwise_pooler"].arrays().values() for model in (model, made)
    )
    np.testing.assert_array_equal(found, expected)
    assert read_embedding_settings("memory://layerwise")["pooling"] == "layerwise"
    assert own_head_names("memory://layerwise") == ["layerwise_pooler"]


def test_a_pooling_that_is_not_the_presets_is_told(folder, capsys, monkeypatch):
    encoder, pieces = tfeff.tasks.load_pretrained("preset")
    model = tfeff.tasks.SentenceEmbedding(encoder, "cls")
    tfeff.tasks.save_pretrained(model, pieces, "cls")
    assert read_embedding_settings("cls")["pooling"] == "cls"
    assert read_embedding_settings("preset") is None

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tfeff.recipes.embedding.make_model", stop)
    for pooling in ("mean", "cls", "last"):
        with pytest.raises(KeyboardInterrupt):
            embed(settings(run_dir=f"run_{pooling}", pretrained="cls", pooling=pooling))
        told = f"pooling: {pooling}; the embeddings of cls are those of --pooling=cls\n"
        assert (told in capsys.readouterr().out) is (pooling != "cls")


def test_lengths_of_texts_and_vectors_are_kept(folder):
    encoder, pieces = tfeff.tasks.load_pretrained("preset")
    model = tfeff.tasks.SentenceEmbedding(encoder, normalize=True)
    tfeff.tasks.save_pretrained(model, pieces, "normalized")
    for pretrained in ("preset", "normalized"):
        model = make_model(settings(pretrained=pretrained, sequence_length=9), encoder)
        assert model.sequence_length == 9
        assert model.normalize is (pretrained == "normalized")


@pytest.mark.slow
def test_rows_of_blocks_have_the_full_length(folder, monkeypatch):
    sizes = dict(vocabulary_size=60, num_layers=1, hidden_dim=16, intermediate_dim=16)
    attention = {"name": "blockwise", "head_blocks": [2, 2]}
    encoder = tfeff.encoders.build(
        "bert_tiny", **sizes, num_heads=4, max_sequence_length=16, attention=attention
    )
    assert encoder.length_dependent
    tfeff.tasks.save_pretrained(encoder, tokenizer(), "blocks")
    lengths, dataset = [], SentenceFeatures.dataset

    def spied(self, *args, **kwargs):
        batches = dataset(self, *args, **kwargs)
        inputs, *_ = next(iter(batches))
        lengths.append(inputs["token_ids"].shape[-1])
        return batches

    monkeypatch.setattr(SentenceFeatures, "dataset", spied)
    embed(settings(examples="pairs.tsv", pretrained="blocks"))
    assert set(lengths) == {16}


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (
            dict(examples="texts.txt", pretrained="dry"),
            "`dropout` must be above 0 for texts alone",
        ),
        (
            dict(examples="pairs.tsv", batch_sizes=(4, 1)),
            r"`batch_sizes` must be at least 2 .*batch_sizes=\[4, 1\]",
        ),
        (
            dict(examples="pairs.tsv", lora_rank=2, sequence_length=32),
            "`lora_rank` must be left out where .* sequence_length=32$",
        ),
        (dict(examples="pairs.tsv", save_lora=True), "`save_lora` must be left out"),
        (
            dict(examples="pairs.tsv", batch_sizes=(2**28,), sequence_length=16),
            "`batch_sizes` must .*batch_sizes=268435456, .*sequence_length=16$",
        ),
        (dict(task="SST-2"), "`task` must be a data set of pairs with ratings"),
        (dict(pooling="layerwise"), "`pooling` must be another than 'layerw"),
        (dict(metric="accuracy", examples="texts.txt"), "`metric` must be one of"),
        (dict(split="test"), "`data` must hold"),
        (dict(split="tset"), "`split` must be one of"),
        (dict(examples="none.txt"), "`examples` must exist.*='none.txt'"),
        (dict(temperature=0.0, examples="pairs.tsv"), "`temperature` must"),
        (dict(train_examples=99, examples="pairs.tsv"), "`train_examples` must"),
        (
            dict(steps=3, dropout=0.1),
            "`examples` must be given with .*examples=None and dropout, steps$",
        ),
    ],
)
def test_bad_settings_are_named_before_any_work(folder, others, message, capsys):
    with pytest.raises(ValueError, match=message):
        embed(settings(**others))
    assert "before training" not in capsys.readouterr().out
    assert not (folder / "run" / "cells").exists()


def test_examples_are_given_once(folder):
    examples = tfeff.data.SentenceExamples(rows=[(text,) for text in DOCUMENTS])
    with pytest.raises(ValueError, match="`examples` must be given once.*'texts.txt'"):
        embed(settings(examples="texts.txt"), examples)
    with pytest.raises(ValueError, match="examples=None and callbacks"):
        embed(settings(), callbacks=[print])
    assert not (folder / "run").exists()


def test_an_empty_text_of_a_pair_is_named_before_any_work(folder, monkeypatch):
    path = folder / "STS-B" / "dev.tsv"
    path.write_text(
        "index\tsentence1\tsentence2\tscore\n7\ta\tb\t1\n9\tc\t \t2\n3\td\te\t3\n"
    )
    monkeypatch.setattr(tfeff.tasks, "load_pretrained", None)
    message = r"`task` must .*task='STS-B', whose example '9' of 'dev' is \('c', ' '\)"
    with pytest.raises(ValueError, match=message):
        embed(settings())
    assert not (folder / "run").exists()


def test_a_trained_run_is_not_replaced_by_one_without_examples(folder):
    (folder / "run/cells").mkdir(parents=True)
    (folder / "run/config.json").write_text(json.dumps(settings().config()))
    with pytest.raises(ValueError, match="`examples` must be given again.*'run'"):
        embed(settings())
    assert not (folder / "run/model.keras").exists()
