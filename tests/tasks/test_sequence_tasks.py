"""Classification, rating and multiple choice: heads, losses, replicas, saving."""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close, check_two_replicas, randomize
from tests.reference import mean_pooling, segment_pooling
from tests.reference.objectives import cross_entropies
from tfeff.tasks import Classifier, MultipleChoice, Regressor
from tfeff.tasks.regressor import GlobalMeanSquaredError, squared_error
from tfeff.tasks.task import POOLINGS

VOCABULARY_SIZE = 50
KINDS = ("classifier", "regressor", "choice")
CHOICES = 3
ACTIVATIONS = {
    "tanh": np.tanh,
    "relu": lambda x: np.where(x > 0, x, 0.0),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: (
        x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    ),
}


def make_encoder(**kwargs):
    arguments = dict(
        vocabulary_size=VOCABULARY_SIZE,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=16,
        attention="one_head",
        position="none",
        dropout=0.0,
    )
    return tfeff.encoders.Encoder(**(arguments | kwargs))


def make_model(
    kind, pooling="cls", dropout=0.0, optimizer=None, activation="tanh", **kwargs
):
    encoder = make_encoder(**kwargs)
    if kind == "classifier":
        model = Classifier(encoder, 3, pooling, dropout, activation)
    else:
        task = {"regressor": Regressor, "choice": MultipleChoice}[kind]
        model = task(encoder, pooling, dropout, activation)
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.3)
    model.compile(optimizer=optimizer or adamw())
    return model


def adamw():
    return tfeff.training.adamw(1e-3, 5, 40, global_clipnorm=0.1)


def batches(kind, count=6, batch_size=4, length=11, seed=0):
    """Ragged rows; replicas see different weights, and the last row weighs nothing."""
    rng = np.random.default_rng(seed)
    shape = (count * batch_size,) + (CHOICES,) * (kind == "choice") + (length,)
    lengths = rng.integers(1, length + 1, shape[:-1])
    mask = (np.arange(length) < lengths[..., None]).astype("int32")
    tokens = rng.integers(5, VOCABULARY_SIZE, shape) * mask
    segments = (np.arange(length) >= lengths[..., None] // 2) * mask
    weights = (rng.random(shape[0]) < 0.6).astype("float32")
    weights[::batch_size] = 1.0
    for array in (tokens, mask, segments):
        array[-1] = 0
    weights[-1] = 0
    inputs = {
        "token_ids": tokens.astype("int32"),
        "segment_ids": segments.astype("int32"),
        "padding_mask": mask,
    }
    if kind == "regressor":
        labels = rng.normal(2, 1, shape[0]).astype("float32")
    else:
        labels = rng.integers(0, 3, shape[0]).astype("int32")
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels, weights))
    return dataset.batch(batch_size, drop_remainder=True)


def literal_outputs(model, kind, inputs):
    """The head with NumPy, on the encoder's hidden states of one row at a time."""
    weights = {
        name: [w.numpy().astype("float64") for w in model.get_layer(name).weights]
        for name in ("pooler", "logits")
        if name == "logits" or model.pooling != "segments"
    }
    kernel, bias = weights["logits"]
    rows = {k: np.reshape(v, (-1, v.shape[-1])) for k, v in inputs.items()}
    outputs = []
    for r in range(len(rows["token_ids"])):
        row = {name: array[r : r + 1] for name, array in rows.items()}
        hidden = model.encoder(row)
        if model.pooling == "segments":
            states = np.asarray(hidden["sequence_output"], "float64")[0]
            vector = segment_pooling(
                states, row["segment_ids"][0], row["padding_mask"][0]
            )
        elif model.pooling != "layerwise":
            states = np.asarray(hidden["sequence_output"], "float64")[0]
            real = [t for t, visible in enumerate(row["padding_mask"][0]) if visible]
            at = real[-1] if real and model.pooling == "last" else 0
            state = states[at]
            if model.pooling == "mean":
                state = mean_pooling(states, row["padding_mask"][0])
            before = state @ weights["pooler"][0] + weights["pooler"][1]
            vector = ACTIVATIONS[model.pooler_activation](before)
        else:
            # Compared with a literal version in the tests of layers.
            pooling = tfeff.layers.LayerwisePooling(model.encoder.blocks)
            pooling(hidden["hidden_states"])
            pooling.initial_vector.assign(model.get_layer("pooler").initial_vector)
            vector = np.asarray(
                pooling(hidden["hidden_states"], padding_mask=row["padding_mask"])
            )[0]
        outputs.append(vector @ kernel + bias)
    outputs = np.array(outputs)
    if kind == "choice":
        return outputs.reshape(-1, CHOICES)
    return outputs[:, 0] if kind == "regressor" else outputs


