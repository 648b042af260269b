"""Published discriminators and generators become the objective that trained them."""

import json
import shutil

import numpy as np
import pytest

import tfeff
from tests.checks import assert_close
from tests.convert.authors import electra_pretraining, save
from tests.convert.conversions import (
    GOLDENS,
    HEAD_GOLDENS,
    INPUTS,
    write_safetensors,
)
from tfeff.convert import convert, load_replaced_token
from tfeff.convert.safetensors import read_safetensors

PAIR = (HEAD_GOLDENS / "electra_discriminator", HEAD_GOLDENS / "electra_generator")
TABLE = "electra.embeddings.word_embeddings.weight"


def arrays(name):
    with np.load(HEAD_GOLDENS / name / "outputs.npz") as file:
        return dict(file)


def close(found, expected, name):
    assert_close(np.asarray(found), expected, 1e-4, name)
    assert np.abs(found - expected).max() < 1e-5 and expected.std() > 0.05


def copies(folder):
    """Copies of both networks, with a tokenizer."""
    for source in PAIR:
        target = shutil.copytree(source, folder / source.name)
        shutil.copy(GOLDENS / "bert" / "vocab.txt", target)
    return [folder / source.name for source in PAIR]


def check_equal(one, other):
    assert len(one.weights) > 100
    for weight, expected in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(weight.numpy(), expected.numpy(), weight.path)


def test_logits_of_both_networks():
    model, tokenizer = load_replaced_token(*PAIR, discriminator_weight=25.0)
    assert tokenizer is None and model.discriminator_weight == 25.0
    assert model.share_embeddings
    assert model.activation == "relu"
    assert model.generator_head["activation"] == "gelu"
    golden = arrays("electra_generator")
    found = model({name: golden[name] for name in (*INPUTS, "mask_positions")})
    close(found["masked_lm"], golden["masked_lm"], "generator")
    # The token at position 0 is never replaced: the discriminator reads the text.
    golden = arrays("electra_discriminator")
    inputs = {name: golden[name] for name in INPUTS}
    inputs["mask_positions"] = np.zeros((3, 1), "int32")
    real = golden["padding_mask"].astype(bool)
    found = np.asarray(model(inputs)["replaced"])
    close(found[real], golden["replaced"][real], "discriminator")


@pytest.mark.slow
def test_presets_keep_the_heads_and_then_both_networks(tmp_path):
    expected, _ = load_replaced_token(*PAIR)
    presets = []
    for source, head in zip(copies(tmp_path), ("replaced_token", "masked_lm")):
        presets.append(tmp_path / head)
        assert convert(source, presets[-1]).heads == (head,)
    model, tokenizer = load_replaced_token(*presets)
    check_equal(model, expected)
    tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / "both")
    again, _ = tfeff.tasks.load_task(tmp_path / "both")
    check_equal(again, expected)
    assert again.share_embeddings
    assert again.get_config() == model.get_config()
    # A preset of both is one of the discriminator, too.
    again, _ = load_replaced_token(tmp_path / "both", PAIR[1])
    check_equal(again, expected)


def test_a_checkpoint_of_the_authors_holds_both(tmp_path):
    save(electra_pretraining(), tmp_path / "model.ckpt")
    (tmp_path / "config.json").write_text(json.dumps(dict(num_attention_heads=4)))
    model, _ = load_replaced_token(tmp_path)
    # The generator's heads are of the discriminator's size, 24 / 4.
    assert model.generator.num_heads == 16 * 4 // 24
    names = [GOLDENS / f"electra_{kind}" for kind in ("discriminator", "generator")]
    expected, _ = load_replaced_token(*names)
    check_equal(model, expected)
    assert expected.generator_head["activation"] == "gelu"


@pytest.mark.slow
def test_tables_that_differ_are_not_shared(tmp_path):
    discriminator, generator = copies(tmp_path)
    tensors = {k: t.read() for k, t in read_safetensors(str(generator)).items()}
    tensors[TABLE][3, 1] += 1
    write_safetensors(generator / "model.safetensors", tensors)
    model, tokenizer = load_replaced_token(discriminator, generator)
    assert not model.share_embeddings and tokenizer is not None
    tables = [
        np.asarray(encoder.token_embedding.embeddings)
        for encoder in (model.generator, model.encoder)
    ]
    assert np.argwhere(tables[0] != tables[1]).tolist() == [[3, 1]]
    tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / "both")
    check_equal(tfeff.tasks.load_task(tmp_path / "both")[0], model)


@pytest.mark.slow
def test_what_does_not_fit_is_refused(tmp_path):
    with pytest.raises(ValueError, match="`discriminator`.*'replaced_token'.*'masked_"):
        load_replaced_token(PAIR[1], PAIR[0])
    with pytest.raises(ValueError, match="`generator`.*'masked_lm'.*'replaced_token'"):
        load_replaced_token(PAIR[0])
    for names in (["nowhere"], [PAIR[0], "nowhere"]):
        name = ("discriminator", "generator")[len(names) - 1]
        with pytest.raises(ValueError, match=f"`{name}` must.*{name}='nowhere'"):
            load_replaced_token(*names)
    with pytest.raises(TypeError, match="`generator` must be a path"):
        load_replaced_token(PAIR[0], 3)
    discriminator, generator = copies(tmp_path)
    words = (generator / "vocab.txt").read_text().split("\n")
    words[9], words[10] = words[10], words[9]
    (generator / "vocab.txt").write_text("\n".join(words))
    # A stray copy of weights makes no preset of a source.
    (generator / "model.weights.h5.bak").write_bytes(b"")
    with pytest.raises(ValueError, match="`generator` must have the vocabulary of"):
        load_replaced_token(discriminator, generator)
