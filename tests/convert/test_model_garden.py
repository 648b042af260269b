"""Model Garden's checkpoints as its trainer and its tasks save them."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.convert.conversions import GOLDENS, check_hidden_states
from tfeff.convert.config import Config
from tfeff.convert.model_garden import rename
from tfeff.convert.tf_checkpoint import read_tf_checkpoint

GOLDEN = "garden_bert"
RANDOM = np.random.default_rng(0)
# What stands beside an encoder, as its trainer saves it, or as a model around it.
TASK = {
    "model/layer_with_weights-1/out_proj/kernel": (16, 3),
    "model/layer_with_weights-1/out_proj/bias": (3,),
}
PAIRS = {
    "model/classification_heads/0/out_proj/kernel": (16, 2),
    "model/classification_heads/0/out_proj/bias": (2,),
    "next_sentence..pooler_dense/kernel": (16, 16),
    "next_sentence..pooler_dense/bias": (16,),
}
SCORES = {
    "sentence_prediction..pooler_dense/kernel": (16, 16),
    "sentence_prediction..pooler_dense/bias": (16,),
}
SPANS = {
    "model/layer_with_weights-1/layer_with_weights-0/kernel": (16, 2),
    "model/layer_with_weights-1/layer_with_weights-0/bias": (2,),
}
TRAINING = {
    "global_step": (),
    "optimizer/iter": (),
    "optimizer/learning_rate": (),
    "model/layer_with_weights-1/bias/.OPTIMIZER_SLOT/optimizer/m": (3,),
}


def saved(folder, around, by_attributes, beside):
    """A checkpoint with the golden's encoder and what is beside it; the arrays."""
    shutil.copytree(GOLDENS / GOLDEN, folder)
    tensors = read_tf_checkpoint(str(GOLDENS / GOLDEN / "bert_model.ckpt"))
    if by_attributes:
        config = Config.read(str(folder / "bert_config.json"))
        tensors = rename(tensors, config)
    arrays = {
        around + name.removeprefix("encoder/"): tensor.read()
        for name, tensor in tensors.items()
    }
    arrays |= {name: RANDOM.normal(size=shape) for name, shape in beside.items()}
    arrays = {name: np.asarray(x, "float32") for name, x in arrays.items()}
    tf.raw_ops.SaveV2(
        prefix=str(folder / "bert_model.ckpt"),
        tensor_names=[f"{name}/.ATTRIBUTES/VARIABLE_VALUE" for name in arrays],
        shape_and_slices=[""] * len(arrays),
        tensors=list(arrays.values()),
    )
    return arrays


@pytest.mark.parametrize("by_attributes", [False, True], ids=["functional", "v2"])
@pytest.mark.parametrize(
    ("around", "beside", "pooler"),
    [
        ("encoder/", {}, None),
        ("model/", {}, None),
        ("encoder/", TASK, None),
        ("encoder/", TASK | SCORES | TRAINING, "sentence_prediction..pooler_dense"),
        ("encoder/", SPANS | TRAINING, None),
        ("encoder/", PAIRS | TRAINING, "next_sentence..pooler_dense"),
        ("encoder/", PAIRS | SCORES, "next_sentence..pooler_dense"),
        ("model/layer_with_weights-0/", TASK, None),
        ("layer_with_weights-0/", {}, None),
        ("model/encoder_network/", PAIRS, "next_sentence..pooler_dense"),
    ],
)
def test_encoders_beside_heads(around, beside, pooler, by_attributes, tmp_path):
    arrays = saved(tmp_path / "source", around, by_attributes, beside)
    tfeff.convert.convert(tmp_path / "source", tmp_path / "preset")
    check_hidden_states(tmp_path / "preset", GOLDEN)
    of_encoder = "_pooler_layer" if by_attributes else "layer_with_weights-6"
    with np.load(tmp_path / "preset" / "pooler_head.npz") as found:
        for name in ("kernel", "bias"):
            expected = arrays[f"{pooler or around + of_encoder}/{name}"]
            np.testing.assert_array_equal(found[name], expected)


def test_what_is_unknown_beside_an_encoder_is_told(tmp_path):
    saved(tmp_path / "source", "encoder/", True, {"adapter/kernel": (2, 2)})
    with pytest.raises(ValueError, match=r"Missing: \[\]. Unknown: \['adapter/kernel'"):
        tfeff.convert.convert(tmp_path / "source", tmp_path / "preset")
