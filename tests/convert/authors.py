"""Checkpoints as the authors of ELECTRA and ConvBERT would write them."""

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
