"""`DistributedModel` as a base of other models, and its checkpoints."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks.replicas import two_replicas
from tests.subjects.encoders import tiny
from tfeff.objectives import GlobalMeanCrossentropy
from tfeff.tasks.regressor import GlobalMeanSquaredError
from tfeff.training import AdamW, DistributedModel, load_checkpoint, save_checkpoint

X, Y = np.linspace(-1, 1, 8)[:, None], np.ones((8, 1))


@keras.saving.register_keras_serializable("tests.training.test_model")
class WithCall(DistributedModel):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(1)

    def build(self, shape):
        self.dense.build(shape)
        super().build(shape)

    def call(self, inputs):
        return self.dense(inputs)


def of_graph():
    x = keras.Input((1,))
    y = keras.layers.Dropout(0.5, seed=1)(keras.layers.Dense(1)(x))
    return DistributedModel(x, y)


def with_call():
    model = WithCall()
    model.build((None, 1))
    return model


def test_what_is_compiled_by_place_is_saved():
    model = of_graph()
    # Of jit_compile it is "auto" that is saved where nothing was given.
    model.compile("sgd", "mse", None, None, None, False, 1, False)
    assert model.get_compile_config()["jit_compile"] is False


@pytest.mark.quick("of_graph")
@pytest.mark.parametrize("make", [of_graph, with_call])
def test_a_checkpoint_goes_on_as_the_model_would(tmp_path, make):
    path = str(tmp_path / "model.keras")
    model = make()
    model.compile("adam", GlobalMeanSquaredError(), accumulation_steps=2)
    model.fit(X, Y, shuffle=False, verbose=0)
    save_checkpoint(model, path)
    loaded = load_checkpoint(path)
    assert type(loaded) is type(model) and isinstance(loaded, DistributedModel)
    assert loaded.optimizer.iterations == 1 and loaded.accumulation_steps == 2
    for trained in (model, loaded):
        trained.fit(X, Y, shuffle=False, verbose=0)
    for one, other in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_functional_models_leave_their_base_as_it_is():
    bases = DistributedModel.__bases__
    of_graph()
    tfeff.tasks.Classifier(tiny("bert_tiny"), num_classes=2)
    assert DistributedModel.__bases__ == bases
    assert WithCall()(X).shape == (8, 1)


def test_unknown_keywords_of_a_functional_model_are_an_error():
    x = keras.Input((1,))
    for args, graph in (([x, x], {}), ([x], {"outputs": x})):
        with pytest.raises(TypeError, match="`nmae` must be left out"):
            DistributedModel(*args, **graph, nmae="a")


@pytest.mark.slow
def test_data_sets_without_an_end_are_refused():
    """Keras would wait for their end."""
    import tensorflow as tf

    model = of_graph()
    model.compile("sgd", "mse")
    ends = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    endless = ends.repeat()
    for name, call in {
        "steps_per_epoch": lambda **steps: model.fit(endless, verbose=0, **steps),
        "validation_steps": lambda **steps: model.fit(
            ends, validation_data=endless, verbose=0, **steps
        ),
        "steps": lambda **steps: model.evaluate(endless, verbose=0, **steps),
    }.items():
        with pytest.raises(ValueError, match=f"`{name}` must be given.*{name}=None"):
            call()
        call(**{name: 2})
    with pytest.raises(ValueError, match="`steps` must be given"):
        model.predict(endless.map(lambda x, y: x))
    assert len(model.predict(endless.map(lambda x, y: x), steps=3, verbose=0)) == 12
    strategy = two_replicas()
    with strategy.scope():
        model = of_graph()
        model.compile("sgd", "mse")
    distributed = strategy.experimental_distribute_dataset(endless)
    with pytest.raises(ValueError, match="`steps_per_epoch` must be given"):
        model.fit(distributed, verbose=0)
    model.fit(distributed, steps_per_epoch=2, verbose=0)
    model.fit(ends, validation_data=(X, Y), verbose=0)
    model.fit(X, Y, verbose=0)


def test_a_model_that_is_not_compiled_says_so():
    with pytest.raises(ValueError, match="must call `compile"):
        of_graph().fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_a_schedule_that_is_over_is_told(dtype, replicas, recwarn):
    with two_replicas().scope() if replicas == 2 else contextlib.nullcontext():
        x = keras.Input((1,))
        model = DistributedModel(x, keras.layers.Dense(1, dtype=dtype)(x))
        model.dtype_policy = dtype
        model.compile(tfeff.training.adamw(1e-3, 1, 4), "mse")
    model.fit(X, Y, batch_size=2, verbose=0)
    assert not [w for w in recwarn if "nothing is trained" in str(w.message)]
    # Steps that overflow in float16 are none.
    getattr(model.optimizer, "inner_optimizer", model.optimizer).iterations.assign(4)
    with pytest.warns(UserWarning, match="taken 4 steps.* ends after 4.*Compile"):
        model.fit(X, Y, batch_size=2, verbose=0)


class Penalized(keras.layers.Dense):
    """Adds 0.01 of the mean over rows of the outputs' sum."""

    def call(self, inputs):
        outputs = super().call(inputs)
        self.add_loss(0.01 * keras.ops.mean(keras.ops.sum(outputs, axis=-1)))
        return outputs


