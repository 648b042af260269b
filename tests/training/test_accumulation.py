"""Batches in parts: the update is that of the whole batch."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import check_two_replicas, two_replicas
from tests.reference import optimizers as literal
from tests.subjects import distillation, objectives
from tests.subjects.batches import masked_lm_batches
from tfeff.tasks.regressor import GlobalMeanSquaredError
from tfeff.training import AdamW, DistributedModel, load_checkpoint, save_checkpoint
from tfeff.training.accumulation import sum_dtype

PARTS = 2


def masked_lm(steps=PARTS, dropout=0.0, encoder=None, **kwargs):
    return objectives.make_masked_lm(
        "shatter_tiny", dropout, encoder=encoder, accumulation_steps=steps, **kwargs
    )


def trained(model, dataset, start=None):
    if start is not None:
        model.set_weights(start)
    history = model.fit(dataset, shuffle=False, verbose=0).history
    return model.get_weights(), history


def adamw():
    return tfeff.training.adamw(1e-3, 5, 40, global_clipnorm=0.1)


def of_classes(inputs, labels, weights):
    """A label and a weight for each row of the batches."""
    inputs = {name: inputs[name] for name in inputs if name != "mask_positions"}
    return inputs, labels[:, 0] % 3, weights[:, 0]


def subject(kind):
    """What makes the model of a kind from `accumulation_steps`, and its batches."""
    if kind == "masked_lm":
        return masked_lm, masked_lm_batches(batches=5)
    if kind == "classifier":

        def make(steps):
            model = tfeff.tasks.Classifier(objectives.make_encoder(), 3, dropout=0.0)
            model.compile(adamw(), accumulation_steps=steps)
            return model

        return make, masked_lm_batches(batches=5).map(of_classes)
    if kind == "distillation":

        def make(steps):
            model = tfeff.objectives.Distillation(
                distillation.make_encoder(), distillation.make_encoder(4, 12)
            )
            model.compile(adamw(), accumulation_steps=steps)
            return model

        inputs, _ = distillation.make_inputs(batch_size=4)
        return make, tf.data.Dataset.from_tensors((inputs,)).repeat(3)
    return (
        # With next to no temperature nothing is left to chance.
        lambda steps: objectives.make_model(
            kind, temperature=1e-6, compiled={"accumulation_steps": steps}
        ),
        objectives.batches(kind, 5),
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classifier", "distillation", *objectives.KINDS])
def test_parts_train_as_the_whole_batch(kind):
    make_model, dataset = subject(kind)
    keras.utils.set_random_seed(0)
    whole = make_model(1)
    start = whole.get_weights()
    expected, history = trained(whole, dataset)
    for steps in (4,) if kind == "masked_lm" else (2,):
        model = make_model(steps)
        found, losses = trained(model, dataset, start)
        assert losses == {
            name: pytest.approx(values, rel=2e-5, abs=1e-6)
            for name, values in history.items()
        }
        assert int(model.optimizer.iterations.numpy()) == len(list(dataset))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)
    assert max(np.abs(a - b).max() for a, b in zip(expected, start)) > 1e-4


@pytest.mark.slow
def test_losses_of_outputs_are_those_of_the_whole_batch():
    """With metrics of one's own Keras' own means of losses are reported."""
    dataset, histories = objectives.batches("sentence_order", 2), []
    for steps in (1, 4):
        keras.utils.set_random_seed(0)
        model = objectives.make_model("sentence_order")
        accuracy = keras.metrics.SparseCategoricalAccuracy("accuracy")
        model.compile(
            keras.optimizers.SGD(0.0),
            metrics={"sentence": [accuracy]},
            accumulation_steps=steps,
        )
        _, history = trained(model, dataset)
        histories.append({k: v[-1] for k, v in history.items()})
    assert {"masked_lm_loss", "sentence_loss"} < histories[0].keys()
    assert histories[1] == pytest.approx(histories[0], rel=1e-5)


def test_other_losses_are_refused():
    inputs = keras.Input((3,))
    model = DistributedModel(inputs, keras.layers.Dense(2)(inputs))
    for loss in ("mse", [keras.losses.MeanSquaredError()], {"a": "mse"}):
        with pytest.raises(ValueError, match="`loss` must be made of means.*_steps=2"):
            model.compile("sgd", loss, accumulation_steps=2)
    model.compile("sgd", accumulation_steps=2)  # A model's own loss.


def test_weights_of_losses_are_named():
    model = objectives.make_masked_lm("shatter_tiny", 0.0)
    with pytest.raises(ValueError, match=r"`loss_weights` one.*loss_weights=\[0.5\]"):
        model.compile(loss_weights=[0.5], accumulation_steps=2)


@pytest.mark.slow
def test_updates_against_the_literal_algorithm():
    """The gradient is added up target by target; one clipping, decay, rate a step."""
    keras.utils.set_random_seed(0)
    model = masked_lm(4, global_clipnorm=0.05)
    start = [w.numpy() for w in model.trainable_weights]
    dataset = list(masked_lm_batches(batches=4, batch_size=8))
    gradients, rates = [], []
    replayed = masked_lm(1)  # Its weights follow the literal ones.
    cross_entropy = keras.losses.SparseCategoricalCrossentropy(True, reduction=None)
    decays = [0.01 * AdamW().decays(w) for w in model.trainable_weights]
    weights = start
    for step, (inputs, labels, target_weights) in enumerate(dataset):
        for variable, value in zip(replayed.trainable_weights, weights, strict=True):
            variable.assign(value)
        total = [np.zeros(w.shape) for w in weights]
        for row in range(len(labels)):
            example = {name: value[row : row + 1] for name, value in inputs.items()}
            with tf.GradientTape() as tape:
                losses = cross_entropy(labels[row : row + 1], replayed(example))
                loss = tf.reduce_sum(losses * target_weights[row : row + 1])
            found = tape.gradient(loss, replayed.trainable_weights)
            found = [tf.convert_to_tensor(g).numpy() for g in found]
            total = [t + g for t, g in zip(total, found)]
        gradients.append([t / np.sum(target_weights) for t in total])
        rates.append(1e-3 * step / 5)
        ones = [1.0] * len(start)
        weights = literal.adamw(start, gradients, rates, decays, ones, 0.05)
        model.train_on_batch(inputs, labels, sample_weight=target_weights)
        for variable, value in zip(model.trainable_weights, weights, strict=True):
            np.testing.assert_allclose(variable.numpy(), value, rtol=0, atol=3e-6)
    assert np.linalg.norm([np.linalg.norm(g) for g in gradients[0]]) > 0.05
    assert max(np.abs(a - b).max() for a, b in zip(start, weights)) > 5e-4


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"steps_per_execution": 2}])
def test_two_replicas_equal_one_device(options):
    check_two_replicas(
        lambda: masked_lm(**options), masked_lm_batches(batch_size=8), steps=10
    )


@pytest.mark.slow
def test_two_replicas_equal_one_device_with_two_losses():
    check_two_replicas(
        lambda: objectives.make_model(
            "sentence_order", compiled={"accumulation_steps": PARTS}
        ),
        objectives.batches("sentence_order"),
        steps=8,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [{"steps_per_execution": 2}, {"run_eagerly": True}, {"jit_compile": True}],
    ids=str,
)
def test_however_it_runs(options):
    keras.utils.set_random_seed(0)
    plain = masked_lm()
    start = plain.get_weights()
    dataset = masked_lm_batches(batches=4)
    expected, history = trained(plain, dataset)
    found, losses = trained(masked_lm(**options), dataset, start)
    assert losses["loss"] == pytest.approx(history["loss"], rel=1e-5)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)


def test_dropout_is_on():
    model = masked_lm(dropout=0.5)
    model.compile(
        keras.optimizers.SGD(0.0), model.loss, weighted_metrics=[], accumulation_steps=2
    )
    batch = masked_lm_batches(batches=1)
    first, second = (model.fit(batch, verbose=0).history["loss"] for _ in range(2))
    plain = model.evaluate(batch, verbose=0)
    assert len({*first, *second, plain}) == 3


def test_parts_are_summed_in_float32():
    """A bfloat16 sum of many equal parts would stop growing."""
    for dtype in ("float16", "bfloat16"):
        assert sum_dtype(dtype) == "float32"
    assert sum_dtype("float64") == "float64"


@pytest.mark.slow
def test_a_saved_model_trains_on_as_if_it_had_not_been_saved(tmp_path):
    batches = masked_lm_batches(batches=6)
    keras.utils.set_random_seed(0)
    model = masked_lm(dropout=0.2)
    trained(model, batches.take(3))
    save_checkpoint(model, str(tmp_path / "model.keras"))
    loaded = load_checkpoint(str(tmp_path / "model.keras"))
    assert loaded.accumulation_steps == PARTS
    keras.utils.set_random_seed(5)
    expected, _ = trained(model, batches.skip(3))
    found, _ = trained(loaded, batches.skip(3))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision(policy):
    keras.utils.set_random_seed(0)
    whole = masked_lm(1, encoder={"dtype": policy})
    start = whole.get_weights()
    dataset = masked_lm_batches(batches=4)
    expected, history = trained(whole, dataset)
    found, losses = trained(masked_lm(encoder={"dtype": policy}), dataset, start)
    assert losses["loss"] == pytest.approx(history["loss"], rel=5e-3)
    moved = sum(np.sum((a.astype("f8") - b) ** 2) for a, b in zip(expected, start))
    off = sum(np.sum((a.astype("f8") - b) ** 2) for a, b in zip(expected, found))
    assert off < 0.02 * moved


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "parts"),
    [(tf.distribute.get_strategy, 2), (two_replicas, 2), (two_replicas, 1)],
)
def test_a_part_that_overflows_skips_the_update(strategy, parts):
    """Parts of one replica, of two, or the one part of a replica."""
    with strategy().scope():
        model = masked_lm(encoder={"dtype": "mixed_float16"})
        inner = AdamW(1e-3, global_clipnorm=1.0)
        scaled = keras.optimizers.LossScaleOptimizer(inner, initial_scale=2.0**30)
        model.compile(scaled, accumulation_steps=parts)
    ((inputs, labels, weights),) = masked_lm_batches(batches=1)
    weights = np.array(weights)
    weights[:3] = 0  # Parts before the last have nothing to learn: gradients of 0.
    weights[3] = 1
    before = model.get_weights()
    batch = tf.data.Dataset.from_tensors((inputs, labels, weights))
    model.fit(batch, verbose=0, shuffle=False)
    assert model.optimizer.dynamic_scale.numpy() == 2.0**29
    assert int(model.optimizer.iterations.numpy()) == 0
    for old, new in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(new, old)


@pytest.mark.slow
def test_scales_of_float8_are_those_of_the_whole_batch():
    """Keras gives their new values in place of gradients, which are not to be added."""

    def scales(steps):
        keras.utils.set_random_seed(0)
        x = keras.Input((4,))
        hidden = keras.layers.Dense(8, activation="tanh")(x)
        model = DistributedModel(x, keras.layers.Dense(1)(hidden)[:, 0])
        model.quantize("float8")
        model.compile(AdamW(1e-3), GlobalMeanSquaredError(), accumulation_steps=steps)
        rows = np.random.default_rng(0).normal(size=(3, 8, 5)).astype("float32")
        dataset = tf.data.Dataset.from_tensor_slices((rows[..., :4], rows[..., 4]))
        model.fit(dataset.repeat(2), verbose=0)
        weights = model.trainable_weights
        return [weight.numpy() for weight in weights if weight.overwrite_with_gradient]

    expected, found = scales(1), scales(PARTS)
    assert len(expected) == 12
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.01)


def test_a_smaller_last_batch_weighs_as_much_as_it_has_rows():
    def loss(steps):
        keras.utils.set_random_seed(0)
        x = keras.Input((4,))
        model = DistributedModel(x, keras.layers.Dense(1)(x)[:, 0])
        model.compile(
            keras.optimizers.SGD(0.0),
            GlobalMeanSquaredError(),
            accumulation_steps=steps,
        )
        rows = np.random.default_rng(0).normal(size=(10, 5)).astype("float32")
        fit = {"batch_size": 8, "shuffle": False, "verbose": 0}
        return model.fit(rows[:, :4], rows[:, 4], **fit).history["loss"]

    assert loss(PARTS) == pytest.approx(loss(1), rel=1e-6)


def test_weights_that_the_loss_does_not_reach_stay(recwarn):
    x = keras.Input((2,))
    used, unused = keras.layers.Dense(1), keras.layers.Dense(1)
    outputs = used(x) + keras.ops.stop_gradient(unused(x))
    model = DistributedModel(inputs=x, outputs=outputs[:, 0])
    model.compile(
        AdamW(0.1, weight_decay=0.5),
        GlobalMeanSquaredError(),
        accumulation_steps=PARTS,
    )
    x, y = np.ones((4, 2), "float32"), np.ones(4, "float32")
    before = [w.numpy() for w in (*used.weights, *unused.weights)]
    model.fit(x, y, batch_size=4, verbose=0)
    assert any("Gradients do not exist" in str(one.message) for one in recwarn)
    after = [w.numpy() for w in (*used.weights, *unused.weights)]
    same = [np.array_equal(old, new) for old, new in zip(before, after, strict=True)]
    assert same == [False, False, True, True]


@pytest.mark.slow
def test_rows_padded_to_different_lengths():
    """Shapes that are not known before the batch comes."""

    def ragged():
        for length in (5, 9, 7):
            inputs, labels, weights = next(iter(masked_lm_batches(1, 4)))
            yield {k: v[:, :length] for k, v in inputs.items()}, labels, weights

    shape = tf.TensorSpec([None, None], tf.int32)
    _, labels, weights = masked_lm_batches().element_spec
    spec = (dict.fromkeys(masked_lm_batches().element_spec[0], shape), labels, weights)
    dataset = tf.data.Dataset.from_generator(ragged, output_signature=spec)
    keras.utils.set_random_seed(0)
    whole = masked_lm(1)
    start = whole.get_weights()
    expected, _ = trained(whole, dataset)
    found, _ = trained(masked_lm(), dataset, start)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=2e-6)


@pytest.mark.slow
def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="`accumulation_steps` must be .*0"):
        masked_lm(0)
    with pytest.raises(ValueError, match="no `gradient_accumulation_steps`.*=4"):
        masked_lm(1).compile(AdamW(1e-3, gradient_accumulation_steps=4))
    with pytest.raises(ValueError, match="`loss` must be made of means"):
        masked_lm(1).compile(loss="mse", accumulation_steps=2)
    with pytest.raises(ValueError, match="divide.*accumulation_steps=3, 4 rows"):
        trained(masked_lm(3), masked_lm_batches(1))
    unknown = masked_lm_batches(1).unbatch().batch(4)
    with pytest.raises(tf.errors.InvalidArgumentError, match="accumulation_steps=3"):
        trained(masked_lm(3), unknown)
    model = masked_lm()
    model.encoder.blocks[0].activity_regularizer = keras.regularizers.L2(0.1)
    with pytest.raises(ValueError, match="no losses of their own.*1 such"):
        trained(model, masked_lm_batches(1))


@pytest.mark.quick("by name, with weights")
@pytest.mark.parametrize("kind", ["by name", "by name, with weights", "by place"])
def test_parts_of_batches_with_several_outputs(kind):
    """Of a model of the user's own; in parts it trains as with whole batches."""

    def trained(steps):
        keras.utils.set_random_seed(1)
        inputs = keras.Input((3,))
        outputs = {n: keras.layers.Dense(1, name=n)(inputs) for n in ("a", "b")}
        loss = {name: GlobalMeanSquaredError() for name in outputs}
        if kind == "by place":
            outputs, loss = list(outputs.values()), list(loss.values())
        model = DistributedModel(inputs, outputs)
        model.compile(AdamW(0.1), loss, accumulation_steps=steps)
        model.fit(x, y, sample_weight=weights, batch_size=8, shuffle=False, verbose=0)
        return model.get_weights()

    rng = np.random.default_rng(0)
    x, weights = rng.random((8, 3)), None
    y = {name: rng.random((8, 1)) for name in ("a", "b")}
    if kind == "by name, with weights":
        weights = {name: rng.random(8) for name in y}
    if kind == "by place":
        y = list(y.values())
    for one, other in zip(trained(1), trained(2), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-7)
