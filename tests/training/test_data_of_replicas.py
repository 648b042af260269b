"""Several replicas train on the data that one device trains on, each batch once."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks.replicas import two_replicas

ROWS = 6
STEPS = 4


def compiled(make_task, strategy, **options):
    """A task's model, on one device where there is no strategy."""
    with strategy.scope() if strategy else contextlib.nullcontext():
        keras.utils.set_random_seed(3)
        encoder = tfeff.encoders.build(
            "bert_tiny", vocabulary_size=50, num_layers=1, dropout=0.0
        )
        model = make_task(encoder)
        model.compile(tfeff.training.AdamW(1e-2), **options)
    return model


def classifier(encoder):
    return tfeff.tasks.Classifier(encoder, num_classes=3, dropout=0.0)


def inputs(seed, *shape):
    ids = np.random.default_rng(seed).integers(5, 50, shape).astype("int32")
    ones = np.ones_like(ids)
    return {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ones}


def batches():
    for seed in range(STEPS):
        x = inputs(seed, ROWS, 7)
        yield x, x["token_ids"][:, 0] % 3


def shuffled():
    signature = tf.data.Dataset.from_tensors(next(batches())).element_spec
    data = tf.data.Dataset.from_generator(batches, output_signature=signature)
    return data.unbatch().shuffle(ROWS * STEPS, seed=5).batch(ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("data", [batches, shuffled])
def test_no_batch_is_read_to_build_the_model(data):
    found = []
    for strategy in (None, two_replicas()):
        model = compiled(classifier, strategy)
        losses = model.evaluate(data(), verbose=0)
        losses += model.fit(data(), verbose=0).history["loss"]
        found.append(losses + model.evaluate(data(), verbose=0))
    np.testing.assert_allclose(*found, rtol=1e-4)


@pytest.mark.quick("5-True")
@pytest.mark.parametrize("run_eagerly", [False, True])
@pytest.mark.parametrize("rows", [ROWS, 5, 1])
def test_the_rows_of_one_batch_are_shared(rows, run_eagerly):
    x, y = next(batches())
    x, y = {name: values[:rows] for name, values in x.items()}, y[:rows]
    found = []
    for strategy in (None, two_replicas()):
        model = compiled(classifier, strategy, run_eagerly=run_eagerly)
        before = model.predict_on_batch(x)
        losses = [model.train_on_batch(x, y), model.test_on_batch(x, y)]
        found.append((before, losses, model.predict_on_batch(x)))
        assert before.shape == (rows, 3)
    for one, two in zip(*found):
        np.testing.assert_allclose(two, one, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_contrasts_of_one_batch_have_each_negative_once():
    x = inputs(0, ROWS, 2, 7)
    y = np.arange(2 * ROWS, dtype="int32").reshape(ROWS, 2)
    found = []
    for strategy in (None, two_replicas()):
        model = compiled(tfeff.tasks.SentenceEmbedding, strategy)
        found.append([model.train_on_batch(x, y), model.test_on_batch(x, y)])
    np.testing.assert_allclose(*found, rtol=1e-4)


def state(model):
    """The values of all weights, slots, counts and generators of a model."""
    variables = model.variables + model.optimizer.variables
    return [keras.ops.convert_to_numpy(variable) for variable in variables]


@pytest.mark.quick("plain-1")
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"steps_per_execution": 3},
        {"accumulation_steps": 3},
        {"jit_compile": True},
        {"run_eagerly": True},
    ],
    ids=lambda options: next(iter(options), "plain"),
)
def test_the_end_of_the_data_updates_nothing(replicas, options):
    strategy = two_replicas() if replicas > 1 else None

    def random_classifier(encoder):
        return tfeff.tasks.Classifier(encoder, num_classes=3, dropout=0.2)

    model, expected = (
        compiled(random_classifier, strategy, **options) for _ in range(2)
    )
    for epoch in (1, 2):
        model.fit(batches(), verbose=0)
        for x, y in batches():
            expected.train_on_batch(x, y)
        assert model.optimizer.iterations.numpy() == epoch * STEPS
        model.evaluate(batches(), verbose=0)
    for value, other in zip(state(model), state(expected), strict=True):
        # Rounding moves biases of keys, which have no gradient, by parts of the rate.
        np.testing.assert_allclose(value, other, rtol=1e-3, atol=1e-4)