@pytest.mark.quick("2")
@pytest.mark.parametrize("replicas", [1, 2])
def test_losses_that_layers_add_are_of_the_own_replica(replicas):
    """The loss' all-reduce lets another replica's layers run before they are read."""
    inputs = np.array([[1.0], [1.0], [3.0], [3.0]], "float32")
    with two_replicas().scope() if replicas == 2 else contextlib.nullcontext():
        x = keras.Input((1,))
        layer = Penalized(2, kernel_initializer="ones", use_bias=False)
        model = DistributedModel(x, layer(x))
        model.compile(keras.optimizers.SGD(1.0), GlobalMeanCrossentropy())
    data = tf.data.Dataset.from_tensors((inputs, np.zeros(4, "int32")))
    loss = model.fit(data, shuffle=False, verbose=0).history["loss"]
    # Equal logits; 0.01 of the mean over rows of x + x.
    np.testing.assert_allclose(loss, np.log(2) + 0.01 * 4, rtol=1e-5)
    # The mean over rows of x (p - y) + 0.01 x, times the rate.
    np.testing.assert_allclose(
        layer.kernel.numpy(), [[1 + 2 * (0.5 - 0.01), 1 - 2 * (0.5 + 0.01)]], rtol=1e-5
    )


@keras.saving.register_keras_serializable("tests.training.test_model")
class Nested(keras.layers.Layer):
    """A layer with a layer inside."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(3)

    def build(self, shape):
        self.dense.build(shape)

    def call(self, x):
        return self.dense(x)


@pytest.mark.parametrize("mode", ["int8", "float8"])
@pytest.mark.parametrize("make", [Nested, lambda: tfeff.layers.SelfAttention(2)])
def test_a_quantized_layer_in_a_layer_is_loaded(make, mode, tmp_path):
    x = keras.Input((4, 4))
    model = DistributedModel(x, keras.layers.Dense(2)(make()(x)))
    rows = np.random.default_rng(0).normal(size=(2, 4, 4)).astype("float32")
    model.quantize(mode)
    expected = np.asarray(model(rows))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(np.asarray(loaded(rows)), expected)


def test_a_frozen_layer_in_a_layer_is_loaded_frozen(tmp_path):
    x = keras.Input((4,))
    model = DistributedModel(x, keras.layers.Dense(2)(Nested()(x)))
    model.layers[1].dense.trainable = False
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(model.trainable_weights) == len(loaded.trainable_weights) == 2
    assert not loaded.layers[1].dense.trainable and loaded.layers[2].trainable
    assert "frozen_layers" not in DistributedModel(x, Nested()(x)).get_config()


def masked_tagger():
    ids = keras.Input((None,), dtype="int32")
    hidden = keras.layers.Embedding(9, 8, mask_zero=True)(ids)
    hidden = tfeff.layers.SelfAttention(2)(hidden)
    return DistributedModel(ids, keras.layers.Dense(3)(hidden))


def test_what_keras_mask_leaves_out_has_no_weight():
    """As with Keras' own loss, and as with weights of 0."""
    ids = np.array([[3, 4, 0, 0], [5, 6, 7, 0]])
    labels = np.array([[1, 2, 0, 0], [0, 1, 2, 0]])
    weights = (ids > 0).astype("float32")
    keras.utils.set_random_seed(0)
    first = masked_tagger()
    trained = []
    for loss, sample_weight in (
        (GlobalMeanCrossentropy(), None),
        (GlobalMeanCrossentropy(), weights),
        (keras.losses.SparseCategoricalCrossentropy(from_logits=True), None),
    ):
        model = masked_tagger()
        model.set_weights(first.get_weights())
        model.compile(keras.optimizers.SGD(1.0), loss)
        value = model.train_on_batch(ids, labels, sample_weight=sample_weight)
        trained.append((float(np.asarray(value).ravel()[0]), model.get_weights()))
    (expected, weights_after), *others = trained
    for value, after in others:
        assert value == pytest.approx(expected, rel=1e-5)
        for one, other in zip(after, weights_after, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
    model = masked_tagger()
    model.compile("sgd", GlobalMeanCrossentropy(), accumulation_steps=2)
    with pytest.raises(ValueError, match="`accumulation_steps` must be 1 for outputs"):
        model.train_on_batch(ids, labels)


@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_a_mask_of_what_was_pooled_is_none_of_targets(accumulation_steps):
    """Keras leaves the mask of tokens at what `TimeDistributed` makes of them."""
    ids = keras.Input((3, 5), dtype="int32")
    hidden = keras.layers.Embedding(9, 8, mask_zero=True)(ids)
    pooled = keras.layers.TimeDistributed(tfeff.layers.MeanPooling())(hidden)
    model = DistributedModel(ids, keras.layers.Dense(3)(pooled))
    model.compile(
        "sgd", GlobalMeanCrossentropy(), accumulation_steps=accumulation_steps
    )
    rows = np.random.default_rng(0).integers(0, 9, (4, 3, 5))
    labels = rows[..., 0] % 3
    history = model.fit(rows, labels, batch_size=2, verbose=0).history
    assert np.isfinite(history["loss"][0])


class WithLoss(DistributedModel):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, **_):
        loss = keras.losses.MeanSquaredError()(y, y_pred)
        # As Keras' own does, for gradients that are summed.
        return loss / tf.distribute.get_strategy().num_replicas_in_sync


