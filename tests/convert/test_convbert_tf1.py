"""The authors' ConvBERT checkpoints give what Hugging Face's of the same weights do."""

import json
import re

import numpy as np
import pytest

import tfeff
from tests.convert.authors import save
from tests.convert.conversions import GOLDENS, check_hidden_states
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
