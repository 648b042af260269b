"""Masked language modelling: head, loss, metrics, replicas, precision, saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import (
    assert_close,
    check_two_replicas,
    randomize,
    two_replicas,
)
from tests.reference.objectives import cross_entropies, masked_lm_logits
from tests.subjects.batches import masked_lm_batches
from tests.subjects.objectives import head_weights, make_masked_lm
from tfeff.objectives import GlobalMeanCrossentropy, MaskedLM

PRESETS = ("shatter_tiny", pytest.param("bert_tiny", marks=pytest.mark.slow))


def test_loss_is_the_mean_over_weighted_targets():
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, 4, 7)).astype("float32") * 5
    labels = rng.integers(0, 7, (3, 4))
    weights = rng.random((3, 4)).astype("float32")
    weights[1] = 0
    total, count = cross_entropies(logits, labels, weights)
    loss = GlobalMeanCrossentropy()
    assert float(loss(labels, logits, weights)) == pytest.approx(total / count, 1e-5)
    everywhere, _ = cross_entropies(logits, labels, np.ones((3, 4)))
    assert float(loss(labels, logits)) == pytest.approx(everywhere / 12, 1e-5)
    assert float(loss(labels, logits, weights * 0)) == 0.0


@pytest.mark.parametrize("embedding_dim", [None, 6])
def test_head_is_tied_to_the_token_table(embedding_dim):
    model = make_masked_lm("shatter_tiny", encoder=dict(embedding_dim=embedding_dim))
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.3)
    inputs, _, _ = next(iter(masked_lm_batches()))
    inputs["mask_positions"] = inputs["mask_positions"][:, ::-1] + 2
    hidden = np.asarray(model.encoder(inputs)["sequence_output"], "float64")
    table = model.encoder.token_embedding.embeddings.numpy().astype("float64")
    expected = masked_lm_logits(
        hidden, np.asarray(inputs["mask_positions"]), head_weights(model.head), table
    )
    assert_close(model(inputs), expected, 1e-5, "logits")


def test_reported_loss_counts_targets_not_batches():
    """Batches with few targets must not weigh as much as those with many."""
    model = make_masked_lm("bert_tiny")
    randomize({w.path: w for w in model.weights if "seed" not in w.path})
    dataset = masked_lm_batches(batches=5)
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    total = count = right = 0.0
    for inputs, labels, weights in dataset:
        logits = np.asarray(model(inputs))
        labels, weights = np.asarray(labels), np.asarray(weights)
        total += cross_entropies(logits, labels, weights)[0]
        right += np.sum(weights * (logits.argmax(-1) == labels))
        count += weights.sum()
    assert set(logs) == {"loss", "accuracy"}
    assert logs["loss"] == pytest.approx(total / count, rel=1e-5)
    assert logs["accuracy"] == pytest.approx(right / count, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_two_replicas_equal_one_device_with_clipping(preset):
    def make():
        # One device goes step by step. 20 is no multiple of 3: the last execution of
        # the replicas is shorter, not padded.
        steps = 3 if tf.distribute.has_strategy() else 1
        return make_masked_lm(preset, steps_per_execution=steps)

    single, double = check_two_replicas(make, masked_lm_batches(), steps=20)
    logs = [m.evaluate(masked_lm_batches(), verbose=0) for m in (single, double)]
    np.testing.assert_allclose(logs[1], logs[0], rtol=1e-4)


@pytest.mark.slow
def test_two_replicas_equal_one_device_with_every_attention():
    def relative(method, **arguments):
        return {"name": "relative", "method": method, "max_distance": 5, **arguments}

    attentions = [
        relative("bias", num_buckets=8),
        *(relative(method) for method in ("rpe", "huang2", "huang3", "huang4")),
        relative("xlnet", relative_segments=True),
        {"name": "blockwise", "head_blocks": "1:1"},
        {"name": "mixed", "kernel_size": 3},
        relative("bias", num_buckets=8),
        "one_head",
    ]
    encoder = dict(
        attention=attentions,
        num_layers=len(attentions),
        num_heads=2,
        embedding_dim=8,
        feedforward={"num_groups": 2},
        sharing="feedforward",
        sharing_group_size=5,
    )
    check_two_replicas(
        lambda: make_masked_lm("bert_tiny", encoder=encoder),
        masked_lm_batches(),
        steps=5,
    )


@pytest.mark.slow
def test_clipping_is_active_in_the_comparison():
    """Without it, other weights come out: the test above does test clipping."""
    dataset = masked_lm_batches()
    weights = []
    for norm in (0.1, None):
        keras.utils.set_random_seed(0)
        model = make_masked_lm("bert_tiny", global_clipnorm=norm)
        model.fit(dataset, shuffle=False, verbose=0)
        weights.append(np.concatenate([np.ravel(w) for w in model.get_weights()]))
    assert np.abs(weights[0] - weights[1]).max() > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("steps_per_execution", [1, 3])
def test_two_replicas_with_dropout(steps_per_execution):
    with two_replicas().scope():
        model = make_masked_lm(
            "shatter_tiny", dropout=0.2, steps_per_execution=steps_per_execution
        )
    # 20 steps are no multiple of 3: the last execution is shorter, not padded.
    losses = model.fit(masked_lm_batches(), epochs=3, shuffle=False, verbose=0).history[
        "loss"
    ]
    assert int(model.optimizer.iterations.numpy()) == 60
    assert np.isfinite(losses).all() and losses[-1] < losses[0]


@pytest.mark.slow
def test_two_replicas_with_scaled_losses():
    with two_replicas().scope():
        model = make_masked_lm("shatter_tiny", encoder=dict(dtype="mixed_float16"))
    losses = model.fit(masked_lm_batches(), epochs=2, shuffle=False, verbose=0).history[
        "loss"
    ]
    assert int(model.optimizer.inner_optimizer.iterations.numpy()) == 40
    assert losses[1] < losses[0]


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_steps_per_execution_changes_nothing(replicas):
    histories = []
    for steps in (1, 5):
        keras.utils.set_random_seed(0)
        if replicas == 2:
            with two_replicas().scope():
                model = make_masked_lm("bert_tiny", steps_per_execution=steps)
        else:
            model = make_masked_lm("bert_tiny", steps_per_execution=steps)
        histories.append(
            model.fit(
                masked_lm_batches().repeat(),
                epochs=2,
                steps_per_epoch=10,
                validation_data=masked_lm_batches(batches=7, seed=1),
                shuffle=False,
                verbose=0,
            ).history
        )
    for name, values in histories[0].items():
        np.testing.assert_allclose(histories[1][name], values, rtol=1e-5, err_msg=name)


@pytest.mark.slow
def test_half_precision_trains_like_float32():
    losses = {}
    for policy in ("float32", "mixed_float16", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        model = make_masked_lm("shatter_tiny", encoder=dict(dtype=policy))
        history = model.fit(masked_lm_batches(), epochs=3, shuffle=False, verbose=0)
        losses[policy] = history.history["loss"]
        assert all(w.dtype == "float32" for w in model.trainable_weights)
        scales = isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
        assert scales == (policy == "mixed_float16")
    exact = losses["float32"]
    assert exact[-1] < 0.99 * exact[0]  # More than what is let pass.
    for policy, values in losses.items():
        np.testing.assert_allclose(values, exact, rtol=2e-3, err_msg=policy)


def test_defaults_are_those_of_the_paper():
    model = MaskedLM(make_masked_lm("shatter_tiny").encoder)
    model.compile()
    schedule = model.optimizer._learning_rate
    assert (schedule.peak_rate, schedule.warmup_steps) == (1e-4, 10_000)
    assert schedule.total_steps == 1_000_000
    assert model.optimizer.weight_decay == 0.01


def test_wrong_encoder_is_named():
    with pytest.raises(TypeError, match="`encoder`.*Dense"):
        MaskedLM(keras.layers.Dense(3))


def test_weights_of_examples_are_for_all_their_targets():
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(3, 4, 7)), rng.integers(0, 7, (3, 4))
    loss, weights = GlobalMeanCrossentropy(), np.array([1.0, 0.0, 3.0])
    total, count = cross_entropies(logits, labels, np.tile(weights[:, None], 4))
    for given in (weights, weights[:, None]):
        assert float(loss(labels, logits, given)) == pytest.approx(total / count, 1e-5)
    alone = loss(labels[:, 0], logits[:, 0], weights[:, None])
    total, count = cross_entropies(logits[:, 0], labels[:, 0], weights)
    assert float(alone) == pytest.approx(total / count, 1e-5)
    with pytest.raises(ValueError, match="`sample_weight` must have the axes"):
        loss(labels, logits, np.ones((3, 4, 7)))


def test_an_input_more_shifts_no_other():
    model = make_masked_lm("shatter_tiny")
    inputs, labels, weights = next(iter(masked_lm_batches()))
    more = {**inputs, "ranks": inputs["token_ids"]}
    np.testing.assert_array_equal(model(more), model(inputs))


def test_the_reported_loss_is_the_compiled_one():
    model = make_masked_lm("shatter_tiny")
    inputs, labels, weights = next(iter(masked_lm_batches()))
    mean = model.evaluate(inputs, labels, sample_weight=weights, verbose=0)[0]
    loss = keras.losses.SparseCategoricalCrossentropy(True, reduction="sum")
    model.compile(loss=loss)
    logs = model.evaluate(
        inputs, labels, sample_weight=weights, verbose=0, return_dict=True
    )
    count = float(keras.ops.sum(weights))
    assert logs["loss"] == pytest.approx(mean * count, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_outside_of_a_graph(policy):
    model = make_masked_lm("shatter_tiny", encoder=dict(dtype=policy))
    inputs, labels, weights = next(iter(masked_lm_batches()))
    logits = model(inputs)
    assert logits.dtype == "float32" and np.isfinite(logits).all()
    reported = model.evaluate(inputs, labels, sample_weight=weights, verbose=0)[0]
    loss = GlobalMeanCrossentropy()(labels, model.predict(inputs, verbose=0), weights)
    assert reported == pytest.approx(float(loss), 1e-6)


@pytest.mark.slow
def test_a_single_batch_on_two_replicas():
    with two_replicas().scope():
        model = make_masked_lm("shatter_tiny")
    inputs, labels, weights = next(iter(masked_lm_batches()))
    with model.distribute_strategy.scope():
        loss = model.train_on_batch(inputs, labels, weights, return_dict=True)["loss"]
    assert np.isfinite(loss)
