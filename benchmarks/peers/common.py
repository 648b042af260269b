"""Shared by all contenders: sizes, the batch, how TensorFlow runs a step."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

HEADS = 12  # The papers' base models all have 12, and BlockBERT's divide as 8:2:2.
OPTIMIZER = dict(learning_rate=1e-4, weight_decay=0.01, epsilon=1e-6)
CLIP_NORM = 1.0


class Sizes(NamedTuple):
    """The sizes that all contenders of a comparison share."""

    layers: int
    width: int
    vocabulary: int
    length: int
    batch_size: int
    dropout: float


class Contender(NamedTuple):
    """An encoder with its head, in one of the frameworks.

    `modes` has a name for each way to compile it, `parameters` are those that are
    trained, or used if nothing is.
    """

    parameters: int
    modes: dict[str, Callable[[], float]]


def make_batch(sizes: Sizes) -> dict[str, np.ndarray]:
    """Random tokens in two segments, 15 % of them masked.

    The last sequence is a tenth shorter: nobody may skip the padding mask.
    """
    generator = np.random.default_rng(0)
    shape = (sizes.batch_size, sizes.length)
    mask = np.ones(shape, "int32")
    mask[-1, sizes.length - sizes.length // 10 :] = 0
    count = math.ceil(0.15 * sizes.length)
    positions = [
        np.sort(generator.choice(row.sum(), count, replace=False)) for row in mask
    ]
    return dict(
        token_ids=generator.integers(0, sizes.vocabulary, shape, "int32"),
        segment_ids=np.tile(np.arange(sizes.length) * 2 // sizes.length, (shape[0], 1)),
        padding_mask=mask,
        mask_positions=np.stack(positions).astype("int32"),
        labels=generator.integers(0, sizes.vocabulary, (shape[0], count), "int32"),
    )


def visible_pairs(batch: dict[str, np.ndarray]) -> np.ndarray:
    """Who sees whom where masked tokens are predicted in their order: `[B, T, T]`.

    1 at `[b, i, j]` where `j` is not masked, or predicted sooner than `i`.
    """
    positions = batch["mask_positions"]
    ranks = np.full(batch["token_ids"].shape, -1)
    order = np.broadcast_to(np.arange(positions.shape[1]), positions.shape)
    np.put_along_axis(ranks, positions, order, axis=1)
    of_query, of_key = ranks[:, :, None], ranks[:, None, :]
    return ((of_key < 0) | (of_key < of_query)).astype("int32")


def target_rows(batch: dict[str, np.ndarray]) -> np.ndarray:
    """1 at the position of each masked token: `[B, M, T]`."""
    every = np.arange(batch["token_ids"].shape[1])
    return (batch["mask_positions"][..., None] == every).astype("int32")


def tensors(batch):
    """The batch as TensorFlow's: inputs, labels."""
    import tensorflow as tf

    inputs = {name: tf.constant(value, "int32") for name, value in batch.items()}
    return inputs, inputs.pop("labels")


def compiled(step, *inputs) -> dict[str, Callable[[], float]]:
    """TensorFlow's `step` as Keras compiles it on a CPU by default, and with XLA."""
    import tensorflow as tf

    def run(function):
        return float(tf.reshape(function(*inputs), [-1])[0])

    return {
        mode: functools.partial(run, tf.function(step, jit_compile=mode == "XLA"))
        for mode in ("default", "XLA")
    }


def count(layer) -> int:
    """Trainable parameters of a layer of Keras 3 or tf_keras."""
    return sum(math.prod(weight.shape) for weight in layer.trainable_weights)
