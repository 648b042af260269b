"""Checkpoints as the authors of BERT, ALBERT, ELECTRA and ConvBERT would write them."""

import re

import numpy as np
import tensorflow as tf

from tests.convert.conversions import GOLDENS
from tfeff.convert.safetensors import read_safetensors


def save(variables, prefix):
    """Writes a checkpoint as a TensorFlow 1 program would."""
    with tf.Graph().as_default():
        for name, value in variables.items():
            tf.compat.v1.get_variable(name, initializer=value, use_resource=False)
        saver = tf.compat.v1.train.Saver()
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            saver.save(session, str(prefix), global_step=1000)


def electra(name, scope):
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


def electra_pretraining():
    """The variables of a checkpoint: both networks, with shared tables."""
    one = electra("electra_discriminator", "electra")
    other = electra("electra_generator", "generator")
    shared = set(one) & set(other)
    assert len(shared) == 5  # Three tables and a norm.
    for name in shared:
        np.testing.assert_array_equal(one[name], other[name])
    state = {"global_step": np.int64(1000)}
    for name in list(one)[:3]:
        state[f"{name}/adam_m"] = state[f"{name}/adam_v"] = one[name]
    return one | other | state


def bert(name):
    """A golden BERT's weights by the names and in the layouts of its authors."""
    variables = {}
    for key, tensor in read_safetensors(str(GOLDENS / name)).items():
        if not key.startswith(("bert.", "cls.")):
            key = f"bert.{key}"
        *scopes, last = key.split(".")
        value, scope = tensor.read(), "/".join(scopes).replace("layer/", "layer_")
        if scopes[-1] == "LayerNorm":
            variables[f"{scope}/{'gamma' if last == 'weight' else 'beta'}"] = value
        elif scopes[-1].endswith("_embeddings"):
            variables[scope] = value
        elif scopes[-1] == "seq_relationship":
            kind = {"weight": "weights", "bias": "bias"}[last]
            variables[f"{scope}/output_{kind}"] = value
        elif key == "cls.predictions.bias":
            variables[f"{scope}/output_bias"] = value
        elif last == "weight":
            variables[f"{scope}/kernel"] = value.T
        else:
            variables[f"{scope}/bias"] = value
    return variables


_ALBERT_LAYER = {
    "attention.LayerNorm": "LayerNorm",
    "attention.dense": "attention_1/output/dense",
    "attention.key": "attention_1/self/key",
    "attention.query": "attention_1/self/query",
    "attention.value": "attention_1/self/value",
    "ffn": "ffn_1/intermediate/dense",
    "ffn_output": "ffn_1/intermediate/output/dense",
    "full_layer_layer_norm": "LayerNorm_1",
}


def albert(name):
    """A golden ALBERT's weights likewise."""
    variables = {}
    for key, tensor in read_safetensors(str(GOLDENS / name)).items():
        value, (scope, last) = tensor.read(), key.rsplit(".", 1)
        layer = re.fullmatch(r".*layer_groups\.(\d)\.albert_layers\.0\.(.*)", scope)
        if layer:
            scope = f"bert/encoder/transformer/group_{layer[1]}/inner_group_0"
            scope = f"{scope}/{_ALBERT_LAYER[layer[2]]}"
        elif scope in ("predictions.dense", "predictions.LayerNorm"):
            scope = f"cls/predictions/transform/{scope.split('.')[1]}"
        elif scope == "predictions":
            scope = "cls/predictions/output"
        else:
            scope = f"bert.{scope.removeprefix('albert.')}".replace(".", "/")
            scope = scope.replace("bert/pooler", "bert/pooler/dense")
        if "LayerNorm" in scope:
            scope += "/gamma" if last == "weight" else "/beta"
        elif scope == "cls/predictions/output":
            scope += "_bias"
        elif not scope.endswith("_embeddings"):
            scope += "/kernel" if last == "weight" else "/bias"
            value = value.T
        variables[scope] = value
    return variables
