"""Schedule and AdamW against literal versions."""

import json

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import check_two_replicas
from tests.checks.replicas import two_replicas
from tests.reference import optimizers as literal
from tests.subjects.small_runs import X, Y
from tfeff.tasks.regressor import GlobalMeanSquaredError
from tfeff.training import AdamW, DistributedModel, LinearWarmupDecay, adamw


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
            optimizer.apply(step, iter(variables))
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
    error = TypeError if value == "high" else ValueError
    with pytest.raises(error, match=f"`{name}` must be a finite number .*{value}"):
        adamw(0.1, 2, 10, **{name: value})


@pytest.mark.parametrize("value", [0, -1, float("nan"), "high"])
def test_norms_and_decays_that_would_do_nothing_or_harm_are_named(value):
    error = TypeError if value == "high" else ValueError
    for name, expected in (("global_clipnorm", "above 0"), ("weight_decay", "least 0")):
        if (name, value) != ("weight_decay", 0):
            with pytest.raises(error, match=f"`{name}` must be a .* {expected}"):
                adamw(0.1, 2, 10, **{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("epsilon", x) for x in ("x", float("nan"), -1.0, 0, None, True)),
        *(("learning_rate", x) for x in (-1.0, float("nan"), float("inf"), True)),
        *(("beta_1", x) for x in (2.0, -0.1, True)),
        *(("weight_decay", -1.0), ("weight_decay", None), ("clipnorm", -1.0)),
        *(("clipvalue", float("nan")), ("global_clipnorm", float("inf"))),
    ],
)
def test_numbers_out_of_range_are_named(name, value):
    good = {} if name == "learning_rate" else {"learning_rate": 1e-3}
    with pytest.raises((TypeError, ValueError), match=f"`{name}` must"):
        AdamW(**good | {name: value})
    if name in ("epsilon", "beta_1"):
        with pytest.raises((TypeError, ValueError), match=f"`{name}` must"):
            adamw(1e-3, 1, 4, **{name: value})


def test_a_rate_may_be_a_schedule_or_a_variable():
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 9)
    for rate in (schedule, LinearWarmupDecay(0.1, 1, 4), lambda: 0.1, 0.0, 0.1):
        AdamW(rate)
    with pytest.raises(ValueError, match="`learning_rate` must"):
        AdamW(-1.0)  # By position, too.
    optimizer = AdamW(0.1)
    optimizer.learning_rate = keras.Variable(0.2)
    assert AdamW.from_config(optimizer.get_config()).learning_rate == 0.2


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


@pytest.mark.parametrize(
    "clipping",
    [
        pytest.param({"clipnorm": 0.5}, marks=pytest.mark.slow),
        pytest.param({"clipvalue": 0.2}, marks=pytest.mark.slow),
        {"global_clipnorm": 0.5},
    ],
)
def test_two_replicas_clip_as_one_device(clipping):
    import tensorflow as tf

    def make_model():
        x = keras.Input((2,))
        y = keras.layers.Dense(3, activation="tanh")(x)
        model = DistributedModel(x, keras.layers.Dense(1)(y))
        # With a large epsilon the size of the gradient counts.
        model.compile(AdamW(0.1, epsilon=1.0, **clipping), "mse")
        return model

    data = tf.data.Dataset.from_tensor_slices((X, 10 * Y)).batch(4)
    check_two_replicas(make_model, data, steps=5)


@pytest.mark.parametrize(
    ("clipping", "expected"),
    [
        ({"clipnorm": 1.0}, [[0.6, -0.8], [0.0, 0.5]]),
        ({"clipvalue": 1.0}, [[1.0, -1.0], [0.0, 0.5]]),
        ({}, [[3.0, -4.0], [0.0, 0.5]]),
    ],
)
def test_each_gradient_is_clipped(clipping, expected):
    variables = [keras.Variable([0.0, 0.0], name=f"bias{i}") for i in range(2)]
    optimizer = AdamW(1.0, beta_1=0.0, beta_2=0.0, epsilon=1e6, **clipping)
    optimizer.apply([np.array([3.0, -4.0]), np.array([0.0, 0.5])], variables)
    for variable, gradient in zip(variables, expected, strict=True):
        step = -1e-6 * np.array(gradient)
        np.testing.assert_allclose(variable.numpy(), step, rtol=1e-4)


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