class PartOfY(tfeff.tasks.Classifier):
    """A hook that makes the labels, and a step that reports more than metrics."""

    def prepare_batch(self, data):
        x, y = data
        return x, keras.ops.argmax(y, -1)

    def train_step(self, data):
        logs = super().train_step(data)
        return {"extra": 1.0, "grouped": logs}


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 3])
def test_hooks_and_reports_of_a_model_of_ones_own(steps):
    found = []
    for strategy in (None, two_replicas()):
        model = compiled(
            lambda encoder: PartOfY(encoder, num_classes=3, dropout=0.0),
            strategy,
            metrics=["accuracy"],
            steps_per_execution=steps,
        )
        data = ((x, np.eye(3)[y]) for x, y in batches())
        expected = pytest.warns(UserWarning, match="`train_step` .*: extra. Metrics")
        with expected if strategy else contextlib.nullcontext():
            history = model.fit(data, verbose=0).history
        assert ("extra" in history) is (strategy is None)
        found.append([*history["loss"], *history["accuracy"]])
    np.testing.assert_allclose(*found, rtol=1e-4)


def test_a_smaller_last_batch_is_traced_with_the_others_on_one_replica():
    traces = []

    class Traced(tfeff.training.DistributedModel):
        def train_step(self, data):
            traces.append(data)
            return super().train_step(data)

    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        x = keras.Input((2,))
        model = Traced(x, keras.layers.Dense(1)(x))
        model.compile("sgd", "mse", jit_compile=False)
    model.fit(np.ones((7, 2)), np.ones((7, 1)), batch_size=4, epochs=2, verbose=0)
    assert len(traces) == 1


class FromX(tfeff.tasks.Classifier):
    """A hook that makes the labels of what goes into the model."""

    def prepare_batch(self, data):
        x, _, sample_weight = data
        return x, x["token_ids"][:, 0] % 3, sample_weight


def test_batches_with_none_of_several_replicas_are_refused():
    x, y = next(batches())
    weights = np.ones(ROWS, "float32")
    model = compiled(lambda encoder: FromX(encoder, num_classes=3), two_replicas())
    for call in (
        lambda: model.train_on_batch(x, None, weights),
        lambda: model.test_on_batch(x, None, weights),
        lambda: model.fit(tf.data.Dataset.from_tensors((x, y, None)), verbose=0),
    ):
        with pytest.raises(ValueError, match="no `None` .* replicas"):
            call()


@pytest.mark.slow
@pytest.mark.parametrize("reads_values", [False, True])
def test_hooks_of_eager_models(reads_values):
    class Hooked(tfeff.tasks.Classifier):
        def prepare_batch(self, data):
            x, y = data
            if not reads_values:
                return x, keras.ops.argmax(y, -1)
            assert keras.ops.convert_to_numpy(x["token_ids"]).min() > 0
            return x, y

    found = []
    for strategy in (None, tf.distribute.OneDeviceStrategy("CPU:0"), two_replicas()):
        model = compiled(
            lambda encoder: Hooked(encoder, num_classes=3, dropout=0.0),
            strategy,
            metrics=["accuracy"],
            run_eagerly=True,
        )
        data = ((x, y if reads_values else np.eye(3)[y]) for x, y in batches())
        history = model.fit(data, verbose=0).history
        found.append([*history["loss"], *history["accuracy"]])
    np.testing.assert_allclose(found, [found[0]] * 3, rtol=1e-4)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_errors_of_hooks_are_their_own(run_eagerly):
    class Wrong(tfeff.tasks.Classifier):
        def prepare_batch(self, data):
            raise KeyError("no such part")

    model = compiled(
        lambda encoder: Wrong(encoder, num_classes=3),
        two_replicas(),
        run_eagerly=run_eagerly,
    )
    with pytest.raises(KeyError, match="no such part"):
        model.fit(*next(batches()), verbose=0)


def test_what_a_strategy_cannot_read_is_told():
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        inputs = keras.Input((2,))
        model = tfeff.training.DistributedModel(inputs, keras.layers.Dense(1)(inputs))
    data = tf.data.Dataset.from_tensors((np.ones((4, 2)), np.ones((4, 1)), None))
    model.compile("sgd", "mse", steps_per_execution=2, jit_compile=False)
    with pytest.raises(ValueError, match="no `None` .*several `steps_per_execution`"):
        model.fit(data, verbose=0)
    unknown = data.map(lambda x, y, _: (tf.py_function(lambda x: x, [x], x.dtype), y))
    model.compile("sgd", "mse", metrics=["mae"], jit_compile=False)
    with pytest.raises(ValueError, match="known number of axes .*tf.ensure_shape"):
        model.fit(unknown, verbose=0)


@pytest.mark.quick("1")
@pytest.mark.parametrize("replicas", [1, 2])
def test_data_without_a_batch_are_told(replicas):
    strategy = two_replicas() if replicas == 2 else None
    model = compiled(classifier, strategy, metrics=["accuracy"])
    x, y = next(batches())
    empty = tf.data.Dataset.from_tensors((x, y)).filter(lambda *_: False)
    for run in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="The data must have a batch"):
            run(empty, verbose=0)
    model.fit(x, y, verbose=0)
    with pytest.raises(ValueError, match="The data must have a batch"):
        model.fit(x, y, validation_data=empty, verbose=0)
