"""A small model and batches of each pretraining objective."""

import numpy as np
import tensorflow as tf

import tfeff
from tests.subjects.batches import VOCABULARY_SIZE, masked_lm_batches
from tfeff import objectives


def make_encoder(preset="bert_tiny", **overrides):
    return tfeff.encoders.build(
        preset,
        **dict(
            vocabulary_size=VOCABULARY_SIZE,
            num_layers=1,
            hidden_dim=16,
            intermediate_dim=32,
            max_sequence_length=16,
            dropout=0.0,
        )
        | overrides,
    )


def make_model(kind, temperature=1.0, compiled=None, **overrides):
    """The objective by name, compiled with a large learning rate and clipping."""
    encoder = make_encoder(**overrides)
    if kind == "replaced_token":
        model = objectives.ReplacedTokenDetection(
            objectives.generator_for(encoder, 1 / 2), encoder, temperature=temperature
        )
    elif kind in SINGLE:
        model = SINGLE[kind](encoder)
    else:
        model = objectives.SentencePairPrediction(encoder, kind == "sentence_order")
    optimizer = tfeff.training.adamw(1e-3, 5, 40, global_clipnorm=0.1)
    model.compile(optimizer=optimizer, **(compiled or {}))
    return model


def make_masked_lm(preset, dropout=0.0, global_clipnorm=0.1, encoder=None, **kwargs):
    """Masked language modelling, compiled with a large learning rate and clipping."""
    encoder = make_encoder(preset, **{"dropout": dropout} | (encoder or {}))
    model = objectives.MaskedLM(encoder)
    optimizer = tfeff.training.adamw(1e-3, 5, 40, global_clipnorm=global_clipnorm)
    model.compile(optimizer=optimizer, **kwargs)
    return model


SINGLE = {"masked_lm": objectives.MaskedLM, "permutation_lm": objectives.PermutationLM}
KINDS = ("replaced_token", *SINGLE, "sentence_order", "sentence_alone")


def batches(kind, count=8, seed=0, padding=0, **sizes):
    """A dataset of ragged global batches of 4, first rows without any target."""
    dataset = masked_lm_batches(batches=count, seed=seed, **sizes)
    dataset = dataset.map(_with_first_token)
    if kind == "permutation_lm":
        dataset = dataset.map(_with_ranks)
    elif kind in ("sentence_order", "sentence_alone"):
        dataset = dataset.map(lambda *batch: _as_pairs(kind, *batch))
    return dataset.map(lambda *batch: _padded(padding, *batch)) if padding else dataset


def _with_first_token(inputs, labels, weights):
    """Targets after a first token that is none; unused slots at position 0."""
    positions = inputs["mask_positions"] + 1
    lengths = tf.reduce_sum(inputs["padding_mask"], axis=1, keepdims=True)
    used = tf.logical_and(weights > 0, positions < lengths)
    tokens = tf.concat([tf.fill([4, 1], 2), inputs["token_ids"][:, 1:]], axis=1)
    inputs = inputs | {
        "token_ids": tokens,
        "mask_positions": tf.where(used, positions, 0),
    }
    return inputs, tf.where(used, labels, 0), tf.cast(used, "float32")


def _with_ranks(inputs, labels, weights):
    """Later slots come earlier in the order."""
    positions = inputs["mask_positions"]
    places = tf.range(inputs["token_ids"].shape[1])
    slots = tf.range(positions.shape[1])[::-1]
    here = tf.logical_and(positions[..., None] == places, weights[..., None] > 0)
    ranks = tf.reduce_max(tf.where(here, slots[None, :, None], -1), axis=1)
    return inputs | {"ranks": ranks}, labels, weights


def _as_pairs(kind, inputs, labels, weights):
    classes = tf.cast(labels[:, 0] % 2, "int32")
    counts = tf.constant([1.0, 0.0, 1.0, 1.0])
    if kind == "sentence_order":
        return (
            inputs,
            {"sentence": classes, "masked_lm": labels},
            {"sentence": counts, "masked_lm": weights},
        )
    inputs = {k: v for k, v in inputs.items() if k != "mask_positions"}
    return inputs, {"sentence": classes}, {"sentence": counts}


def _padded(padding, inputs, *rest):
    """Rubbish behind the end, masked out."""
    filling = {"token_ids": 7, "segment_ids": 1, "padding_mask": 0, "ranks": -1}
    inputs = {
        name: tf.pad(x, [[0, 0], [0, padding]], constant_values=filling[name])
        if name in filling
        else x
        for name, x in inputs.items()
    }
    return inputs, *rest


def arrays(batch):
    """The batch in NumPy."""
    return tf.nest.map_structure(np.asarray, batch)


def head_weights(layer):
    """Weights of KerasHub's masked language model head by the reference's names."""
    named = {"/".join(w.path.split("/")[-2:]): w.numpy() for w in layer.weights}
    (bias,) = (value for name, value in named.items() if "output_bias" in name)
    return named | {"output_bias": bias}