def queries(model):
    """The kernels of the queries of a model, in the order of its layers."""
    return [w for w in model.weights if w.path.endswith("query/kernel")]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
@pytest.mark.parametrize("is_built", [True, False])
def test_weights_of_one_path_are_excluded_one_by_one(is_built, dtype, tmp_path):
    """The generator and the discriminator have layers of the same names."""
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=9, num_layers=1, dtype=dtype
    )
    model = tfeff.objectives.get("replaced_token").make_model(encoder, 1 / 2)
    (kernel,) = queries(encoder)
    assert len([w for w in model.trainable_weights if w.path == kernel.path]) == 2
    optimizer = adamw(1e-2, 1, 50, weight_decay=1.0)
    optimizer.exclude_from_weight_decay(var_list=[kernel])
    model.compile(optimizer)
    if is_built:
        model.optimizer.build(model.trainable_variables)
    other = adamw(1e-2, 1, 50, weight_decay=1.0)
    other.exclude_from_weight_decay(var_list=[kernel])
    made = [tfeff.training.double_depth(model, how) for how in ("copy", "reset", other)]
    if is_built:
        path = str(tmp_path / "model.keras")
        tfeff.training.save_checkpoint(model, path)
        made += [model, tfeff.training.load_checkpoint(path)]
    for each in made:
        optimizer = getattr(each.optimizer, "inner_optimizer", each.optimizer)
        for part, expected in ((each.encoder, False), (each.generator, True)):
            found = [optimizer.decays(kernel) for kernel in queries(part)]
            assert found == [expected] * each.encoder.num_layers


@pytest.mark.parametrize("way", ["config", "earlier config", "checkpoint", "optimizer"])
def test_what_is_frozen_stays_excluded_from_decay(way, tmp_path):
    """First the head is trained, then everything."""
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=9, num_layers=2)
    model = tfeff.tasks.Classifier(encoder, 2)
    kernel = queries(model)[1]
    optimizer = adamw(1e-2, 1, 50, weight_decay=1.0)
    optimizer.exclude_from_weight_decay(var_list=[kernel])
    earlier = optimizer.get_config()
    encoder.trainable = False
    model.compile(optimizer)
    model.optimizer.build(model.trainable_variables)
    if way == "checkpoint":
        path = str(tmp_path / "model.keras")
        tfeff.training.save_checkpoint(model, path)
        model = tfeff.training.load_checkpoint(path)
    model.encoder.trainable = True
    config = earlier if way == "earlier config" else model.optimizer.get_config()
    if way == "optimizer":
        optimizer = adamw(1e-2, 1, 50, weight_decay=1.0)
        optimizer.exclude_from_weight_decay(var_list=[kernel])
        # Of weights that are copies, the paths are the same.
        model = tfeff.tasks.Classifier(tfeff.encoders.extend_length(encoder, 1024), 2)
    else:
        optimizer = AdamW.from_config(config)
    before = json.dumps(config, default=str)
    model.compile(optimizer)
    model.optimizer.build(model.trainable_variables)
    assert [optimizer.decays(weight) for weight in queries(model)] == [True, False]
    assert json.dumps(config, default=str) == before


@pytest.mark.slow
@pytest.mark.parametrize("by_name", [True, False])
def test_what_is_excluded_from_decay_stays_excluded(by_name, tmp_path):
    sizes = dict(num_layers=1, hidden_dim=8, num_heads=2, intermediate_dim=8)
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=9, **sizes)
    model = tfeff.tasks.Classifier(encoder, 2)
    optimizer = adamw(1e-2, 1, 50, weight_decay=1e3)  # Nobody could miss it.
    if by_name:
        optimizer.exclude_from_weight_decay(var_names=["query"])
    else:
        optimizer.exclude_from_weight_decay(var_list=queries(model))
    model.compile(optimizer)
    inputs = {name: np.ones((2, 5), "int32") for name in encoder.input}
    model.train_on_batch(inputs, np.array([0, 1]))
    path = str(tmp_path / "model.keras")
    tfeff.training.save_checkpoint(model, path)
    again = tfeff.training.load_checkpoint(path)
    for trained in (model, again):
        (query,) = queries(trained)
        before = np.array(query)
        trained.train_on_batch(inputs, np.array([0, 1]))
        assert np.abs(query - before).max() < 0.1
        keys = [w for w in trained.trainable_weights if "key/kernel" in w.path]
        assert np.abs(keys[0]).max() > 0.1


