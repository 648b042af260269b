"""Models of sentence-transformers become a `SentenceEmbedding` with their numbers."""

import json

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.convert.conversions import INPUTS, arrays, copied
from tests.convert.sentence_models import (
    OLD_NAMES,
    write_modules,
    write_sentence_model,
)
from tfeff.command.main import main

TEXTS = ["the cat sat on the mat", "a dog", "one two three four five six seven eight"]


def source_of(folder, *kinds, name="bert", **settings):
    source = copied(name, folder)
    write_sentence_model(source, *kinds, **settings)
    return source


def pooled(golden, pooling, normalize):
    """The embeddings of a golden's batch, from the states that transformers gave."""
    rows = []
    for states, mask in zip(golden["hidden_states"][-1], golden["padding_mask"]):
        real = states[mask.astype(bool)].astype("float64")
        row = {"cls": real[0], "mean": real.mean(axis=0), "lasttoken": real[-1]}
        rows.append(row[pooling] / (np.linalg.norm(row[pooling]) if normalize else 1))
    return np.array(rows)


@pytest.mark.parametrize("today", [False, True])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken"])
def test_embeddings_are_those_of_the_original(pooling, normalize, today, tmp_path):
    kinds = ["Normalize"] * normalize
    source = source_of(tmp_path, *kinds, pooling=pooling, today=today)
    model, tokenizer = tfeff.convert.load_task(source)
    assert type(model) is tfeff.tasks.SentenceEmbedding and tokenizer is not None
    assert model.pooling == pooling.removesuffix("token")
    assert model.normalize is normalize
    golden = arrays("bert")
    found = model({name: golden[name][:, None] for name in INPUTS})[:, 0]
    expected = pooled(golden, pooling, normalize)
    assert np.ptp(golden["padding_mask"].sum(axis=1)) > 2  # Padding would show.
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_a_preset_keeps_pooling_length_and_norm(tmp_path, capsys):
    source = source_of(tmp_path, "Normalize", pooling="cls", length=6)
    assert main(["convert", str(source), str(tmp_path / "preset")]) == 0
    said = capsys.readouterr().out
    assert "A SentenceEmbedding: tfeff.tasks.load_task reads it\n" in said
    model, tokenizer = tfeff.tasks.load_task(tmp_path / "preset")
    settings = {"pooling": "cls", "sequence_length": 6, "normalize": True}
    assert settings.items() <= model.get_config().items()
    # Cut at six tokens, as by the original, unless another length is given.
    encoder = model.encoder
    rows = tfeff.data.text_features(tfeff.data.TextExamples(TEXTS), tokenizer, 6)
    states = np.asarray(encoder(rows.inputs)["sequence_output"])[:, 0]
    expected = states / np.linalg.norm(states, axis=1, keepdims=True)
    np.testing.assert_allclose(model.embed(TEXTS, tokenizer), expected, atol=1e-5)
    longer = model.embed(TEXTS, tokenizer, sequence_length=13)
    assert np.abs(longer[2] - expected[2]).max() > 1e-3
    tfeff.export.save_for_serving(model, tokenizer, tmp_path / "export")
    served = tf.saved_model.load(tmp_path / "export").signatures["sentence_embeddings"]
    answer = served(text=tf.constant(TEXTS))["embeddings"]
    np.testing.assert_allclose(answer, expected, atol=1e-5)


