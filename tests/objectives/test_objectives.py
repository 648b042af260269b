"""What holds for every objective: padding, precision, saving, replicas, XLA."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import check_two_replicas, randomize
from tests.subjects.objectives import KINDS, arrays, batches, make_model
from tfeff import objectives


def loss_of(model, batch):
    """Loss and gradients of one batch."""
    inputs, labels, weights = batch
    with tf.GradientTape() as tape:
        outputs = model(inputs, training=True)
        loss = model.compute_loss(inputs, labels, outputs, weights)
    return loss, tape.gradient(loss, model.trainable_variables)


@pytest.mark.quick("replaced_token", "sentence_order")
@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    model = make_model(kind)
    randomize({w.path: w for w in model.weights if "seed" not in w.path})
    seeds = [v for v in model.variables if v.path.endswith("seed_generator_state")]
    states = [v.numpy() for v in seeds]
    losses = []
    for padding in (0, 4):
        for variable, state in zip(seeds, states):
            variable.assign(state)
        batch = next(iter(batches(kind, 1, padding=padding)))
        loss, gradients = loss_of(model, batch)
        losses.append(float(loss))
        assert all(g is not None for g in gradients)
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_is_like_float32(kind):
    losses, found = [], []
    for dtype in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        model = make_model(kind, 1e-4, dtype=dtype)
        randomize({str(i): w for i, w in enumerate(model.trainable_weights)}, scale=0.2)
        batch = next(iter(batches(kind, 1)))
        loss, gradients = tf.function(partial(loss_of, model))(batch)
        losses.append(float(loss))
        found.append([np.asarray(tf.convert_to_tensor(g)) for g in gradients])
    assert losses[1] == pytest.approx(losses[0], rel=1e-2)
    whole = np.sqrt(sum(np.sum(exact**2) for exact in found[0]))
    for exact, half in zip(*found, strict=True):
        # Of those that are nearly 0, only that they are small.
        assert np.linalg.norm(half - exact) <= 0.05 * max(
            np.linalg.norm(exact), 0.1 * whole
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_model_trains_on_as_if_it_had_not_been_saved(kind, tmp_path):
    model = make_model(kind, dropout=0.3)
    first, second = (batches(kind, 4, seed) for seed in (0, 1))
    history = model.fit(first, shuffle=False, verbose=0).history
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    assert loaded.get_config() == model.get_config()
    assert loaded.optimizer.global_clipnorm == 0.1
    assert np.isfinite(history["loss"]).all()
    histories = [
        m.fit(second, shuffle=False, verbose=0).history for m in (model, loaded)
    ]
    assert histories[0] == histories[1]
    for one, two in zip(model.get_weights(), loaded.get_weights()):
        np.testing.assert_array_equal(two, one)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_two_replicas_equal_one_device(kind):
    """Draws at a temperature near 0 are the likeliest tokens on any device."""
    dataset = batches(kind, 12)
    models = check_two_replicas(
        lambda: make_model(kind, temperature=1e-4), dataset, steps=12
    )
    logs = [m.evaluate(dataset, verbose=0, return_dict=True) for m in models]
    assert set(logs[0]) == set(logs[1])
    for name, value in logs[0].items():
        assert logs[1][name] == pytest.approx(value, rel=1e-4), name


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_training_equals_uncompiled(kind):
    weights = []
    for jit_compile in (False, True):
        keras.utils.set_random_seed(0)
        model = make_model(kind, 1e-4, compiled={"jit_compile": jit_compile})
        model.fit(batches(kind, 6), shuffle=False, verbose=0)
        weights.append(model.get_weights())
    for one, two in zip(*weights):
        np.testing.assert_allclose(two, one, atol=1e-5)


def test_wrong_encoders_are_named():
    dense = keras.layers.Dense(3)
    for make in (objectives.PermutationLM, objectives.SentencePairPrediction):
        with pytest.raises(TypeError, match="`encoder`.*Dense"):
            make(dense)
    with pytest.raises(TypeError, match="`generator`.*Dense"):
        objectives.ReplacedTokenDetection(dense, dense)
    with pytest.raises(TypeError, match="`encoder`.*Dense"):
        objectives.generator_for(dense)


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        keras.losses.CategoricalCrossentropy(),
        keras.losses.binary_crossentropy,
        ["mse", keras.losses.BinaryFocalCrossentropy()],
        keras.losses.SparseCategoricalCrossentropy,
        "kl_divergence",
        keras.losses.CategoricalGeneralizedCrossEntropy(),
        "crossentropy",
        {"logits": "ce"},
        keras.losses.Dice(),
        "tversky",
    ],
)
def test_losses_of_probabilities_are_refused(loss):
    model = make_model(KINDS[0])
    with pytest.raises(ValueError, match="`loss` must take logits.*from_logits=True"):
        model.compile(loss=loss)
    for fits in (
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        "mse",
        lambda y_true, y_pred: y_pred[..., 0],
    ):
        model.compile(loss=fits)


@pytest.mark.parametrize("kind", KINDS)
def test_default_optimizers(kind):
    """Shatter's; that of replaced tokens is ConvBERT small's."""
    optimizer = make_model(kind).default_optimizer()
    of_convbert = kind == "replaced_token"
    rates = [float(optimizer._learning_rate(step)) for step in (10_000, 505_000)]
    peak = 3e-4 if of_convbert else 1e-4
    assert rates == pytest.approx([peak, peak / 2], rel=1e-3)
    assert optimizer.bias_correction is not of_convbert


@pytest.mark.quick("masked_lm")
@pytest.mark.parametrize("kind", KINDS)
def test_missing_targets_are_named(kind):
    model = make_model(kind)
    inputs, *_ = next(iter(batches(kind, 1)))
    for run in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="`y` must .*Received: y=None"):
            run(inputs, verbose=0)


@pytest.mark.parametrize("kind", ["masked_lm", "permutation_lm", "replaced_token"])
def test_weights_of_classes_are_refused_for_tokens(kind):
    model = make_model(kind)
    x, y, weights = arrays(next(iter(batches(kind, 1))))
    for run in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match="`class_weight` .*Received: .*{5: 2.0}"):
            run(x, y, class_weight={5: 2.0})


@pytest.mark.quick("masked_lm")
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_was_compiled_twice_loads(kind, tmp_path):
    model = make_model(kind)
    model.compile(tfeff.training.AdamW(1e-4))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.get_config() == model.optimizer.get_config()
    batch = arrays(next(iter(batches(kind, 1))))
    assert loaded.test_on_batch(*batch) == model.test_on_batch(*batch)


class Labels(tfeff.tasks.Classifier):
    """Of several labels at once."""

    def default_loss(self):
        return keras.losses.BinaryCrossentropy(from_logits=True)


class ScoredLabels(Labels):
    def default_metrics(self):
        return [keras.metrics.BinaryAccuracy(threshold=0.0, name="right")]


def test_metrics_of_ones_own_come_with_a_loss_of_ones_own():
    encoder = make_model("masked_lm").encoder
    x = {name: np.ones((2, 4), "int32") for name in encoder.input}
    y = np.ones((2, 3), "float32")
    for kind, loss, names in (
        (ScoredLabels, "auto", {"loss", "right"}),
        (ScoredLabels, keras.losses.BinaryCrossentropy(from_logits=True), {"loss"}),
        (Labels, "auto", {"loss"}),
    ):
        model = kind(encoder, 3)
        model.compile(loss=loss)
        assert set(model.evaluate(x, y, verbose=0, return_dict=True)) == names