@pytest.mark.parametrize(
    ("dtype", "given", "name"),
    [
        ("bfloat16", {}, "beta_2"),
        ("bfloat16", {"bias_correction": False}, "beta_2"),
        ("bfloat16", {"beta_1": 0.999, "beta_2": 0.98}, "beta_1"),
        ("float16", {"beta_2": 0.98}, "beta_2"),
    ],
)
def test_dtypes_that_cannot_hold_the_means_are_refused(dtype, given, name):
    kernel = keras.Variable(np.ones(3), dtype=dtype, name="kernel")
    optimizer = AdamW(0.1, **given)
    value = getattr(optimizer, name)
    message = f"`{name}`.*mixed_{dtype}.*{name}={value}.*kernel.*{dtype}"
    with pytest.raises(ValueError, match=message):
        optimizer.apply([keras.ops.ones(3, dtype)], [kernel])


def test_bfloat16_trains_with_betas_that_it_has():
    kernel = keras.Variable(np.ones(3), dtype="bfloat16", name="kernel")
    optimizer = AdamW(0.5, beta_2=0.98)
    optimizer.apply([keras.ops.ones(3, "bfloat16")], [kernel])
    assert float(kernel[0]) == pytest.approx(0.5, abs=0.02)


@pytest.mark.slow
def test_a_file_that_cannot_be_trained_on_still_predicts(tmp_path):
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=9, num_layers=1, hidden_dim=8, dtype="bfloat16"
    )
    model = tfeff.tasks.Classifier(encoder, 2)
    model.compile()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    ones = np.ones((2, 4), "int32")
    inputs = {"token_ids": ones, "segment_ids": 0 * ones, "padding_mask": ones}
    loaded.evaluate(inputs, np.array([0, 1]), verbose=0)
    with pytest.raises(ValueError, match="`beta_2`"):
        loaded.fit(inputs, np.array([0, 1]), verbose=0)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["float8_from_float32", "float8_from_mixed_float16"])
def test_two_replicas_have_one_device_s_scales_of_float8(policy):
    """Keras gives their new values in place of gradients, which are not summed."""
    import tensorflow as tf

    def make_model():
        x = keras.Input((2,))
        dense = keras.layers.Dense(8, activation="tanh", dtype=policy.split("from_")[1])
        model = DistributedModel(x, keras.layers.Dense(1)(dense(x))[:, 0])
        dense.quantize("float8")
        model.compile(AdamW(0.01), GlobalMeanSquaredError())
        return model

    # The largest values are in one replica's rows.
    x = np.linspace(0.1, 3.0, 40).reshape(-1, 2).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((x, x[:, 0])).batch(4)
    # Sums of another order may be rounded to another number of eight bits.
    one, _ = check_two_replicas(make_model, data, steps=5, tolerance=5e-4)
    assert any(weight.overwrite_with_gradient for weight in one.weights)


@pytest.mark.parametrize(
    ("optimizer", "is_float8", "message"),
    [
        (
            lambda: AdamW(0.1, use_ema=True, ema_overwrite_frequency=2),
            False,
            "`optimizer` must have no `ema_overwrite_frequency`.*=2",
        ),
        (
            lambda: keras.optimizers.SGD(0.1),
            True,
            "`optimizer` must be a `tfeff.training.AdamW`.*float8.*SGD",
        ),
    ],
)
def test_training_that_several_replicas_cannot_do_is_named(
    optimizer, is_float8, message, tmp_path
):
    with two_replicas().scope():
        x = keras.Input((2,))
        model = DistributedModel(x, keras.layers.Dense(4)(x))
        model.compile(optimizer(), "mse")
        if is_float8:
            model.quantize("float8")
    with pytest.raises(ValueError, match=message):
        model.fit(X, np.zeros((len(X), 4)), verbose=0)
    path = str(tmp_path / "model.keras")
    model.save(path)
    with two_replicas().scope():  # It predicts all the same.
        assert keras.models.load_model(path).predict(X, verbose=0).shape == (len(X), 4)
