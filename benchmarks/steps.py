"""The training step of the benchmarks of cost: masked language modelling."""

import concurrent.futures
import math
import multiprocessing

from tfeff.utils.parallel import end_with_parent

PEER = "keras_hub"
TWO_STREAMS = "xlnet_two_streams"
VOCABULARY = 32_000  # Shatter's; the same for all.


def in_own_process(function, *args):
    """`function(*args)` in a fresh process: Keras has one backend a process.

    What the process holds at its peak is its own, too.
    """
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(
        1, mp_context=spawn, initializer=end_with_parent
    ) as pool:
        return pool.submit(function, *args).result()


def make_model(preset: str, **sizes):
    """A compiled masked language model: `preset`, or KerasHub's BERT, or XLNet's.

    XLNet's has the two streams of permutation language modelling: content, and queries
    at the targets. Its order is that of the positions, targets last.
    """
    import keras
    import keras_hub

    import tfeff

    sizes["vocabulary_size"] = VOCABULARY
    if preset == PEER:
        backbone = keras_hub.models.BertBackbone(
            num_heads=12, hidden_dim=768, intermediate_dim=3072, **sizes
        )
        head = keras_hub.layers.MaskedLMHead(
            token_embedding=backbone.token_embedding, intermediate_activation="gelu"
        )
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        inputs = {**backbone.input, "mask_positions": positions}
        hidden = backbone(backbone.input)["sequence_output"]
        model = keras.Model(inputs, head(hidden, positions))
    elif preset == TWO_STREAMS:
        model = two_streams(tfeff.encoders.build("xlnet_base", **sizes))
    else:
        model = tfeff.objectives.MaskedLM(tfeff.encoders.build(preset, **sizes))
    model.compile(
        optimizer=tfeff.training.adamw(1e-4, warmup_steps=10_000, total_steps=10**6),
        loss=tfeff.objectives.GlobalMeanCrossentropy(),
        weighted_metrics=[],
    )
    model.optimizer.build(model.trainable_variables)
    return model


def two_streams(encoder):
    """An XLNet encoder's permutation language model, as in `make_model`."""
    import keras
    from keras import ops

    from tfeff.layers import TwoStreamBlocks
    from tfeff.objectives.masked_lm_head import make_masked_lm_head

    class Ranks(keras.layers.Layer):
        """Targets rank in their order, from 0; the rest has -1 and is seen by all."""

        def call(self, token_ids, positions):
            at = ops.arange(ops.shape(token_ids)[1]) == positions[..., None]
            order = ops.arange(1, ops.shape(positions)[1] + 1, dtype="int32")
            return ops.max(ops.cast(at, "int32") * order[:, None], axis=1) - 1

    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    inputs = {**encoder.input, "mask_positions": positions}
    ranks = Ranks(dtype="int32")(inputs["token_ids"], positions)
    _, queries = TwoStreamBlocks(encoder.blocks, dtype=encoder.dtype_policy)(
        encoder.embedding(inputs["token_ids"], inputs["segment_ids"]),
        ranks,
        padding_mask=inputs["padding_mask"],
        target_positions=positions,
        segment_ids=inputs["segment_ids"],
    )
    head = make_masked_lm_head(encoder)
    slots = ops.cumsum(ops.ones_like(positions), axis=1) - 1
    return keras.Model(inputs, head(queries, slots))


def make_batch(batch_size: int, length: int) -> tuple:
    """Inputs, labels and weights of zeros: only their shapes matter here."""
    from keras import ops

    tokens = ops.zeros((batch_size, length), "int32")
    targets = ops.zeros((batch_size, math.ceil(0.15 * length)), "int32")
    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {**dict.fromkeys(names, tokens), "mask_positions": targets}
    return inputs, targets, ops.cast(targets, "float32")


def compile_jax(model, batch, *devices):
    """JAX's program of `model.train_step`, compiled for `devices`.

    Each device has all weights and its share of the batch's rows, in equal parts;
    XLA's partitioner adds the collective operations that this takes.
    """
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    mesh = Mesh(np.array(devices), ("replica",))
    everywhere = NamedSharding(mesh, PartitionSpec())
    by_rows = NamedSharding(mesh, PartitionSpec("replica"))
    state = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    state, batch = (
        jax.tree.map(
            lambda x, place=place: jax.ShapeDtypeStruct(
                x.shape, x.dtype, sharding=place
            ),
            values,
        )
        for values, place in ((state, everywhere), (batch, by_rows))
    )
    step = jax.jit(model.train_step, donate_argnums=0, out_shardings=everywhere)
    return step.lower(state, batch).compile().runtime_executable()