def padded(inputs):
    """Three positions more, all padding with garbage in it."""
    longer = {
        name: np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 3)])
        for name, array in inputs.items()
    }
    longer["token_ids"] += (longer["padding_mask"] == 0) * np.int32(9)
    return longer


@pytest.mark.quick("classifier-cls-tanh")
@pytest.mark.parametrize(
    ("kind", "pooling", "activation"),
    [
        *((kind, pooling, "tanh") for kind in KINDS for pooling in POOLINGS),
        ("classifier", "cls", "gelu"),
        ("regressor", "last", "relu"),
        ("choice", "cls", "gelu_tanh"),
    ],
)
def test_head_loss_and_metrics_are_literal(kind, pooling, activation):
    model = make_model(kind, pooling, activation=activation)
    dataset = batches(kind)
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    total = count = right = 0.0
    for place, (inputs, labels, weights) in enumerate(dataset.as_numpy_iterator()):
        outputs = np.asarray(model(inputs))
        if place == 0:
            assert_close(outputs, literal_outputs(model, kind, inputs), 1e-5)
            assert_close(model(padded(inputs)), outputs, 1e-5, "more padding")
            loss = float(model.default_loss()(labels, outputs, weights))
        if kind == "regressor":
            batch = sum(w * (p - y) ** 2 for w, p, y in zip(weights, outputs, labels))
        else:
            batch, _ = cross_entropies(outputs, labels, weights)
            right += np.sum(weights * (outputs.argmax(-1) == labels))
        if place == 0:
            assert loss == pytest.approx(batch / weights.sum(), rel=1e-5)
        total += batch
        count += weights.sum()
    assert logs.pop("loss") == pytest.approx(total / count, rel=1e-5)
    expected = {} if kind == "regressor" else {"accuracy": right / count}
    assert logs == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("num_segments", [0, 1])
def test_pairs_train_an_encoder_of_one_segment(num_segments):
    """As those of Huang et al.: the ids of second texts, 1, change nothing."""
    model = make_model("classifier", num_layers=1, num_segments=num_segments)
    dataset = batches("classifier", count=2)
    inputs = next(iter(dataset))[0]
    assert inputs["segment_ids"].numpy().any()
    outputs = np.asarray(model(inputs))
    zeros = {**inputs, "segment_ids": 0 * inputs["segment_ids"]}
    np.testing.assert_array_equal(model(zeros), outputs)
    assert_close(tf.function(model, jit_compile=True)(inputs), outputs, 1e-5, "XLA")
    before = [w.numpy() for w in model.encoder.embedding.weights]
    assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()
    for old, new in zip(before, model.encoder.embedding.weights):
        assert not np.array_equal(old, new.numpy()), new.path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "pooling"),
    [
        ("classifier", "layerwise"),
        ("regressor", "cls"),
        ("classifier", "last"),
        ("classifier", "mean"),
        ("choice", "cls"),
        ("choice", "layerwise"),
    ],
)
def test_a_saved_model_trains_on_as_if_it_had_not_been_saved(tmp_path, kind, pooling):
    model = make_model(kind, pooling, dropout=0.3, num_layers=1)
    dataset = batches(kind, count=2)
    model.fit(dataset, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is type(model) and loaded.get_config() == model.get_config()
    assert len(loaded.weights) == len(model.weights)
    histories = [
        m.fit(dataset, shuffle=False, verbose=0).history for m in (model, loaded)
    ]
    assert histories[0] == histories[1]
    for one, two in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(two, one)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["cls", "mean", "layerwise"])