@pytest.mark.quick("mean-True")
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_written_modules_are_read_as_the_same_model(pooling, normalize, tmp_path):
    kinds = ["Normalize"] * normalize
    theirs = pooling.replace("last", "lasttoken")
    source = source_of(tmp_path, *kinds, pooling=theirs, length=6)
    model, tokenizer = tfeff.convert.load_task(source)
    folder = tmp_path / "again"
    written = tfeff.convert.to_huggingface(model, folder, tokenizer)
    assert written.model == "BertModel"
    assert written.modules == ("Transformer", "Pooling", *kinds)
    again, tokens = tfeff.convert.load_task(folder)
    settings = ("pooling", "sequence_length", "normalize")
    assert [getattr(again, x) for x in settings] == [pooling, 6, normalize]
    for weight, value in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(weight, value)
    np.testing.assert_array_equal(
        again.embed(TEXTS, tokens), model.embed(TEXTS, tokenizer)
    )
    config = json.loads((folder / "1_Pooling" / "config.json").read_text())
    assert config.pop("word_embedding_dimension") == model.encoder.hidden_dim
    mode = f"pooling_mode_{OLD_NAMES[theirs]}"
    assert [name for name, value in config.items() if value] == [mode]
    # Versions before 2.3 do not know the last token.
    assert ("pooling_mode_lasttoken" in config) is (pooling == "last")


def test_the_longest_text_is_written(tmp_path):
    model, _ = tfeff.convert.load_task(source_of(tmp_path))
    tfeff.convert.to_huggingface(model, tmp_path / "again")
    lengths = json.loads((tmp_path / "again/sentence_bert_config.json").read_text())
    assert lengths["max_seq_length"] == model.encoder.max_sequence_length


@pytest.mark.parametrize(
    ("name", "pooling", "message"),
    [("xlnet", "mean", "put <cls> at the end"), ("bert", "layerwise", "no pooling='l")],
)
def test_embeddings_without_such_modules_are_told(name, pooling, message, tmp_path):
    encoder = tfeff.convert.load(copied(name, tmp_path))
    model = tfeff.tasks.SentenceEmbedding(encoder, pooling)
    with pytest.warns(UserWarning, match=message):
        written = tfeff.convert.to_huggingface(model, tmp_path / "again")
    assert written.modules == ()
    assert not (tmp_path / "again" / "modules.json").exists()


@pytest.mark.slow
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize("name", ["bert", "albert", "electra_discriminator"])
def test_sentence_transformers_give_the_same_vectors(
    name, pooling, normalize, tmp_path
):
    library = pytest.importorskip("sentence_transformers")
    source = copied(name, tmp_path)
    tokenizer = tfeff.convert.load_tokenizer(source)
    model = tfeff.tasks.SentenceEmbedding(
        tfeff.convert.load(source), pooling, sequence_length=6, normalize=normalize
    )
    tfeff.convert.to_huggingface(model, tmp_path / "again", tokenizer)
    theirs = library.SentenceTransformer(str(tmp_path / "again"), device="cpu")
    found = theirs.encode(TEXTS)
    np.testing.assert_allclose(model.embed(TEXTS, tokenizer), found, atol=1e-5)


@pytest.mark.parametrize(("length", "expected"), [(13, None), (99, None), (None, 9)])
def test_lengths(length, expected, tmp_path):
    source = source_of(tmp_path, length=length)
    path = source / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"model_max_length": 9}))
    assert tfeff.convert.load_task(source)[0].sequence_length == expected


def test_heads_of_pretraining_are_kept_beside_it(tmp_path):
    source = source_of(tmp_path, name="bert_pretraining")
    config = json.loads((source / "config.json").read_text())
    assert config["architectures"] == ["BertForPreTraining"]
    converted = tfeff.convert.convert(source, tmp_path / "preset")
    assert type(converted.task) is tfeff.tasks.SentenceEmbedding
    assert "masked_lm" in converted.heads
    assert tfeff.tasks.load_masked_lm(tmp_path / "preset")


