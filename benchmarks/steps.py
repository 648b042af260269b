"""The training step that the benchmarks of cost look at: masked language modelling."""

import concurrent.futures
import math
import multiprocessing

PEER = "keras_hub"
VOCABULARY = 32_000  # Shatter's; the same for all.


def in_own_process(function, *args):
    """`function(*args)` in a fresh process: Keras has one backend a process."""
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(function, *args).result()


def make_model(preset: str, **sizes):
    """A compiled masked language model: `preset`, or KerasHub's BERT."""
    import keras
    import keras_nlp

    import tfeff

    sizes["vocabulary_size"] = VOCABULARY
    if preset == PEER:
        backbone = keras_nlp.models.BertBackbone(
            num_heads=12, hidden_dim=768, intermediate_dim=3072, **sizes
        )
        head = keras_nlp.layers.MaskedLMHead(
            token_embedding=backbone.token_embedding, intermediate_activation="gelu"
        )
        positions = keras.Input((None,), dtype="int32", name="mask_positions")
        inputs = {**backbone.input, "mask_positions": positions}
        hidden = backbone(backbone.input)["sequence_output"]
        model = keras.Model(inputs, head(hidden, positions))
    else:
        model = tfeff.objectives.MaskedLM(tfeff.encoders.build(preset, **sizes))
    model.compile(
        optimizer=tfeff.training.adamw(1e-4, warmup_steps=10_000, total_steps=10**6),
        loss=tfeff.objectives.GlobalMeanCrossentropy(),
        weighted_metrics=[],
    )
    model.optimizer.build(model.trainable_variables)
    return model


def make_batch(batch_size: int, length: int) -> tuple:
    """Inputs, labels and weights of zeros: only their shapes matter here."""
    from keras import ops

    tokens = ops.zeros((batch_size, length), "int32")
    targets = ops.zeros((batch_size, math.ceil(0.15 * length)), "int32")
    names = ("token_ids", "segment_ids", "padding_mask")
    inputs = {**dict.fromkeys(names, tokens), "mask_positions": targets}
    return inputs, targets, ops.cast(targets, "float32")


def compile_jax(model, batch, device):
    """JAX's program of `model.train_step`, compiled for `device`."""
    import jax

    sharding = jax.sharding.SingleDeviceSharding(device)
    state = (
        model.trainable_variables,
        model.non_trainable_variables,
        model.optimizer.variables,
        model.metrics_variables,
    )
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding),
        (state, batch),
    )
    step = jax.jit(model.train_step, donate_argnums=0)
    return step.lower(*shapes).compile().runtime_executable()