@pytest.mark.parametrize("kind", KINDS)
def test_two_replicas_equal_one_device(kind, pooling):
    # Not Adam, which divides rounding errors of small gradients by their size.
    models = check_two_replicas(
        lambda: make_model(kind, pooling, optimizer=keras.optimizers.SGD(0.05)),
        batches(kind, count=20),
        steps=20,
    )
    logs = [model.evaluate(batches(kind), verbose=0) for model in models]
    np.testing.assert_allclose(logs[1], logs[0], rtol=1e-4)
    predictions = [model.predict(batches(kind), verbose=0) for model in models]
    np.testing.assert_allclose(predictions[1], predictions[0], atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_half_precision_is_close_and_finite(kind):
    dataset = batches(kind)
    found = []
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        keras.utils.set_random_seed(0)
        optimizer = tfeff.training.adamw(1e-2, 1, 40)
        if policy == "mixed_float16":
            # The usual first scale overflows, and steps are left out until it fits.
            optimizer = keras.optimizers.LossScaleOptimizer(
                optimizer, initial_scale=256.0
            )
        model = make_model(kind, "layerwise", optimizer=optimizer, dtype=policy)
        outputs = model.predict(dataset, verbose=0).astype("float32")
        losses = model.fit(dataset, epochs=3, shuffle=False, verbose=0).history["loss"]
        assert np.isfinite(model.predict(dataset, verbose=0).astype("float32")).all()
        found.append((outputs, np.array(losses)))
    (exact, losses), *halves = found
    learnt = abs(losses[-1] - losses[0])
    assert learnt > 0.02 * losses[0]
    # Outputs are small sums of larger numbers of either sign.
    for (outputs, others), error in zip(halves, (8e-2, 1e-2)):
        assert np.linalg.norm(outputs - exact) <= error * np.linalg.norm(exact)
        # A training that does nothing would be further off.
        assert np.abs(others - losses).max() <= 0.5 * learnt


def test_bad_arguments_are_named():
    for task in (Regressor, MultipleChoice, lambda e: Classifier(e, 2)):
        with pytest.raises(TypeError, match="`encoder` must be .*Dense"):
            task(keras.layers.Dense(3))
    encoder = make_encoder(num_layers=1)
    with pytest.raises(ValueError, match="`num_classes` must be .*num_classes=1"):
        Classifier(encoder, 1)
    with pytest.raises(ValueError, match="`pooling` must be .*'layerwise'.*'max'"):
        Regressor(encoder, "max")
    with pytest.raises(ValueError, match=r"`dropout` must be .*dropout=1\.0"):
        MultipleChoice(encoder, dropout=1.0)
    with pytest.raises(ValueError, match="`pooler_activation` must be .*'gelo'"):
        Regressor(encoder, pooler_activation="gelo")
    with pytest.raises(TypeError, match="`pooler_activation` must be a name"):
        Regressor(encoder, pooler_activation=np.tanh)
    with pytest.raises(ValueError, match="`pooler_activation` must be left out"):
        MultipleChoice(encoder, "layerwise", pooler_activation="relu")
    for names in (["a"], "ab", ["a", 1], 2, ["a", "a"], ["a", "\ud800"], {"a", "b"}):
        with pytest.raises(ValueError, match="`label_names` must be 2 strings, diff"):
            Classifier(encoder, 2, label_names=names)
    convolution = make_encoder(attention="dynamic_conv", num_layers=1)
    with pytest.raises(ValueError, match="DynamicConv1D .* cannot compute"):
        Classifier(convolution, 2, pooling="layerwise")


@pytest.mark.parametrize("column", [list, tuple, np.array, iter])
def test_label_names_may_be_any_column(column):
    model = Classifier(make_encoder(num_layers=1), 2, label_names=column(["a", "b"]))
    assert model.get_config()["label_names"] == ["a", "b"]
    assert [type(name) for name in model.label_names] == [str, str]


def rows_of(kind, count=5):
    """Rows of texts of several lengths for a kind of model."""
    words = ["a b", "c", "b c a", "a", "c c c b"][:count]
    tokenizer = tfeff.data.train_tokenizer(["a b c"] * 9, vocabulary_size=9)
    if kind == "choice":
        examples = tfeff.data.ChoiceExamples(
            passages=words,
            questions=["b"] * count,
            options=[["a", "b", "c a"]] * count,
            labels=np.arange(count) % 3,
            label_names=("A", "B", "C"),
            ids=range(count),
        )
    else:
        rates = kind == "regressor"
        labels = np.linspace(0, 1, count) if rates else np.ones(count, int)
        names = None if rates else ("x", "y", "z")
        examples = tfeff.data.TextExamples(words, None, labels, names, range(count))
    return tfeff.data.text_features(examples, tokenizer, 12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_in_the_order_of_the_examples(kind):
    model, rows = make_model(kind), rows_of(kind)
    raw = np.asarray(model(rows.inputs))
    find = model.ratings if kind == "regressor" else model.probabilities
    expected = raw
    if kind != "regressor":
        expected = np.exp(raw) / np.exp(raw).sum(axis=-1, keepdims=True)
    for options in ({}, {"batch_size": 2}, {"pad_to_longest": False}):
        found = find(rows, **options)
        assert found.dtype == np.float32
        assert_close(found, expected, 1e-5)
    other = rows_of("choice" if kind != "choice" else "classifier")
    for wrong in (other, rows.inputs, ["a text"]):
        with pytest.raises(TypeError, match="`features` must be from"):
            find(wrong)
    with pytest.raises(ValueError, match="`batch_size` must"):
        find(rows, batch_size=0)
    small = make_model(kind, vocabulary_size=6)
    with pytest.raises(ValueError, match="`features` must be made with the tokenizer"):
        (small.ratings if kind == "regressor" else small.probabilities)(rows)


@pytest.mark.slow
def test_metrics_leave_out_what_fills_a_batch():
    """Rows of weight 0 have the label 0, which Keras' own `metrics` would count."""
    model, rows = make_model("classifier"), rows_of("classifier")
    right = (model.probabilities(rows).argmax(-1) == 1).mean()
    batches = rows.dataset(4, repeat=False)
    loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
    model.compile(metrics=["accuracy"])
    found = model.evaluate(rows.dataset(4, repeat=False), verbose=0, return_dict=True)
    assert found["accuracy"] == pytest.approx(right)
    assert found["loss"] == pytest.approx(loss)
    with pytest.raises(ValueError, match="`metrics` must be left out beside"):
        model.compile(metrics=["accuracy"], weighted_metrics=["accuracy"])


@pytest.mark.slow
@pytest.mark.parametrize("accumulation_steps", [1, 2])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_labels_in_a_column(kind, weighted, accumulation_steps):
    inputs, labels, weights = next(iter(batches(kind, count=1, batch_size=8)))
    weights = weights if weighted else None
    found = []
    for y in (labels, labels[:, None]):
        model = make_model(kind)
        settings = dict(accumulation_steps=accumulation_steps, jit_compile=False)
        model.compile(adamw(), **settings)
        options = dict(sample_weight=weights, verbose=0, batch_size=8)
        before = model.evaluate(inputs, y, **options, return_dict=True)
        history = model.fit(inputs, y, **options, epochs=2).history
        found.append((before, history, model.get_weights()))
    for of_vector, of_column in zip(*map(keras.tree.flatten, found), strict=True):
        np.testing.assert_allclose(of_vector, of_column, rtol=1e-5)


@pytest.mark.slow
def test_ratings_of_other_shapes_are_refused():
    model = make_model("regressor")
    inputs, labels, _ = next(iter(batches("regressor", count=1)))
    for y in (tf.stack([labels, labels], axis=1), labels[:, None, None]):
        for run in (model.evaluate, model.fit):
            with pytest.raises(ValueError, match="`y_true` must .*Received: shape"):
                run(inputs, y, verbose=0)
    for loss in (GlobalMeanSquaredError(), squared_error):
        with pytest.raises(
            ValueError, match=r"`y_true` .*\(4, 1\).*Received: .*\(4,\)"
        ):
            loss(labels, labels[:, None])


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["classifier", "regressor", "choice"])
def test_outputs_are_not_rounded_to_half_precision(kind, policy):
    model = make_model(kind, dtype=policy)
    head = model.get_layer("logits")
    assert head.compute_dtype == head.variable_dtype == model.output.dtype == "float32"


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_ratings_of_a_scale_and_an_offset(dtype, tmp_path):
    plain = make_model("regressor", dtype=dtype)
    model = Regressor(plain.encoder, dropout=0.0, scale=300.0, offset=1500.0)
    for one, other in zip(model.layers, plain.layers):
        one.set_weights(other.get_weights())
    model.compile(jit_compile=False)
    inputs, labels, weights = next(iter(batches("regressor", count=1)))
    ratings, expected = model(inputs), 1500 + 300 * tf.cast(plain(inputs), "float32")
    assert ratings.dtype == "float32"
    assert_close(ratings, expected, 1e-6)
    labels = 1500 + 300 * labels
    loss = np.average(((ratings - labels) / 300) ** 2, weights=weights)
    logs = model.evaluate(inputs, labels, sample_weight=weights, verbose=0)
    # A graph rounds in other places than eager code does.
    np.testing.assert_allclose(logs, loss, rtol=1e-4 if dtype == "float32" else 1e-2)
    model.fit(inputs, labels, verbose=0)
    trained = model.predict(inputs, verbose=0)

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.loss.scale == 300.0
    tokenizer = tfeff.data.train_tokenizer(["a b"], 8)
    tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / "preset")
    preset, _ = tfeff.tasks.load_task(tmp_path / "preset")
    for other in (loaded, preset):
        np.testing.assert_array_equal(other.predict(inputs, verbose=0), trained)