@pytest.mark.parametrize(
    ("kinds", "settings", "message"),
    [
        (["Dense", "Normalize"], {}, r"Pooling \('1_Pooling'\), Dense \('2_Dense'\), "),
        ([], {"pooling": "max"}, r"asks for a pooling of \['max_tokens'\]"),
        ([], {"pooling": ["cls", "mean"], "today": True}, r"of \['cls', 'mean'\]"),
    ],
)
def test_what_is_not_kept_is_told(kinds, settings, message, tmp_path):
    source = source_of(tmp_path, *kinds, **settings)
    with pytest.raises(ValueError, match=message):
        tfeff.convert.load_task(source)
    with pytest.warns(UserWarning, match=rf"are left out, since .*{message}"):
        converted = tfeff.convert.convert(source, tmp_path / "preset")
    assert converted.task is None
    with pytest.raises(ValueError, match="must be a preset of a task"):
        tfeff.tasks.load_task(tmp_path / "preset")


def test_texts_of_xlnet_are_others(tmp_path):
    with pytest.raises(ValueError, match="texts that end in <sep> <cls>"):
        tfeff.convert.load_task(source_of(tmp_path, name="xlnet"))


def test_a_prompt_is_told(tmp_path):
    source = source_of(tmp_path)
    path = source / "config_sentence_transformers.json"
    prompts = {"prompts": {"query": "query: "}}
    path.write_text(json.dumps(prompts | {"default_prompt_name": "query"}))
    with pytest.warns(UserWarning, match="default_prompt_name='query'.*begin the text"):
        tfeff.convert.load_task(source)


def test_prompts_that_do_not_count_are_told(tmp_path):
    source = source_of(tmp_path, include_prompt=False)
    with pytest.warns(UserWarning, match="include_prompt=False"):
        tfeff.convert.load_task(source)


def test_the_modules_count_where_the_class_is_unknown(tmp_path):
    source = source_of(tmp_path)
    path = source / "config.json"
    config = json.loads(path.read_text()) | {"architectures": ["BertForContrast"]}
    path.write_text(json.dumps(config))
    with pytest.warns(UserWarning, match="no model like BertForContrast"):
        converted = tfeff.convert.convert(source, tmp_path / "preset")
    assert type(converted.task) is tfeff.tasks.SentenceEmbedding
    (source / "modules.json").unlink()
    with pytest.raises(ValueError, match="no model like BertForContrast"):
        tfeff.convert.load_task(source)


def test_damaged_modules(tmp_path):
    source = source_of(tmp_path)
    (source / "1_Pooling" / "config.json").unlink()
    with pytest.raises(ValueError, match="1_Pooling/config.json' must be a file"):
        tfeff.convert.convert(source, tmp_path / "preset")
    for first in ("../bert", "a\0b"):
        write_modules(source, "Pooling", first=first)
        with pytest.raises(ValueError, match="must name folders beside it"):
            tfeff.convert.load_task(source)
    (source / "modules.json").write_text('[{"idx": 0, "path": ""}]')
    with pytest.raises(ValueError, match="must give the path and the type"):
        tfeff.convert.load_task(source)
    assert tfeff.convert.load(source).num_layers == 2


def of_library(source, **values):
    path = source / "config_sentence_transformers.json"
    path.write_text(json.dumps(values))
    return source


def test_shortened_vectors_are_not_kept(tmp_path):
    source = of_library(source_of(tmp_path), truncate_dim=4)
    with pytest.raises(ValueError, match="cuts the vectors, truncate_dim=4"):
        tfeff.convert.load_task(source)


def test_other_readings_of_texts_are_not_kept(tmp_path):
    source = source_of(tmp_path)
    path = source / "sentence_bert_config.json"
    kwargs = {"text": {"max_length": 4}}
    path.write_text(json.dumps({"processing_kwargs": kwargs}))
    with pytest.raises(ValueError, match="reads texts otherwise, processing_kwargs="):
        tfeff.convert.load_task(source)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"similarity_fn_name": "dot"}, "compares vectors by 'dot'"),
        ({"prompts": {"query": "query: "}}, "has prompts for texts of some kinds"),
    ],
)
def test_what_is_beside_the_modules_is_told(values, message, tmp_path):
    source = of_library(source_of(tmp_path), **values)
    with pytest.warns(UserWarning, match=message):
        tfeff.convert.load_task(source)