@pytest.mark.quick("own")
@pytest.mark.parametrize(
    ("cls", "compiled", "batch_sizes"),
    [
        (DistributedModel, GlobalMeanSquaredError(), (3, 8, 12)),
        (DistributedModel, [GlobalMeanSquaredError()], (3, 8, 12)),
        (WithLoss, None, (5, 8)),  # A mean of no rows is NaN.
    ],
    ids=["global", "list", "own"],
)
def test_the_loss_of_replicas_with_other_numbers_of_rows_is_one_device_s(
    cls, compiled, batch_sizes
):
    def loss(scope, batch_size, method):
        keras.utils.set_random_seed(0)
        with scope:
            x = keras.Input((1,))
            model = cls(x, keras.layers.Dense(1)(x)[:, 0])
            model.compile(keras.optimizers.SGD(0.0), compiled)
        rows = np.linspace(0, 3, 13)
        # The sums of weights in each replica differ as well.
        data = tf.data.Dataset.from_tensor_slices((rows[:, None], rows, 1 + rows))
        found = getattr(model, method)(data.batch(batch_size), verbose=0)
        return found.history["loss"][0] if method == "fit" else found

    for batch_size in batch_sizes:
        for method in ("fit", "evaluate"):
            one = loss(contextlib.nullcontext(), batch_size, method)
            two = loss(two_replicas().scope(), batch_size, method)
            assert two == pytest.approx(one, rel=1e-5), (batch_size, method)


