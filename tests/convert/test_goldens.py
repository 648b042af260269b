"""Converted checkpoints compute what the originals compute."""

import json
import os
import shutil
import subprocess
import sys

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close
from tests.convert.conversions import GOLDENS, INPUTS, arrays, check_hidden_states
from tfeff.command.main import main
from tfeff.convert.safetensors import read_safetensors
from tfeff.layers import TwoStreamBlocks

NAMES = sorted(folder.name for folder in GOLDENS.iterdir())
WITH_TOKENS = sorted(path.parent.name for path in GOLDENS.glob("*/tokens.json"))


@pytest.mark.quick("albert", "convbert_small", "roberta")
@pytest.mark.parametrize("name", NAMES)
def test_all_hidden_states(name, preset):
    check_hidden_states(preset(name), name)


def test_there_is_a_golden_of_each_kind():
    assert len(NAMES) == 22
    for name in NAMES:
        golden = arrays(name)
        assert golden["padding_mask"].sum(axis=1).tolist() == [11, 7, 2]
        assert set(np.unique(golden["segment_ids"])) == {0, 1}
        outputs = golden.get("hidden_states", golden.get("blocks"))
        assert outputs.std() > 0.5


@pytest.mark.quick("albert", "bert", "bert_pretraining", "electra_discriminator")
@pytest.mark.parametrize("name", WITH_TOKENS)
def test_tokenizers_give_the_ids_of_hugging_face(name, preset):
    tokenizer = keras_hub.tokenizers.Tokenizer.from_preset(preset(name))
    rows = json.loads((GOLDENS / name / "tokens.json").read_text("utf-8"))
    assert len(rows) > 10
    batch = tokenizer([text for text, _ in rows])
    for (text, ids), row in zip(rows, batch):
        assert [int(i) for i in tokenizer(text)] == ids, text
        assert [int(i) for i in row] == ids, text


@pytest.mark.slow
def test_special_tokens_of_xlnet(preset):
    tokenizer = keras_hub.tokenizers.Tokenizer.from_preset(preset("xlnet"))
    names = ("cls", "sep", "pad", "mask")
    ids = [getattr(tokenizer, f"{name}_token_id") for name in names]
    assert ids == [3, 4, 5, 6]


@pytest.mark.slow
def test_a_tokenizer_serves_text(preset, tmp_path):
    directory = preset("bert")
    tokenizer = keras_hub.tokenizers.Tokenizer.from_preset(directory)
    encoder = tfeff.encoders.Encoder.from_preset(directory)
    tfeff.export.save_for_serving(encoder, tokenizer, tmp_path / "served")
    text = "the cat"
    ids = [tokenizer.cls_token_id, *tokenizer(text), tokenizer.sep_token_id]
    row = np.array([ids], "int32")
    hidden = encoder(
        {
            "token_ids": row,
            "segment_ids": np.zeros_like(row),
            "padding_mask": np.ones_like(row),
        }
    )["sequence_output"]
    served = tf.saved_model.load(tmp_path / "served")
    outputs = served.signatures["token_embeddings"](text=tf.constant([text]))
    found = outputs["embeddings"].numpy()[0, : len(ids)]
    assert_close(found, np.asarray(hidden)[0], 1e-5)


@pytest.mark.slow
def test_two_streams_of_xlnet(preset):
    golden = arrays("xlnet")
    encoder = tfeff.encoders.Encoder.from_preset(preset("xlnet"))
    streams = TwoStreamBlocks(encoder.blocks)
    hidden = encoder.embedding(golden["token_ids"], golden["segment_ids"])
    arguments = dict(
        padding_mask=golden["padding_mask"],
        target_positions=golden["target_positions"],
        segment_ids=golden["segment_ids"],
    )
    streams(hidden, golden["ranks"], **arguments)
    # The query stream's first state has no place in an encoder.
    tensors = read_safetensors(str(GOLDENS / "xlnet"))
    streams.mask_embedding.assign(tensors["transformer.mask_emb"].read()[0, 0])
    content, query = streams(hidden, golden["ranks"], **arguments)
    real, used = golden["padding_mask"].astype(bool), golden["target_used"]
    for stream, places in (("content", real), ("query", used)):
        actual = np.asarray({"content": content, "query": query}[stream])
        assert_close(actual[places], golden[stream][places], 1e-5, stream)


def test_load_gives_the_encoder_in_memory():
    golden = arrays("bert")
    encoder = tfeff.convert.load(GOLDENS / "bert")
    outputs = encoder({name: golden[name] for name in INPUTS})
    real = golden["padding_mask"].astype(bool)
    expected = golden["hidden_states"][-1][real]
    assert_close(np.asarray(outputs["sequence_output"])[real], expected, 1e-5)


def test_the_command_says_what_it_wrote_and_left_out(tmp_path, capsys):
    destination = tmp_path / "new" / "preset"
    assert main(["convert", str(GOLDENS / "bert_pretraining"), str(destination)]) == 0
    said = capsys.readouterr().out
    assert f"Wrote {destination}: an encoder of 2 layers" in said
    assert "BertTokenizer of" in said
    assert "With its heads: masked_lm, next_sentence, pooler" in said
    assert "Left out" not in said
    assert [entry.name for entry in destination.parent.iterdir()] == ["preset"]


@pytest.mark.slow
def test_the_command_in_a_process_of_its_own(tmp_path):
    destination = tmp_path / "preset"
    command = [sys.executable, "-m", "tfeff", "convert", GOLDENS / "albert_groups"]
    root = str(GOLDENS.parents[2])
    finished = subprocess.run(
        [*command, destination],
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "Without a tokenizer" in finished.stdout
    check_hidden_states(destination, "albert_groups")


def test_converted_encoders_keep_the_dropout_of_their_configuration(preset):
    bert = tfeff.encoders.Encoder.from_preset(preset("bert"))
    assert (bert.dropout, bert.blocks[0].attention.dropout) == (0.1, 0.1)
    albert = tfeff.encoders.Encoder.from_preset(preset("albert"))
    assert (albert.dropout, albert.blocks[0].attention.dropout) == (0.0, 0.0)


@pytest.mark.quick("convbert_base")
@pytest.mark.parametrize("name", ["bert", "albert", "convbert_base", "garden_bert"])
def test_both_rates_of_dropout_are_kept(name, tmp_path):
    source = shutil.copytree(GOLDENS / name, tmp_path / "source")
    (path,) = (x for x in source.glob("*config.json") if "token" not in x.name)
    rates = {"hidden_dropout_prob": 0.25, "attention_probs_dropout_prob": 0.125}
    path.write_text(json.dumps(json.loads(path.read_text()) | rates))
    tfeff.convert.convert(source, tmp_path / "preset")
    encoder = tfeff.encoders.Encoder.from_preset(str(tmp_path / "preset"))
    assert (encoder.dropout, encoder.attention_dropout) == (0.25, 0.125)
    for block in encoder.blocks:
        assert (block.dropout, block.attention.dropout) == (0.25, 0.125)
