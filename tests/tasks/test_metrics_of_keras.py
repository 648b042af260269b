"""Losses and metrics of Keras, which take the mean over the last axis of an output."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.subjects.objectives import arrays, batches, make_model
from tfeff.objectives import objective
from tfeff.tasks import Classifier, Regressor, SpanQA, TokenClassifier

RATINGS = np.array([100.0, 103.0, 98.0, 101.0, 107.0], "float32")
WEIGHTS = np.array([1.0, 1.0, 0.0, 2.0, 1.0], "float32")


def encoder():
    return make_model("masked_lm").encoder


def inputs(count, length=6):
    ids = np.random.default_rng(0).integers(5, 20, (count, length)).astype("int32")
    return {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    }


@pytest.fixture(scope="module")
def regressor():
    """Rates every text with 100."""
    model = Regressor(encoder())
    for weight in model.get_layer("logits").weights:
        weight.assign(keras.ops.zeros(weight.shape))
    model.get_layer("logits").bias.assign([100.0])
    return model


def evaluate(model, batch_size, *, y=RATINGS, weights=WEIGHTS, **compiled):
    model.compile(**compiled)
    parts = (inputs(len(y)), y) if weights is None else (inputs(len(y)), y, weights)
    data = tf.data.Dataset.from_tensor_slices(parts).batch(batch_size)
    return model.evaluate(data, verbose=0, return_dict=True)


@pytest.mark.quick("column-weights1-5")
@pytest.mark.parametrize("batch_size", [2, 5])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("y", [RATINGS, RATINGS[:, None]], ids=["row", "column"])
def test_metrics_of_ratings(regressor, batch_size, weights, y):
    metrics = [
        "mae",
        keras.metrics.MeanSquaredError(name="mse"),
        keras.metrics.R2Score(name="r2"),
    ]
    logs = evaluate(regressor, batch_size, y=y, weights=weights, metrics=metrics)
    w = np.ones(5) if weights is None else weights
    errors = RATINGS - 100.0
    mean = np.average(RATINGS, weights=w)
    spread = np.average((RATINGS - mean) ** 2, weights=w)
    mse = np.average(errors**2, weights=w)
    assert logs["loss"] == pytest.approx(mse)
    assert logs["mse"] == pytest.approx(mse)
    assert logs["mae"] == pytest.approx(np.average(abs(errors), weights=w))
    assert logs["r2"] == pytest.approx(1 - mse / spread, abs=1e-3)


class Bias(keras.metrics.Mean):
    """A metric as users write it: Σ w (ŷ - y) / Σ w."""

    def update_state(self, y_true, y_pred, sample_weight=None):
        errors = y_pred - keras.ops.cast(y_true, y_pred.dtype)
        if sample_weight is None:
            sample_weight = keras.ops.ones_like(errors)
        total = keras.ops.sum(sample_weight * errors)
        super().update_state(total / keras.ops.sum(sample_weight))


@pytest.mark.quick("None")
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_a_metric_of_ones_own(regressor, weights):
    logs = evaluate(regressor, 5, weights=weights, metrics=[Bias(name="bias")])
    w = np.ones(5) if weights is None else weights
    assert logs["bias"] == pytest.approx(np.average(100.0 - RATINGS, weights=w))


@pytest.mark.quick("compiled0")
@pytest.mark.parametrize("compiled", [{}, {"loss": "mse"}, {"metrics": ["mae"]}])
def test_targets_in_a_list(regressor, compiled):
    """As Keras takes them for one output."""
    expected = evaluate(regressor, 5, **compiled)
    parts = (inputs(5), (RATINGS,), WEIGHTS)
    data = tf.data.Dataset.from_tensor_slices(parts).batch(5)
    logs = regressor.evaluate(data, verbose=0, return_dict=True)
    assert logs == pytest.approx(expected)


@pytest.mark.quick("row-mse", "column-loss1")
@pytest.mark.parametrize("loss", ["mse", keras.losses.Huber(delta=2.0)])
@pytest.mark.parametrize("y", [RATINGS, RATINGS[:, None]], ids=["row", "column"])
def test_losses_of_ratings(regressor, loss, y):
    """As of a model whose output is a column: Keras divides by the rows of a batch."""
    logs = evaluate(regressor, 5, y=y, loss=loss)
    function = keras.losses.MeanSquaredError() if loss == "mse" else loss
    expected = function(RATINGS[:, None], np.full((5, 1), 100.0, "float32"), WEIGHTS)
    assert logs == {"loss": pytest.approx(float(expected))}


def test_a_rating_of_weight_0_teaches_nothing():
    model = Regressor(encoder(), dropout=0.0)
    model.compile(keras.optimizers.SGD(0.1), loss="mse")
    before = [weight.numpy() for weight in model.trainable_weights]
    model.train_on_batch(inputs(2), np.ones(2, "float32"), np.zeros(2, "float32"))
    for weight, old in zip(model.trainable_weights, before, strict=True):
        np.testing.assert_array_equal(weight.numpy(), old)


def test_ratings_of_another_shape_are_refused(regressor):
    message = r"`y` must have the shape of the outputs.*Received: shape \(.*3\)"
    with pytest.raises(ValueError, match=message):
        evaluate(regressor, 5, y=np.ones((5, 3), "float32"), loss="mse")


SMOOTH = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
BINARY = keras.losses.BinaryCrossentropy(from_logits=True)


@pytest.mark.quick("TokenClassifier-binary")
@pytest.mark.parametrize("loss", [SMOOTH, BINARY], ids=["smooth", "binary"])
@pytest.mark.parametrize("kind", [Classifier, TokenClassifier])
def test_targets_of_other_losses(kind, loss):
    model = kind(encoder(), 3)
    shape = (4,) if kind is Classifier else (4, 6)
    y = np.eye(3, dtype="float32")[np.random.default_rng(1).integers(0, 3, shape)]
    data = tf.data.Dataset.from_tensor_slices((inputs(4), y)).batch(2)
    for compiled, names in (
        ({}, {"loss"}),
        ({"metrics": ["accuracy"]}, {"loss", "accuracy"}),
        ({"weighted_metrics": ["accuracy"]}, {"loss", "accuracy"}),
    ):
        model.compile(loss=loss, **compiled)
        logs = model.evaluate(data, verbose=0, return_dict=True)
        assert set(logs) == names
        outputs = model.predict(data, verbose=0)
        assert logs["loss"] == pytest.approx(float(loss(y, outputs)), rel=1e-5)
        if names != {"loss"}:
            right = (outputs.argmax(-1) == y.argmax(-1)).mean()
            if loss is SMOOTH:
                assert logs["accuracy"] == pytest.approx(right)


def test_losses_of_replaced_tokens():
    model = make_model("replaced_token", compiled={"run_eagerly": True})
    dataset = batches("replaced_token", 1)
    expected = model.evaluate(dataset, verbose=0, return_dict=True)
    model.compile(
        loss={
            "masked_lm": keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            "replaced": keras.losses.BinaryCrossentropy(from_logits=True),
        },
        metrics={"replaced": [keras.metrics.BinaryAccuracy(threshold=0.0)]},
        run_eagerly=True,
    )
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    inputs, _, weights = arrays(next(iter(dataset)))
    mean = {  # Keras divides by all targets, of weight 0 or not.
        "masked_lm": expected["masked_lm_loss"] * weights.mean(),
        "replaced": expected["replaced_loss"] * inputs["padding_mask"].mean(),
    }
    for name, value in mean.items():
        assert logs[f"{name}_loss"] == pytest.approx(value, rel=1e-4)
    accuracy = expected["replaced_accuracy"]
    assert logs["replaced_binary_accuracy"] == pytest.approx(accuracy, rel=1e-5)


@pytest.mark.parametrize("argument", ["metrics", "weighted_metrics"])
def test_metrics_that_do_not_fit_are_refused(argument):
    model = Classifier(encoder(), 3)
    kinds = keras.metrics
    for wrong in (
        *("ce", "sparse_categorical_crossentropy", "binary_crossentropy", "AUC", "auc"),
        *("kl_divergence", "Precision", kinds.Recall(), kinds.BinaryAccuracy()),
        *(kinds.CategoricalCrossentropy(), kinds.SensitivityAtSpecificity(0.5)),
    ):
        with pytest.raises(ValueError, match=f"`{argument}` must take logits"):
            model.compile(**{argument: ["accuracy", wrong]})
    for wrong in (
        *("mse", "mean_absolute_error", "categorical_accuracy", "f1_score"),
        *(kinds.Precision(thresholds=0.0), kinds.AUC(from_logits=True)),
        *(kinds.MeanIoU(3), kinds.OneHotIoU(3, [0])),
    ):
        with pytest.raises(ValueError, match=f"`{argument}` must take ids of classes"):
            model.compile(**{argument: ["accuracy", wrong]})
    loss = kinds.SparseCategoricalCrossentropy(from_logits=True)
    fit = (loss, "sparse_top_k_categorical_accuracy", kinds.MeanIoU(3, sparse_y_pred=0))
    fit = ["Accuracy", *fit, lambda y, z: z[:, 0]]
    model.compile(run_eagerly=True, **{argument: fit})
    x, y = inputs(4), np.array([0, 1, 2, 2])
    logs = model.evaluate(x, y, verbose=0, return_dict=True)
    assert logs["sparse_categorical_crossentropy"] == pytest.approx(logs["loss"])
    # Of several labels at once.
    several = keras.losses.BinaryCrossentropy(from_logits=True)
    fit = (kinds.AUC(from_logits=True), kinds.Precision(thresholds=0.0))
    fit = [*fit, "f1_score"]
    model.compile(loss=several, run_eagerly=True, **{argument: fit})
    model.evaluate(x, np.eye(3)[y], verbose=0)


def test_metrics_fit_the_loss_of_their_output():
    """Where it takes logits: of ratings and of losses of one's own nothing is known."""
    of_spans = SpanQA(encoder())
    with pytest.raises(ValueError, match="`metrics` must take ids.* 'mse'"):
        of_spans.compile(metrics={"start": ["accuracy"], "end": ["mse"]})
    of_ratings = Regressor(encoder())
    of_ratings.compile(metrics=[keras.metrics.BinaryAccuracy(), keras.metrics.AUC()])
    classes = Classifier(encoder(), 3)
    classes.compile(loss=lambda y, z: z[:, 0], metrics=["binary_accuracy"])


