"""Heads of published masked language models, which presets keep."""

import math
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import tfeff
from tests.checks import assert_close
from tests.convert.conversions import GOLDENS, INPUTS, arrays, changed, copied
from tfeff.command.main import main
from tfeff.convert.safetensors import read_safetensors
from tfeff.convert.tf_checkpoint import read_tf_checkpoint

BERT = "cls.predictions"
WORDS = "embeddings.word_embeddings.weight"
# Names of the dense layer, the norm and the bias, and of the table.
NAMES = {
    "bert_pretraining": (
        f"{BERT}.transform.dense",
        f"{BERT}.transform.LayerNorm",
        f"{BERT}.bias",
        "bert.embeddings.word_embeddings.weight",
    ),
    "albert": (
        "predictions.dense",
        "predictions.LayerNorm",
        "predictions.bias",
        "albert.embeddings.word_embeddings.weight",
    ),
}
GARDEN = "garden_bert_pretrainer"


def gelu_tanh(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * (1 + np.tanh(inner)) / 2


def literal_logits(hidden, kernel, bias, norm, table, output_bias, activation, epsilon):
    """`LayerNorm(g(x W + b)) Eᵀ + c` of vectors [N, D], one after the other."""
    logits = []
    for vector in hidden:
        inner = activation(vector @ kernel + bias)[None]
        inner = inner - inner.mean()
        unit = inner[0] / np.sqrt(np.mean(inner**2) + epsilon)
        logits.append(table @ (unit * norm[0] + norm[1]) + output_bias)
    return np.stack(logits)


def head_of(name):
    """Kernel, bias, (gamma, beta), table and bias of the logits, in float64."""
    if name == GARDEN:
        (index,) = (GOLDENS / name).glob("*.index")
        tensors = read_tf_checkpoint(str(index).removesuffix(".index"))
        dense, norm, bias = (
            f"masked_lm/{part}" for part in ("dense", "layer_norm", "output_bias.Sbias")
        )
        keys = (f"{dense}/kernel", f"{dense}/bias", f"{norm}/gamma", f"{norm}/beta")
        keys += ("masked_lm/embedding_table", bias)
    else:
        tensors = read_safetensors(str(GOLDENS / name))
        dense, norm, bias, table = NAMES[name]
        keys = (f"{dense}.weight", f"{dense}.bias", f"{norm}.weight", f"{norm}.bias")
        keys += (table, bias)
    kernel, offset, gamma, beta, table, bias = (
        tensors[key].read().astype("float64") for key in keys
    )
    kernel = kernel if name == GARDEN else kernel.T
    return kernel, offset, (gamma, beta), table, bias


def with_tokenizer(name, preset, folder):
    """The preset of a golden, with BERT's tokenizer if it has none."""
    if name != GARDEN:
        return preset(name)
    source = copied(name, folder)
    shutil.copy(GOLDENS / "bert" / "vocab.txt", source)
    tfeff.convert.convert(source, folder / "preset")
    return folder / "preset"


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [("bert_pretraining", 1e-3), ("albert", 1e-12), (GARDEN, 1e-12)],
)
def test_logits_are_those_of_the_published_head(name, epsilon, preset, tmp_path):
    model, _ = tfeff.tasks.load_masked_lm(with_tokenizer(name, preset, tmp_path))
    golden = arrays(name)
    positions = np.array([[1, 6, 0], [0, 3, 2], [1, 0, 0]], "int32")
    inputs = {key: golden[key] for key in INPUTS} | {"mask_positions": positions}
    found = np.asarray(model(inputs))
    states = golden.get("hidden_states", golden.get("blocks"))[-1].astype("float64")
    for row in range(len(positions)):
        expected = literal_logits(
            states[row, positions[row]], *head_of(name), gelu_tanh, epsilon
        )
        assert_close(found[row], expected, 1e-4, f"row {row}")


@pytest.mark.slow
def test_the_command_says_so_and_replaces_words_by_it(tmp_path, capsys):
    source = GOLDENS / "bert_pretraining"
    assert main(["convert", str(source), str(tmp_path / "preset")]) == 0
    said = capsys.readouterr().out
    assert "With its heads: masked_lm, next_sentence, pooler\n" in said
    assert "Left out: masked language model head" not in said
    masked_lm, tokenizer = tfeff.tasks.load_masked_lm(tmp_path / "preset")
    texts = tfeff.data.TextExamples(("The quick fox",), None, None, None, (0,))
    more = tfeff.tasks.augment(texts, masked_lm, tokenizer, copies=4, rate=1.0)
    assert len(more) == 5 and len(set(more.first)) > 1


