"""The authors' ConvBERT checkpoints give what Hugging Face's of the same weights do."""

import json
import math
import re
import shutil

import numpy as np
import pytest

import tfeff
from tests.checks import assert_close
from tests.convert.authors import save
from tests.convert.conversions import GOLDENS, INPUTS, arrays, check_hidden_states
from tfeff.command.main import main
from tfeff.convert.safetensors import read_safetensors

NAMES = ("convbert_small", "convbert_grouped", "convbert_base")


def authors_variables(name):
    """A golden's weights by the names and in the layouts of the authors' program."""
    variables = {}
    for key, tensor in read_safetensors(str(GOLDENS / name)).items():
        key, value = key.removeprefix("convbert."), tensor.read()
        if not key.startswith(("embeddings", "encoder")):
            continue
        grouped = value.ndim == 3 and key.endswith("dense.weight")
        if value.ndim == 2 and re.search(r"(query|key|value|layer|dense)\.weight", key):
            value = value.T
        if key.startswith("embeddings_project.weight"):
            value = value.T
        for old, new in (
            (
                r"key_conv_attn_layer\.depthwise\.weight",
                "conv_attn_key.depthwise_kernel",
            ),
            (
                r"key_conv_attn_layer\.pointwise\.weight",
                "conv_attn_key.pointwise_kernel",
            ),
            (r"key_conv_attn_layer\.bias", "conv_attn_key.bias"),
            (r"conv_kernel_layer", "conv_attn_kernel"),
            (r"conv_out_layer", "conv_attn_point"),
            (r"LayerNorm\.weight", "LayerNorm.gamma"),
            (r"LayerNorm\.bias", "LayerNorm.beta"),
            (r"_embeddings\.weight", "_embeddings"),
            (r"\.weight$", ".kernel"),
            (r"layer\.(\d+)", r"layer_\1"),
        ):
            key = re.sub(old, new, key)
        if key.endswith("depthwise_kernel"):
            value = value.transpose(2, 0, 1)
        if key.endswith("pointwise_kernel"):
            value = value.transpose(2, 1, 0)
        if key.endswith("conv_attn_key.bias"):
            value = value[:, 0]
        if name == "convbert_grouped":
            key = re.sub(
                r"(layer_\d+\.(intermediate|output))\.dense", r"\1.g_dense", key
            )
        assert grouped == key.endswith("g_dense.kernel")
        variables["electra/" + key.replace(".", "/")] = value
    return variables


def training_state(variables):
    """What training leaves in a checkpoint besides the encoder."""
    state = {"global_step": np.int64(1000)}
    for name in list(variables)[:3]:
        state[f"{name}/adam_m"] = state[f"{name}/adam_v"] = variables[name]
    for name in (
        "generator/encoder/layer_0/attention/self/query/kernel",
        "generator/embeddings_project/bias",
        "generator_predictions/output_bias",
        "discriminator_predictions/dense/kernel",
    ):
        state[name] = np.ones((2, 2), np.float32)
    return state


@pytest.mark.quick("convbert_grouped")
@pytest.mark.parametrize("name", NAMES)
def test_hidden_states(name, tmp_path, capsys):
    variables = authors_variables(name)
    save(variables | training_state(variables), tmp_path / "model.ckpt")
    assert main(["convert", str(tmp_path), str(tmp_path / "preset")]) == 0
    said = capsys.readouterr().out
    for kind in (
        "generator (3 tensors)",  # Its head, too.
        "replaced token head (1 tensors)",
        "training state (7 tensors)",
    ):
        assert f"Left out: {kind}" in said
    check_hidden_states(tmp_path / "preset", name)


def test_a_configuration_beside_it_counts(tmp_path):
    save(authors_variables("convbert_small"), tmp_path / "model.ckpt")
    (tmp_path / "config.json").write_text(json.dumps(dict(hidden_act="relu")))
    encoder = tfeff.convert.load(tmp_path)
    assert encoder.feedforward["activation"] == "relu"
    (tmp_path / "config.json").write_text(json.dumps(dict(intermediate_size=48)))
    with pytest.raises(
        ValueError, match=r"intermediate/dense/kernel has shape \(24, 32"
    ):
        tfeff.convert.load(tmp_path)


def test_missing_and_unknown_variables_are_listed(tmp_path):
    variables = authors_variables("convbert_small")
    del variables["electra/encoder/layer_1/attention/self/key/bias"]
    variables["electra/encoder/layer_1/extra"] = np.ones(2, np.float32)
    save(variables, tmp_path / "model.ckpt")
    with pytest.raises(
        ValueError, match="Missing: .*layer_1/attention/self/key/bias.*Unknown: .*extra"
    ):
        tfeff.convert.load(tmp_path)


def test_a_convbert_without_its_convolutions_is_no_electra(tmp_path):
    variables = authors_variables("convbert_small")
    save({k: v for k, v in variables.items() if "conv_attn" not in k}, tmp_path / "m")
    (tmp_path / "config.json").write_text(json.dumps(dict(num_attention_heads=4)))
    with pytest.raises(ValueError, match=r"query/kernel has shape \(24, 12\), not"):
        tfeff.convert.load(tmp_path)


@pytest.mark.slow
def test_a_head_without_a_generator_is_the_encoders(tmp_path):
    """As of a model that was trained on masked tokens alone."""
    variables = authors_variables("convbert_small")
    rng = np.random.default_rng(0)
    head = {
        "dense/kernel": (24, 12),
        "dense/bias": (12,),
        "LayerNorm/gamma": (12,),
        "LayerNorm/beta": (12,),
        "output_bias": (220,),
    }
    head = {name: rng.normal(size=shape) for name, shape in head.items()}
    named = {f"generator_predictions/{n}": v.astype("f4") for n, v in head.items()}
    save(variables | named, tmp_path / "model.ckpt")
    shutil.copy(GOLDENS / "bert" / "vocab.txt", tmp_path)
    converted = tfeff.convert.convert(tmp_path, tmp_path / "preset")
    assert converted.heads == ("masked_lm",) and not converted.ignored
    model, _ = tfeff.tasks.load_masked_lm(tmp_path / "preset")
    golden = arrays("convbert_small")
    positions = np.array([[1], [3], [0]], "int32")
    inputs = {name: golden[name] for name in INPUTS} | {"mask_positions": positions}
    table = variables["electra/embeddings/word_embeddings"].astype("float64")
    for row, logits in enumerate(np.asarray(model(inputs))[:, 0]):
        x = golden["hidden_states"][-1][row, positions[row, 0]].astype("float64")
        x = x @ head["dense/kernel"] + head["dense/bias"]
        x = x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2
        x = (x - x.mean()) / np.sqrt(x.var() + 1e-12)
        x = x * head["LayerNorm/gamma"] + head["LayerNorm/beta"]
        assert_close(logits, table @ x + head["output_bias"], 1e-4, f"row {row}")
