"""ELECTRA, RoBERTa and DistilBERT: what differs from BERT."""

import re
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.convert.conversions import (
    GOLDENS,
    changed,
    check_hidden_states,
    copied,
    write_safetensors,
)
from tfeff import ops as functional
from tfeff.convert import convert, load, to_huggingface
from tfeff.convert.config import Config
from tfeff.convert.safetensors import read_safetensors
from tfeff.convert.sources import FAMILIES
from tfeff.data import BertTokenizer
from tfeff.encoders import presets
from tfeff.export import save_for_serving

HEADS = {
    "masked_lm": "masked language model",
    "next_sentence": "next sentence",
    "permutation_lm": "permutation language model",
    "pooler": "pooler",
    "replaced_token": "replaced tokens",
    "sentence_order": "sentence order",
}
KINDS = {
    "SequenceClassification": "texts",
    "TokenClassification": "tokens",
    "QuestionAnswering": "questions",
    "QuestionAnsweringSimple": "simple questions",
    "MultipleChoice": "choice",
}


def test_the_page_has_the_table_of_families():
    page = (Path(__file__).parents[2] / "docs" / "CONVERT.md").read_text("utf-8")
    section = page.partition("## Formats that")[2].partition("\n## ")[0]
    found = {}
    for row in re.findall(r"^\| `.*\|$", section, re.MULTILINE):
        names, _, heads, kinds = (cell.strip() for cell in row.strip("|").split(" | "))
        for name in names.split(", "):
            found[name.strip("`")] = set(heads.split(", ")), set(kinds.split(", "))
    assert found == {
        name: ({HEADS[h] for h in form.heads}, {KINDS[kind] for kind in form.tasks})
        for name, form in FAMILIES.items()
    }


@pytest.mark.quick("camembert")
@pytest.mark.parametrize("model_type", ["camembert", "xlm-roberta"])
def test_robertas_of_other_names(model_type, tmp_path):
    source = changed("roberta", tmp_path, model_type=model_type)
    convert(source, tmp_path / "preset")
    check_hidden_states(tmp_path / "preset", "roberta")


def test_the_first_rows_of_robertas_positions_are_not_used(tmp_path):
    encoder = load(GOLDENS / "roberta")
    assert encoder.max_sequence_length == 15 - 2
    assert encoder.num_segments == 1
    source = copied("roberta", tmp_path)
    tensors = {k: t.read() for k, t in read_safetensors(str(source)).items()}
    table = tensors["roberta.embeddings.position_embeddings.weight"]
    np.testing.assert_array_equal(
        encoder.embedding.position_embedding.embeddings, table[2:]
    )
    table[:2] += 1
    write_safetensors(source / "model.safetensors", tensors)
    for one, other in zip(encoder.get_weights(), load(source).get_weights()):
        np.testing.assert_array_equal(one, other)
    tensors["roberta.embeddings.position_embeddings.weight"] = table[2:].copy()
    write_safetensors(source / "model.safetensors", tensors)
    with pytest.raises(
        ValueError, match=r"weight has shape \(13, 16\), not \(15, 16\)"
    ):
        load(source)


def test_sinusoids_of_distilbert_are_those_of_tfeff():
    encoder = load(GOLDENS / "distilbert_sinusoidal")
    assert encoder.position == "absolute"
    table = np.asarray(encoder.embedding.position_embedding.embeddings)
    expected = functional.sinusoids(np.arange(13, dtype="float32"), 16)
    np.testing.assert_allclose(table, expected, atol=1e-6)


def test_the_preset_is_the_published_distilbert():
    # config.json of distilbert-base-uncased.
    published = dict(
        activation="gelu",
        architectures=["DistilBertForMaskedLM"],
        attention_dropout=0.1,
        dim=768,
        dropout=0.1,
        hidden_dim=3072,
        initializer_range=0.02,
        max_position_embeddings=512,
        model_type="distilbert",
        n_heads=12,
        n_layers=6,
        pad_token_id=0,
        qa_dropout=0.1,
        seq_classif_dropout=0.2,
        sinusoidal_pos_embds=False,
        tie_weights_=True,
        vocab_size=30522,
    )
    arguments = FAMILIES["distilbert"].arguments(Config(published, "config.json"))
    preset = presets()["distilbert_base"]["config"]
    assert {name: arguments[name] for name in preset} == preset
    others = {name: arguments[name] for name in set(arguments) - set(preset)}
    assert others == dict(
        attention="self",
        attention_dropout=None,
        dropout=0.1,
        feedforward={"activation": "gelu"},
        layer_norm_epsilon=1e-12,
        max_sequence_length=512,
    )


@pytest.mark.quick("5-2")
@pytest.mark.parametrize("heads, ratio", [(8, 4), (2, 1), (5, 2), (11, 4)])
def test_convberts_of_other_ratios_of_heads(heads, ratio, tmp_path):
    """Two heads of self-attention, each of a quarter of the width, in all of them."""
    source = changed(
        "convbert_base", tmp_path, num_attention_heads=heads, head_ratio=ratio
    )
    convert(source, tmp_path / "preset")
    check_hidden_states(tmp_path / "preset", "convbert_base")
    to_huggingface(tmp_path / "preset", tmp_path / "out")
    written = Config.read(str(tmp_path / "out" / "config.json"))
    assert (written.get("num_attention_heads"), written.get("head_ratio")) == (4, 2)


@pytest.mark.parametrize("heads, ratio", [(1, 2), (3, 2), (2, 4), (4, 4)])
def test_a_convbert_with_one_head_of_self_attention(heads, ratio):
    config = dict(
        vocab_size=9,
        num_hidden_layers=1,
        num_attention_heads=heads,
        head_ratio=ratio,
        hidden_size=8,
        intermediate_size=8,
    )
    arguments = FAMILIES["convbert"].arguments(Config(config, "config.json"))
    assert arguments["num_heads"] == 2


@pytest.mark.slow
def test_a_served_convbert_reads_padding(tmp_path):
    encoder = load(GOLDENS / "convbert_base")
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "fox"]
    tokenizer = BertTokenizer(pieces)
    with pytest.warns(UserWarning, match="convolutions of `model` read padding"):
        save_for_serving(encoder, tokenizer, tmp_path / "out")
    served = tf.saved_model.load(str(tmp_path / "out")).signatures
    embed = served["sentence_embeddings"]
    alone = embed(text=tf.constant(["the fox"]))["embeddings"][0]
    beside = embed(text=tf.constant(["the fox", "fox the " * 3]))["embeddings"][0]
    assert np.abs(alone - beside).max() > 1e-3
    ids = np.array([[2, 5, 6, 3]], "int32")
    inputs = dict(token_ids=ids, segment_ids=0 * ids, padding_mask=0 * ids + 1)
    expected = np.asarray(encoder(inputs)["sequence_output"])[0, 1:3].mean(0)
    np.testing.assert_allclose(alone, expected, atol=1e-5)