@pytest.mark.parametrize(
    ("saved", "loaded", "options"),
    [
        ("mixed_float16", "float32", {}),
        ("float32", "mixed_float16", {}),
        ("mixed_float16", "mixed_float16", {"auto_scale_loss": False}),
    ],
)
def test_a_loaded_model_scales_its_loss_as_the_saved_one(
    saved, loaded, options, tmp_path
):
    def made():
        x = keras.Input((2,))
        model = DistributedModel(x, keras.layers.Dense(1, dtype="float32")(x)[:, 0])
        model.compile(AdamW(0.1), GlobalMeanSquaredError(), **options)
        return model

    path, before = str(tmp_path / "model.keras"), keras.config.dtype_policy()
    rows = np.linspace(0, 3, 8).reshape(4, 2)
    try:
        keras.config.set_dtype_policy(saved)
        model = made()
        model.fit(rows, rows[:, 0], verbose=0)
        model.save(path)
        keras.config.set_dtype_policy(loaded)
        again = keras.models.load_model(path)
        assert type(again.optimizer) is type(model.optimizer)
        scales = isinstance(again.optimizer, keras.optimizers.LossScaleOptimizer)
        assert scales == (saved == "mixed_float16" and not options)
        for one, other in zip(
            again.optimizer.variables, model.optimizer.variables, strict=True
        ):
            np.testing.assert_array_equal(one, other)
        for each in (model, again):
            each.fit(rows, rows[:, 0], verbose=0)
        np.testing.assert_array_equal(again.get_weights()[0], model.get_weights()[0])
    finally:
        keras.config.set_dtype_policy(before)


def test_a_second_compilation_saves_the_loss_that_it_keeps(tmp_path):
    x = keras.Input((2,))
    y = {name: keras.layers.Dense(1, name=name)(x)[:, 0] for name in "ab"}
    model = DistributedModel(x, y)
    rows = np.linspace(0, 3, 8).reshape(4, 2)
    targets = dict(zip("ab", rows.T))
    losses = dict.fromkeys("ab", "mse")
    model.compile("sgd", losses, loss_weights={"a": 1.0, "b": 9.0})
    before = model.evaluate(rows, targets, verbose=0)
    model.compile("adam")
    assert model.evaluate(rows, targets, verbose=0) == before
    model.save(str(tmp_path / "model.keras"))
    again = keras.models.load_model(str(tmp_path / "model.keras"))
    assert again.evaluate(rows, targets, verbose=0) == before
    with pytest.raises(ValueError, match="`loss` must be made of means over"):
        again.compile("sgd", accumulation_steps=2)


@pytest.mark.slow
def test_a_second_compilation_has_its_own_metrics(tmp_path):
    x = keras.Input((2,))
    model = DistributedModel(x, keras.layers.Dense(1)(x)[:, 0])
    rows = np.linspace(0, 3, 8).reshape(4, 2)
    for arguments in ({"metrics": ["mae"]}, {"weighted_metrics": ["mae"]}, {}):
        model.compile(AdamW(0.1), GlobalMeanSquaredError(), **arguments)
        found = model.fit(rows, rows[:, 0], verbose=0).history
        assert set(found) == {"loss", *(["mae"] if arguments else [])}
    model.save(str(tmp_path / "model.keras"))
    again = keras.models.load_model(str(tmp_path / "model.keras"))
    again.fit(rows, rows[:, 0], verbose=0)
    assert len(again.metrics_variables) == len(model.metrics_variables)


def test_a_model_may_have_its_own_optimizers():
    class Own(WithCall):
        def train_step(self, data):
            x, *_ = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(self(x) ** 2)
            weights = self.trainable_variables
            self.own.apply(tape.gradient(loss, weights), weights)
            return {"loss": loss}

    model = Own()
    model.build((None, 1))
    model.own = keras.optimizers.SGD(0.01)
    model.compile(optimizer=None, loss="mse", jit_compile=False)
    before = model.train_on_batch(X, Y)
    assert model.fit(X, Y, verbose=0).history["loss"][0] < before


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_model_without_an_optimizer_is_loaded_and_evaluated(tmp_path, replicas):
    x, y = np.linspace(0, 3, 8).reshape(4, 2), np.ones((4, 1))
    with two_replicas().scope() if replicas == 2 else contextlib.nullcontext():
        inputs = keras.Input((2,))
        model = DistributedModel(inputs, keras.layers.Dense(1)(inputs))
        model.compile(optimizer=None, loss="mse")
    expected = model.evaluate(x, y, verbose=0)
    for train in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match="`optimizer` .* must not be None"):
            train(x, y)
    model.save(str(tmp_path / "model.keras"))
    again = keras.models.load_model(str(tmp_path / "model.keras"))
    assert again.evaluate(x, y, verbose=0) == pytest.approx(expected)