def test_what_has_no_head_is_named(preset, tmp_path):
    with pytest.raises(ValueError, match=r"a run of.*'masked_lm'.*\['pooler'\]"):
        tfeff.tasks.load_masked_lm(preset("bert"))
    # A head with a table of its own is not kept.
    source = changed("bert_pretraining", tmp_path, tie_word_embeddings=False)
    with pytest.warns(UserWarning, match="masked_lm has a table of its own"):
        converted = tfeff.convert.convert(source, tmp_path / "untied")
    assert "masked_lm" not in converted.heads
    assert converted.ignored["masked language model head"] == 5


@pytest.mark.quick("roberta-lm_head.bias-lm_head.decoder.bias")
@pytest.mark.parametrize(
    ("name", "table", "copy"),
    [
        ("roberta", f"roberta.{WORDS}", "lm_head.decoder.weight"),
        ("roberta", "lm_head.bias", "lm_head.decoder.bias"),
        ("xlnet", "transformer.word_embedding.weight", "lm_loss.weight"),
        ("distilbert", f"distilbert.{WORDS}", "vocab_projector.weight"),
    ],
)
def test_tables_that_were_trained_apart_are_named(name, table, copy, tmp_path, recwarn):
    """Whatever the configuration says of them, or does not say."""
    source = copied(name, tmp_path)
    tensors = load_file(source / "model.safetensors")
    head = {"xlnet": "permutation_lm"}.get(name, "masked_lm")
    for difference in (0.0, 1e-3):
        tensors[copy] = tensors[table] + np.float32(difference)
        save_file(tensors, source / "model.safetensors")
        converted = tfeff.convert.convert(source, tmp_path / f"preset {difference}")
        said = f"{head} has values of its own: {copy}"
        is_said = any(said in str(warning.message) for warning in recwarn)
        assert is_said is bool(difference)
        assert (head in converted.heads) is not is_said


def test_damaged_heads_are_named(tmp_path):
    converted = tfeff.convert.convert(GOLDENS / "bert_pretraining", tmp_path / "p")
    assert "masked_lm" in converted.heads
    path = tmp_path / "p" / "masked_lm_head.npz"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"masked_lm_head\.npz"):
        tfeff.tasks.load_masked_lm(tmp_path / "p")
    (tmp_path / "p" / "SHA256SUMS").unlink()
    with (
        pytest.warns(UserWarning, match="SHA256SUMS"),
        pytest.raises(ValueError, match=r"masked_lm_head\.npz is damaged"),
    ):
        tfeff.tasks.load_masked_lm(tmp_path / "p")


def test_a_model_of_ones_own_comes_back(tmp_path):
    sizes = {"vocabulary_size": 60, "num_layers": 1, "hidden_dim": 8}
    encoder = tfeff.encoders.build("bert_tiny", intermediate_dim=8, **sizes)
    settings = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-5}
    model = tfeff.objectives.MaskedLM(encoder, **settings)
    rng = np.random.default_rng(0)
    for weight in model.trainable_variables:
        weight.assign(rng.normal(size=weight.shape))
    tokenizer = tfeff.data.train_tokenizer(["a cat and a dog, one two"] * 9, 17)
    tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / "preset")
    loaded, known = tfeff.tasks.load_masked_lm(tmp_path / "preset")
    assert loaded.head_settings == settings
    assert known.get_vocabulary() == tokenizer.get_vocabulary()
    for one, other in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    # Who reads the encoder alone need not know of the head.
    encoder, _ = tfeff.tasks.load_pretrained(tmp_path / "preset")
    assert encoder.num_layers == 1
    config = model.get_config()
    for name in settings:  # As models of before there were settings.
        config.pop(name)
    old = tfeff.objectives.MaskedLM.from_config(config)
    assert old.head_settings == {"activation": "gelu", "layer_norm_epsilon": 1e-12}
    with pytest.raises(ValueError, match="`activation`.*'gelo'"):
        tfeff.objectives.MaskedLM(encoder, activation="gelo")
