"""Small random batches for masked language modelling."""

import numpy as np
import tensorflow as tf

VOCABULARY_SIZE = 50


class Killed(Exception):
    """Stands for the signal that ends a process."""


def masked_lm_batches(batches=20, batch_size=4, length=11, masks=3, seed=0):
    """A dataset of ragged rows in which replicas see very different mask counts."""
    rng = np.random.default_rng(seed)
    rows = batches * batch_size
    lengths = rng.integers(masks, length + 1, rows)
    padding_mask = (np.arange(length) < lengths[:, None]).astype("int32")
    tokens = rng.integers(5, VOCABULARY_SIZE, (rows, length)) * padding_mask
    weights = (rng.random((rows, masks)) < 0.6).astype("float32")
    weights[::batch_size] = 0.0  # The first row of every batch has no target.
    inputs = {
        "token_ids": tokens.astype("int32"),
        "segment_ids": np.zeros_like(padding_mask),
        "padding_mask": padding_mask,
        "mask_positions": np.tile(np.arange(masks, dtype="int32"), (rows, 1)),
    }
    labels = rng.integers(5, VOCABULARY_SIZE, (rows, masks)).astype("int32")
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels, weights))
    return dataset.batch(batch_size, drop_remainder=True)
