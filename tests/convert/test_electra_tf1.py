"""The authors' ELECTRA checkpoints give what Hugging Face's of the same weights do."""

import json
import re

import numpy as np
import pytest

import tfeff
from tests.convert.conversions import GOLDENS, check_hidden_states
from tests.convert.test_convbert_tf1 import save
from tfeff.command.main import main
from tfeff.convert.safetensors import read_safetensors


def network(name, scope):
    """A golden's weights by the names and in the layouts of the authors' program.

    Both networks have the tables of the scope `electra`.
    """
    variables = {}
    for key, tensor in read_safetensors(str(GOLDENS / name)).items():
        value = tensor.read()
        if key.endswith(".weight") and value.ndim == 2 and "_embeddings." not in key:
            value = value.T
        key = key.replace("electra.", f"{scope}.", 1)
        key = key.replace(f"{scope}.embeddings.", "electra.embeddings.")
        for old, new in (
            (r"LayerNorm\.weight", "LayerNorm.gamma"),
            (r"LayerNorm\.bias", "LayerNorm.beta"),
            (r"_embeddings\.weight", "_embeddings"),
            (r"dense_prediction", "dense_1"),
            (r"generator_lm_head\.bias", "generator_predictions.output_bias"),
            (r"\.weight$", ".kernel"),
            (r"layer\.(\d+)", r"layer_\1"),
        ):
            key = re.sub(old, new, key)
        variables[key.replace(".", "/")] = value
    return variables


def pretraining():
    """The variables of a checkpoint: both networks, with shared tables."""
    one = network("electra_discriminator", "electra")
    other = network("electra_generator", "generator")
    shared = set(one) & set(other)
    assert len(shared) == 5  # Three tables and a norm.
    for name in shared:
        np.testing.assert_array_equal(one[name], other[name])
    state = {"global_step": np.int64(1000)}
    for name in list(one)[:3]:
        state[f"{name}/adam_m"] = state[f"{name}/adam_v"] = one[name]
    return one | other | state


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A checkpoint of both networks; as heads of 64 do not fit, with their number."""
    folder = tmp_path_factory.mktemp("electra_tf1")
    save(pretraining(), folder / "model.ckpt")
    (folder / "config.json").write_text(json.dumps(dict(num_attention_heads=4)))
    return folder


def test_the_discriminator(source, tmp_path, capsys):
    assert main(["convert", str(source), str(tmp_path / "preset")]) == 0
    said = capsys.readouterr().out
    assert "Left out: generator (" in said
    assert "Left out: training state (7 tensors)" in said
    check_hidden_states(tmp_path / "preset", "electra_discriminator")


def test_heads_of_64_need_no_configuration(tmp_path):
    variables = network("electra_discriminator", "electra")
    save(variables, tmp_path / "model.ckpt")
    with pytest.raises(ValueError, match="must have 'num_attention_heads'.*size=24"):
        tfeff.convert.load(tmp_path)
    wide = {}
    for name, value in variables.items():
        shape = [128 if size == 24 else size for size in value.shape]
        wide[name] = np.resize(value, shape)
    (tmp_path / "wide").mkdir()
    save(wide, tmp_path / "wide" / "model.ckpt")
    encoder = tfeff.convert.load(tmp_path / "wide")
    assert (encoder.hidden_dim, encoder.num_heads) == (128, 2)


def test_missing_and_unknown_variables_are_listed(tmp_path):
    variables = network("electra_discriminator", "electra")
    del variables["electra/encoder/layer_1/attention/self/key/bias"]
    variables["electra/encoder/layer_1/extra"] = np.ones(2, np.float32)
    save(variables, tmp_path / "model.ckpt")
    (tmp_path / "config.json").write_text('{"num_attention_heads": 4}')
    with pytest.raises(
        ValueError, match="Missing: .*layer_1/attention/self/key/bias.*Unknown: .*extra"
    ):
        tfeff.convert.load(tmp_path)
