"""Schedule and AdamW against literal versions."""

import keras
import numpy as np
import pytest

from tests.reference import optimizers as literal
from tfeff.training import AdamW, LinearWarmupDecay, adamw


def literal_rate(step, peak, warmup, total):
    if step < warmup:
        return peak * step / warmup
    return max(0.0, peak * (total - step) / (total - warmup))


@pytest.mark.parametrize(("warmup", "total"), [(0, 7), (1, 2), (10, 100), (99, 100)])
def test_schedule(warmup, total):
    schedule = LinearWarmupDecay(0.3, warmup, total)
    for step in range(total + 5):
        expected = literal_rate(step, 0.3, warmup, total)
        assert float(schedule(step)) == pytest.approx(expected, rel=1e-5, abs=1e-8)
    copy = LinearWarmupDecay.from_config(schedule.get_config())
    assert float(copy(1)) == float(schedule(1))


def test_schedule_is_exact_late_in_a_long_run():
    schedule = LinearWarmupDecay(1e-4, 10_000, 1_000_000)
    for step in (0, 9_999, 10_000, 500_000, 999_999, 1_000_000):
        expected = literal_rate(step, 1e-4, 10_000, 1_000_000)
        assert float(schedule(step)) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.0, 1, 2), "`peak_rate`.*0.0"),
        ((0.1, 2, 2), "`warmup_steps`.*warmup_steps=2, total_steps=2"),
        ((0.1, -1, 2), "`warmup_steps`.*-1"),
    ],
)
def test_bad_schedule_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        LinearWarmupDecay(*arguments)


def make_variables():
    rng = np.random.default_rng(0)
    return [
        keras.Variable(rng.normal(size=shape).astype("float32"), name=name)
        for name, shape in (
            ("kernel", (3, 2)),
            ("bias", (2,)),
            ("gamma", (2,)),
            ("beta", (2,)),
            ("output_bias", (4,)),
            ("embeddings", (5, 2)),
            ("partition_embeddings", (4, 2)),
        )
    ]


# BlockBERT prints the first settings, beside other betas that no paper has.
@pytest.mark.parametrize(
    ("clip", "beta_1", "beta_2", "epsilon"),
    [(None, 0.9, 0.999, 1e-8), (0.5, 0.9, 0.999, 1e-6), (1e6, 0.8, 0.99, 1e-3)],
)
def test_adamw_steps_against_the_literal_algorithm(clip, beta_1, beta_2, epsilon):
    variables = make_variables()
    start = [v.numpy() for v in variables]
    decays = [
        0.0 if v.name in ("bias", "gamma", "beta", "output_bias") else 0.3
        for v in variables
    ]
    rng = np.random.default_rng(1)
    gradients = [
        [rng.normal(size=w.shape).astype("float32") for w in start] for _ in range(6)
    ]
    rates = [literal_rate(step, 0.1, 2, 10) for step in range(6)]
    for bias_correction in (True, False):
        for variable, value in zip(variables, start):
            variable.assign(value)
        optimizer = adamw(
            0.1,
            2,
            10,
            weight_decay=0.3,
            global_clipnorm=clip,
            bias_correction=bias_correction,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
        )
        for step in gradients:
            optimizer.apply(step, variables)
        expected = literal.adamw(
            start,
            gradients,
            rates,
            decays,
            [1.0] * len(start),
            clip,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            bias_correction=bias_correction,
        )
        # Keras forms 1 - 0.999^t in float32, which is good to 6e-5 in the first steps.
        rtol = 1e-4 if bias_correction else 2e-6
        for variable, value in zip(variables, expected):
            np.testing.assert_allclose(variable.numpy(), value, rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", ["beta_1", "beta_2"])
@pytest.mark.parametrize("value", [1, -0.1, "high"])
def test_bad_betas_are_named(name, value):
    with pytest.raises(ValueError, match=f"`{name}` must be a number in .*{value}"):
        adamw(0.1, 2, 10, **{name: value})


@pytest.mark.parametrize("value", [0, -1, float("nan"), "high"])
def test_norms_and_decays_that_would_do_nothing_or_harm_are_named(value):
    with pytest.raises(ValueError, match="`global_clipnorm` must be a positive"):
        adamw(0.1, 2, 10, global_clipnorm=value)
    if value != 0:
        with pytest.raises((TypeError, ValueError), match="`weight_decay` must have"):
            adamw(0.1, 2, 10, weight_decay=value)


def test_gradients_of_repeated_rows_are_summed_before_their_norm_is_taken():
    import tensorflow as tf

    results = []
    for dense in (False, True):
        table = keras.Variable(np.ones((4, 2), "float32"), name="embeddings")
        gradient = tf.IndexedSlices(
            tf.constant([[3.0, 0.0], [3.0, 0.0], [0.0, 1.0]]),
            tf.constant([1, 1, 2]),
            tf.constant([4, 2]),
        )
        if dense:
            gradient = tf.convert_to_tensor(gradient)
        optimizer = AdamW(0.1, global_clipnorm=1.0, epsilon=1.0)
        optimizer.apply([gradient], [table])
        results.append(table.numpy())
    np.testing.assert_allclose(results[0], results[1], rtol=1e-6)


def test_optimizer_round_trips_with_its_schedule():
    optimizer = adamw(
        1e-3,
        3,
        30,
        weight_decay=0.2,
        epsilon=1e-5,
        global_clipnorm=2.0,
        layer_decay=0.8,
        bias_correction=False,
    )
    config = keras.saving.serialize_keras_object(optimizer)
    copy = keras.saving.deserialize_keras_object(config)
    assert type(copy) is AdamW
    assert copy.get_config() == optimizer.get_config()
    assert (copy.layer_decay, copy.bias_correction) == (0.8, False)
