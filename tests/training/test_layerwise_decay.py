"""Rates that fall from the head to the embedding."""

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import check_two_replicas
from tests.reference import optimizers as literal
from tests.subjects.batches import masked_lm_batches
from tests.subjects.objectives import make_masked_lm
from tfeff.training import AdamW, DistributedModel, adamw, load_checkpoint
from tfeff.training.layerwise_decay import rate_factors

DECAY = 0.5


def optimizer(rate=1e-2, **arguments):
    settings = dict(weight_decay=0.3, global_clipnorm=0.1, layer_decay=DECAY)
    return adamw(rate, 2, 40, **settings | arguments)


def model_of(encoder=None, **arguments):
    """A masked language model of two layers with the optimizer of this file."""
    model = make_masked_lm("bert_tiny", encoder=dict(num_layers=2) | (encoder or {}))
    model.compile(optimizer=optimizer(**arguments))
    return model


def power_of(path):
    """What the table says of a weight of a model with two layers, by its path."""
    for part, power in (("block_0/", 3), ("block_1/", 2), ("embedding/", 4)):
        if path.startswith(part):
            return power
    return 0


def one_step(model, batch):
    """The gradients of the loss, and the weights after a step of the optimizer."""
    import tensorflow as tf

    inputs, labels, weights = batch
    with tf.GradientTape() as tape:
        loss = model.compute_loss(
            inputs, labels, model(inputs, training=True), weights, training=True
        )
    gradients = tape.gradient(loss, model.trainable_variables)
    gradients = [tf.convert_to_tensor(g) for g in gradients]
    model.optimizer.apply(gradients, model.trainable_variables)
    return [g.numpy() for g in gradients]


@pytest.mark.slow
def test_each_layer_has_its_rate_also_after_saving(tmp_path):
    """Against the literal algorithm, with and without the trip to disk."""
    model = model_of(dict(embedding_dim=6), bias_correction=False)
    start = [w.numpy() for w in model.trainable_variables]
    paths = [w.path for w in model.trainable_variables]
    assert {power_of(path) for path in paths} == {0, 2, 3, 4}
    gradients = []
    for index, batch in enumerate(masked_lm_batches(batches=4)):
        if index == 2:
            model.save(tmp_path / "model.keras")
            model = load_checkpoint(str(tmp_path / "model.keras"))
        gradients.append(one_step(model, batch))
    assert type(model.optimizer) is AdamW and model.optimizer.layer_decay == DECAY
    names = [path.split("/")[-1] for path in paths]
    expected = literal.adamw(
        start,
        gradients,
        rates=[0.0, 0.005, 0.01, 0.01 * 37 / 38],
        decays=[0.3 * (name in ("kernel", "embeddings")) for name in names],
        factors=[DECAY ** power_of(path) for path in paths],
        clip=0.1,
        bias_correction=False,
    )
    for weight, before, value in zip(model.trainable_variables, start, expected):
        np.testing.assert_allclose(
            weight.numpy(), value, rtol=1e-5, atol=1e-7, err_msg=weight.path
        )
        assert not np.array_equal(value, before), weight.path


def test_shared_weights_count_for_their_highest_layer():
    encoder = make_masked_lm(
        "bert_tiny",
        encoder=dict(
            num_layers=4,
            sharing="attention",
            sharing_group_size=2,
            attention={"name": "relative", "method": "bias", "num_buckets": 8},
        ),
    ).encoder
    factors = {weight.path: factor for weight, factor in rate_factors(encoder, 0.5)}
    assert len(factors) == len(encoder.weights)
    (table,) = (path for path in factors if path.endswith("relative/embeddings"))
    assert factors["embedding/token_embedding/embeddings"] == 0.5**6
    for layer in range(4):
        own = {f for path, f in factors.items() if f"block_{layer}/feedforward" in path}
        assert own == {0.5 ** (5 - layer)}
    assert factors["block_0/attention/query/kernel"] == 0.5**4
    assert factors[table] == 0.5**2


@pytest.mark.slow
def test_adapters_that_come_after_compile_have_the_rates_of_their_layers():
    def trained(is_compiled_after):
        keras.utils.set_random_seed(0)
        model = model_of()
        if is_compiled_after:
            model.encoder.enable_lora(2)
            model.compile(optimizer=AdamW(1e-2, layer_decay=DECAY))
        else:
            model.compile(optimizer=AdamW(1e-2, layer_decay=DECAY))
            model.encoder.enable_lora(2)
        inputs, labels, weights = next(iter(masked_lm_batches(batches=1)))
        model.train_on_batch(inputs, labels, sample_weight=weights)
        return [w.numpy() for w in model.encoder.trainable_weights]

    for found, expected in zip(trained(False), trained(True), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_half_precision_scales_the_loss_and_keeps_the_rates():
    model = model_of(dict(dtype="mixed_float16"))
    inner = model.optimizer.inner_optimizer
    model.fit(masked_lm_batches(batches=6), shuffle=False, verbose=0)
    assert 0 < int(inner.iterations.numpy()) <= 6
    factors = sorted(set(inner._factors.values()))
    assert factors == [DECAY**4, DECAY**3, DECAY**2]
    assert all(np.isfinite(w.numpy()).all() for w in model.trainable_variables)


@pytest.mark.slow
def test_two_replicas_equal_one_device():
    check_two_replicas(
        # Where squared gradients are tiny, the order of sums would show.
        lambda: model_of(rate=1e-3, epsilon=1e-4, bias_correction=False),
        masked_lm_batches(),
        steps=8,
    )


def test_wrong_use_is_named():
    for wrong in (0, -0.1, 1.1, "0.8"):
        error = TypeError if wrong == "0.8" else ValueError
        with pytest.raises(error, match=f"`layer_decay`.*{wrong}"):
            AdamW(0.1, layer_decay=wrong)
    with pytest.raises(ValueError, match="`layer_decay` must know the layers"):
        optimizer().build([keras.Variable([1.0])])
    x = keras.Input((3,))
    model = DistributedModel(x, keras.layers.Dense(2)(x))
    with pytest.raises(ValueError, match="`optimizer`.*without an encoder"):
        model.compile(optimizer=optimizer())
    model.compile(optimizer=AdamW(0.1, bias_correction=False))
    assert tfeff.training.adamw is adamw