def test_a_model_is_loaded_whatever_its_metrics(tmp_path, monkeypatch):
    model = Classifier(encoder(), 3)
    with monkeypatch.context() as patch:
        patch.setattr(objective, "check_metrics", lambda *_: None)
        model.compile(metrics=["mse"])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="`metrics` must take ids"):
        loaded.compile(metrics=["mse"])


class Missing(Regressor):
    """Ratings that are not known have no weight."""

    def prepare_batch(self, data):
        x, y, _ = keras.utils.unpack_x_y_sample_weight(data)
        known = keras.ops.logical_not(keras.ops.isnan(y))
        return x, keras.ops.where(known, y, 0.0), keras.ops.cast(known, "float32")


def test_ratings_that_are_not_finite():
    ratings = np.array([1.0, np.nan, 2.0], "float32")
    for kind in (Regressor, Missing):
        model = kind(encoder())
        model.compile(run_eagerly=True)
        if kind is Missing:
            assert np.isfinite(model.train_on_batch(inputs(3), ratings)).all()
            continue
        for run in (model.fit, model.evaluate, model.train_on_batch):
            with pytest.raises(ValueError, match="`y` must be finite.*nan at .1. of y"):
                run(inputs(3), ratings)
        for ratings_of in (Column, tf.constant):
            with pytest.raises(ValueError, match="`y` must be finite.*nan at .1. of y"):
                model.fit(inputs(3), ratings_of(ratings), verbose=0)
        with pytest.raises(ValueError, match="`sample_weight` must be finite.*nan at"):
            model.fit(inputs(3), np.ones(3), sample_weight=ratings, verbose=0)


