"""The authors' ELECTRA checkpoints give what Hugging Face's of the same weights do."""

import json

import numpy as np
import pytest

import tfeff
from tests.convert.authors import electra, electra_pretraining, save
from tests.convert.conversions import check_hidden_states
from tfeff.command.main import main


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A checkpoint of both networks; as heads of 64 do not fit, with their number."""
    folder = tmp_path_factory.mktemp("electra_tf1")
    save(electra_pretraining(), folder / "model.ckpt")
    (folder / "config.json").write_text(json.dumps(dict(num_attention_heads=4)))
    return folder


def test_the_discriminator(source, tmp_path, capsys):
    assert main(["convert", str(source), str(tmp_path / "preset")]) == 0
    said = capsys.readouterr().out
    assert "Left out: generator (" in said
    assert "Left out: training state (7 tensors)" in said
    check_hidden_states(tmp_path / "preset", "electra_discriminator")


@pytest.mark.slow
def test_heads_of_64_need_no_configuration(tmp_path):
    variables = electra("electra_discriminator", "electra")
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
    variables = electra("electra_discriminator", "electra")
    del variables["electra/encoder/layer_1/attention/self/key/bias"]
    variables["electra/encoder/layer_1/extra"] = np.ones(2, np.float32)
    save(variables, tmp_path / "model.ckpt")
    (tmp_path / "config.json").write_text('{"num_attention_heads": 4}')
    with pytest.raises(
        ValueError, match="Missing: .*layer_1/attention/self/key/bias.*Unknown: .*extra"
    ):
        tfeff.convert.load(tmp_path)