def test_a_scale_that_is_none_is_refused_and_the_default_is_not_written():
    encoder = make_encoder()
    with pytest.raises(ValueError, match="`scale` must be .*scale=0"):
        Regressor(encoder, scale=0)
    with pytest.raises(ValueError, match="`offset` must be .*offset=nan"):
        Regressor(encoder, offset=math.nan)
    model = Regressor(encoder)
    assert not {"scale", "offset"} & {*model.get_config()}
    assert not model.heads()["logits"].settings
    assert "scale" not in model.default_loss().get_config()
    scaled = Regressor(encoder, scale=2)
    with pytest.raises(ValueError, match="settings of the model's. Received: scale"):
        model.heads()["logits"].assign(scaled.heads()["logits"].arrays())


@pytest.mark.parametrize(
    "class_weight, error",
    [
        ({"no": 1.0, "yes": 9.0}, r"integers from 0 to 2\. Received: .*'yes'"),
        ({0: 1.0, 3: 9.0}, "integers from 0 to 2"),
        ({0: 1.0, 0.5: 9.0}, "integers from 0 to 2"),
        ({0: -1.0}, r"`class_weight\[0\]` must be a finite number of at least 0"),
        ({0: np.nan}, r"`class_weight\[0\]` must be a finite number of at least 0"),
        ({0: "1"}, r"`class_weight\[0\]` must be a finite number of at least 0"),
        ([1.0, 9.0, 3.0], "must be a mapping of weights by the ids of classes"),
    ],
)
def test_weights_of_what_is_no_class(class_weight, error):
    model = make_model("classifier")
    ((x, y, _),) = batches("classifier", count=1)
    for run in (model.fit, model.train_on_batch):
        with pytest.raises((TypeError, ValueError), match=error):
            run(x, y, class_weight=class_weight)


