"""One worker of several: trains a small model and saves its weights.

Called by `test_multi_worker` as a program, with TF_CONFIG set or not.
"""

import functools
import sys

import keras
import numpy as np
import tensorflow as tf

import tfeff


def main(path, cache=None):
    strategy = tfeff.training.make_strategy("multi_worker")
    keras.utils.set_random_seed(0)
    with strategy.scope():
        encoder = tfeff.encoders.build(
            "shatter_tiny",
            vocabulary_size=30,
            num_layers=1,
            hidden_dim=8,
            num_heads=2,
            intermediate_dim=16,
            dropout=0.0,
        )
        model = tfeff.objectives.MaskedLM(encoder)
        model.compile(optimizer=tfeff.training.adamw(1e-2, 2, 20, global_clipnorm=0.1))
        data = batches() if cache is None else own_rows(cache)
    history = model.fit(data, steps_per_epoch=4, epochs=2, verbose=0).history
    losses = model.evaluate(data, steps=2, verbose=0, return_dict=True)
    np.savez(
        path,
        *model.get_weights(),
        replicas=strategy.num_replicas_in_sync,
        loss=history["loss"],
        evaluated=losses["loss"],
    )


def own_rows(cache):
    """Batches of a cache, of which each worker makes its own rows."""
    make = tfeff.data.open_cache(cache).batches
    return tfeff.training.distribute(
        functools.partial(make, tfeff.data.MaskedTokens(), batch_size=4)
    )


def batches():
    """Rows with unequal numbers of masks, so that a mean of means would be wrong."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 30, (16, 12)).astype("int32")
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.arange(12) < rng.integers(4, 13, (16, 1)),
        "mask_positions": np.tile(np.arange(3, dtype="int32"), (16, 1)),
    }
    weights = (np.arange(3) < rng.integers(1, 4, (16, 1))).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((inputs, ids[:, :3], weights))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = (
        tf.data.experimental.AutoShardPolicy.DATA
    )
    return dataset.batch(4).repeat().with_options(options)


if __name__ == "__main__":
    main(*sys.argv[1:])