class Column:
    """As a column of a data frame: an array with a type of its own, or of NumPy."""

    def __init__(self, values, dtype=None):
        self.values, self.dtype = np.asarray(values), dtype or np.asarray(values).dtype

    shape = property(lambda self: self.values.shape)

    def __array__(self, dtype=None, copy=None):
        return self.values

    def to_numpy(self, dtype):
        return self.values.astype(dtype)

    def __len__(self):
        return len(self.values)


def test_columns_of_data_frames_are_checked_as_arrays():
    model = Classifier(encoder(), 2)
    model.compile(run_eagerly=True)
    x = inputs(3)
    good, texts = [0, 1, 1], ["no", "yes", "no"]
    with pytest.raises(ValueError, match="`y` must be ids of classes.* 2 at .1. of y"):
        model.fit(x, Column([0, 2, 1]), verbose=0)
    for column in (Column(texts), Column(np.array(texts, object)), tf.constant(texts)):
        with pytest.raises(TypeError, match="`y` must be numbers, such as indices"):
            model.fit(x, column, verbose=0)
        with pytest.raises(TypeError, match="`x` must be numbers.*text_features"):
            model.fit(column, np.array(good), verbose=0)
    for column, way in (
        (Column(good, "Int64"), "to_numpy"),
        (np.array(good, object), "astype"),
    ):
        with pytest.raises(TypeError, match=rf"numbers of a type .* y\.{way}\(.int32"):
            model.fit(x, column, verbose=0)


@pytest.mark.quick("mse")
@pytest.mark.parametrize("loss", ["mse", "hinge", "poisson", "huber"])
def test_ids_are_not_broadcast_to_the_outputs(loss):
    """Of as many rows as classes, Keras would take a row's id for another's class."""
    model = Classifier(encoder(), 2)
    model.compile(loss=loss, run_eagerly=True)
    labels = np.array([0, 1])
    with pytest.raises(ValueError, match="`y` must have a target for each output"):
        model.fit(inputs(2), labels, verbose=0)
    model.fit(inputs(2), np.eye(2)[labels], verbose=0)
    of_class = type("Own", (keras.losses.MeanSquaredError,), {})()
    for other in ([loss], {"logits": loss}, of_class):
        model.compile(loss=other, run_eagerly=True)
        with pytest.raises(ValueError, match="`y` must have a target for each output"):
            model.fit(inputs(2), labels, verbose=0)
    own = lambda y, z: z[:, 0] - keras.ops.cast(y, z.dtype)  # noqa: E731
    model.compile(loss=own, run_eagerly=True)
    model.fit(inputs(2), labels, verbose=0)


def test_targets_by_name_of_one_output():
    model = Classifier(encoder(), 2)
    model.compile(run_eagerly=True)
    with pytest.raises(ValueError, match="`y` must be one array.* mapping of 'logits'"):
        model.fit(inputs(2), {"logits": np.array([0, 1])}, verbose=0)