@pytest.mark.slow
def test_weights_of_some_classes():
    model = make_model("classifier")
    dataset = batches("classifier", count=1)
    ((x, y, _),) = dataset
    losses = [
        model.test_on_batch(x, y, np.where(y == 1, 9.0, 1.0)),
        model.train_on_batch(x, y, class_weight={np.float32(1): tf.constant(9.0)}),
    ]
    np.testing.assert_allclose(*losses, rtol=1e-4)
    with pytest.raises(ValueError, match="each of the 3 classes where `x` is a data"):
        model.fit(dataset.map(lambda x, y, w: (x, y)), class_weight={0: 1.0, 1: 9.0})
    unweighted = dataset.map(lambda x, y, w: (x, y, None))
    model.fit(unweighted, class_weight={0: 1.0, 1: 9.0, 2: 1.0}, verbose=0)


def test_binary_models_have_weights_of_classes():
    x, y = np.linspace(-1, 1, 8)[:, None], np.arange(8) % 2
    inputs = keras.Input((1,))
    outputs = keras.layers.Dense(1, activation="sigmoid", kernel_initializer="ones")
    found = []
    for model_outputs in (outputs(inputs), outputs(inputs)[:, 0]):
        model = tfeff.training.DistributedModel(inputs, model_outputs)
        model.compile(keras.optimizers.SGD(0.0), "binary_crossentropy")
        found.append(model.train_on_batch(x, y, class_weight={False: 1.0, True: 9.0}))
        with pytest.raises(ValueError, match=r"ids of classes.*Received: .*'yes'"):
            model.train_on_batch(x, y, class_weight={"no": 1.0, "yes": 9.0})
    assert found[0] == pytest.approx(found[1])
    model.reset_metrics()  # Keras 3.12 goes on with those of training.
    assert found[0] > 2 * model.test_on_batch(x, y)


def test_ratings_have_no_weights_of_classes():
    model = make_model("regressor")
    ((x, y, _),) = batches("regressor", count=1)
    for run in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match="`class_weight` must be None .*rating"):
            run(x, y, class_weight={0: 1.0, 1: 2.0})


@pytest.mark.slow
def test_weights_of_classes_go_into_the_batches():
    model = make_model("classifier", optimizer=keras.optimizers.SGD(0.1))
    dataset, weights = batches("classifier", count=1), tf.constant([1.0, 5.0, 2.0])
    ((inputs, labels, w),) = dataset
    class_weight = dict(enumerate(weights.numpy().tolist()))
    for run in (
        lambda: model.fit(dataset, class_weight=class_weight),
        lambda: model.fit(inputs, labels, sample_weight=w, class_weight=class_weight),
        lambda: model.train_on_batch(inputs, labels, w, class_weight),
    ):
        with pytest.raises(ValueError, match=r"`class_weight` .*gather.*Received: .*5"):
            run()
    mapped = dataset.map(lambda x, y, w: (x, y, w * tf.gather(weights, y)))
    start = model.get_weights()
    model.fit(mapped, verbose=0)
    trained = model.get_weights()
    model.set_weights(start)
    only = np.flatnonzero(w)  # Rows of weight 0 count for nothing.
    inputs = {name: x.numpy()[only] for name, x in inputs.items()}
    model.fit(inputs, labels.numpy()[only], class_weight=class_weight, verbose=0)
    for one, two in zip(trained, model.get_weights(), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_ids_in_memory_that_are_no_classes():
    """Compiled programs end in TensorFlow's error, or on JAX in NaN."""
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=50, max_sequence_length=16, num_layers=1
    )
    model = tfeff.tasks.Classifier(encoder, 2)
    model.compile("adam")
    ids = np.ones((4, 7), "int32")
    x = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids}
    good, bad = np.array([0, 1, 1, 0]), np.array([1, 0, 2, 1])
    message = r"`{}` must be ids of classes, from 0 to 1. Received: {} at \[{}\]"
    for run, name in (
        (lambda y: model.fit(x, y), "y"),
        (lambda y: model.fit(x, good, validation_data=(x, y)), "validation_data.1."),
        (lambda y: model.evaluate(x, y), "y"),
        (lambda y: model.train_on_batch(x, y), "y"),
    ):
        with pytest.raises(ValueError, match=message.format(name, 2, 2)):
            run(bad)
        with pytest.raises(ValueError, match=message.format(name, -1, 0)):
            run(good - 1)
    with pytest.raises(TypeError, match=r"`y_true` must be .*y.astype\('int32'\)"):
        model.fit(x, good.astype("float32"), verbose=0)
    assert np.isfinite(model.fit(x, good, verbose=0).history["loss"][0])
