"""No id, position, mask or label becomes another in silence, however it comes."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tfeff.layers import EncoderEmbedding
from tfeff.ops import gather_positions
from tfeff.ops.ids import exact_inputs
from tfeff.training.losses import GlobalMeanBinaryCrossentropy, GlobalMeanCrossentropy

ROWS = 19
# What comes, and the dtype that can hold it.
WRONG = [
    (-1, "int32"),
    (ROWS, "int32"),
    (-1, "int8"),
    (200, "uint8"),
    (-1, "int64"),
    (2**31, "int64"),
    (2**32 + 3, "int64"),
    (-(2**32) + 3, "int64"),
    (2**32 - 1, "uint32"),
    (2**63 + 3, "uint64"),
]
NAMES = [f"{value}, {dtype}" for value, dtype in WRONG]
INPUTS = ("token_ids", "segment_ids", "padding_mask")


def ids(value=3, dtype="int32", others=3):
    """Ids `[2, 6]` with `value` at one place and others elsewhere."""
    array = np.full((2, 6), others, dtype)
    array[1, 2] = np.array(value, dtype)
    return array


def batch(**changes):
    return {"token_ids": ids(), "segment_ids": ids(0, others=0)} | {
        "padding_mask": ids(1, others=1),
        **changes,
    }


@pytest.fixture(scope="module")
def embedding():
    layer = EncoderEmbedding(
        ROWS, 8, num_segments=ROWS, position="none", layer_norm=False
    )
    layer(ids())
    layer.set_weights([1 + np.random.default_rng(0).random((ROWS, 8))] * 2)
    return layer


@pytest.fixture(scope="module")
def classifier():
    sizes = dict(vocabulary_size=ROWS, num_layers=1, hidden_dim=8, num_heads=2)
    encoder = tfeff.encoders.build("bert_tiny", **sizes, dropout=0.0)
    model = tfeff.tasks.Classifier(encoder, num_classes=3)
    model.compile()
    model.fit(batch(), np.array([0, 1]), verbose=0)
    return model


@pytest.mark.parametrize("name", ["token_ids", "segment_ids"])
@pytest.mark.parametrize(("value", "dtype"), WRONG, ids=NAMES)
def test_eager_ids_out_of_range_are_refused(embedding, name, value, dtype):
    arguments = {"token_ids": ids(), name: ids(value, dtype)}
    for kind in (np.asarray, tf.constant):
        message = rf"`{name}` must be from .* to .*Received: {value} at \[1, 2\]"
        with pytest.raises(ValueError, match=message):
            embedding(**{k: kind(v) for k, v in arguments.items()})


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint32", "uint64"])
def test_good_ids_of_any_integer_dtype(embedding, dtype):
    expected = embedding(ids(), ids(1))
    actual = embedding(ids(dtype=dtype), ids(1, dtype))
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_compiled_ids_out_of_range_are_zeros_or_an_error(embedding, dtype):
    """Also their gradients reach no table. One compilation serves all values."""
    spec = tf.TensorSpec((2, 6), dtype)

    def run(tokens, segments):
        with tf.GradientTape() as tape:
            x = embedding(tokens, segments)
        gradients = tape.gradient(x, embedding.trainable_variables)
        return x, [tf.convert_to_tensor(gradient) for gradient in gradients]

    compiled = tf.function(run, input_signature=[spec, spec], jit_compile=True)
    graph = tf.function(run, input_signature=[spec, spec])
    good, good_gradients = compiled(ids(dtype=dtype), ids(dtype=dtype))
    expected, expected_gradients = run(ids(dtype=dtype), ids(dtype=dtype))
    np.testing.assert_allclose(good, expected, rtol=1e-6)
    for a, b in zip(good_gradients, expected_gradients):
        np.testing.assert_array_equal(a, b)
    for value in [value for value, kind in WRONG if kind == dtype]:
        wrong, right = ids(value, dtype), ids(dtype=dtype)
        for arguments in ((wrong, right), (right, wrong)):
            x, gradients = compiled(*arguments)
            x = np.array(x)
            assert not x[1, 2].any(), value
            x[1, 2] = good[1, 2]
            np.testing.assert_array_equal(x, good)
            for gradient in gradients:  # Eleven of the twelve places have row 3.
                assert np.asarray(gradient)[3].tolist() == [11.0] * 8
                assert np.count_nonzero(gradient) == 8
            with pytest.raises(tf.errors.InvalidArgumentError, match="not in|out of"):
                graph(*arguments)


@pytest.mark.quick("float32-token_ids", "float64-padding_mask", "float16-segment_ids")
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_floats_are_refused(classifier, name, dtype):
    arguments = batch(**{name: ids(1.0, dtype, others=1)})
    labels = np.array([0, 1])
    for model in (classifier, classifier.encoder):
        with pytest.raises(TypeError, match=f"`{name}` must be an integer tensor"):
            model(arguments)
        with pytest.raises(TypeError, match=f"`{name}` must be an integer tensor"):
            model.predict(arguments, verbose=0)
    with pytest.raises(TypeError, match=f"`{name}` must be an integer tensor"):
        classifier.fit(arguments, labels, verbose=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS[:2])
def test_arrays_out_of_range_fail_in_fit_and_predict(classifier, name):
    labels = np.array([0, 1])
    for value, dtype in ((-1, "int64"), (2**32 + 3, "int64")):
        arguments = batch(**{name: ids(value, dtype, others=1)})
        with pytest.raises(ValueError, match=f"`{name}` must be from .*{value}"):
            classifier(arguments)
        for run in (
            lambda: classifier.predict(arguments, verbose=0),  # noqa: B023
            lambda: classifier.fit(arguments, labels, verbose=0),  # noqa: B023
        ):
            with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
                run()


def test_masks(classifier):
    expected = classifier(batch())
    for dtype in ("bool", "int8", "uint8", "int64"):
        mask = np.ones((2, 6), dtype)
        actual = classifier(batch(padding_mask=mask))
        np.testing.assert_array_equal(actual, expected)
    # All but 0 counts as 1, and 2³² is not 0.
    for value, dtype in ((2, "int32"), (-1, "int32"), (2**31 - 1, "int64")):
        actual = classifier(batch(padding_mask=ids(value, dtype, others=1)))
        np.testing.assert_array_equal(actual, expected)
    hidden = np.ones((2, 6, 8), "float32")
    attention = tfeff.layers.SelfAttention(num_heads=2)
    everything = np.asarray(attention(hidden))
    masks = tf.function(lambda m: attention(hidden, padding_mask=m))
    for value, dtype in ((2, "int32"), (2**32, "int64")):
        actual = masks(tf.constant(ids(value, dtype, others=1)))
        np.testing.assert_allclose(actual, everything, rtol=1e-6)


@pytest.mark.quick("distillation-token_ids", "hub-padding_mask")
@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("make", ["distillation", "hub"])
def test_models_around_an_encoder_refuse_floats_and_wide_ids(make, name):
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=ROWS, num_layers=1)
    if make == "hub":
        model = tfeff.encoders.EncoderTextClassifier(encoder, num_classes=2)
    else:
        other = tfeff.encoders.build("bert_tiny", vocabulary_size=ROWS, num_layers=1)
        model = tfeff.objectives.Distillation(encoder, other)
    good = batch()
    model(good)
    with pytest.raises(TypeError, match=f"`{name}` must be an integer"):
        model(good | {name: good[name] + 0.5})
    with pytest.raises(ValueError, match=f"`{name}` must be from"):
        model(good | {name: good[name].astype("int64") + 2**32})


def test_an_input_of_floats_stays_what_it_is():
    """Of a student with features beside its text."""
    inputs = {"ids": keras.Input((2,), dtype="int32"), "rates": keras.Input((2,))}
    given = {"rates": np.array([[0.5, 1.5]]), "ids": np.array([[1, 2]]), "other": 3}
    found = exact_inputs(given, inputs)
    assert list(found) == ["ids", "rates"] and found["rates"] is given["rates"]
    with pytest.raises(TypeError, match="`ids` must be an integer"):
        exact_inputs(given | {"ids": given["rates"]}, inputs)


@pytest.mark.parametrize("position", [-1, 5, 2**32 + 1, -(2**32) + 1])
def test_positions(position):
    x = np.arange(1, 11, dtype="float32").reshape(2, 5)
    positions = np.array([[0, 1], [position, 1]])
    with pytest.raises(ValueError, match=f"`positions` must be from.*{position} at"):
        gather_positions(x, positions)
    with pytest.raises(TypeError, match="`positions` must be an integer tensor"):
        gather_positions(x, positions + 0.5)
    spec = tf.TensorSpec((2, 2), "int64")
    call = tf.function(
        lambda p: gather_positions(x, p), input_signature=[spec], jit_compile=True
    )
    assert call(positions).numpy().tolist() == [[1, 2], [0, 7]]
    graph = tf.function(lambda p: gather_positions(x, p), input_signature=[spec])
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in"):
        graph(positions)


def test_mask_positions_are_named(classifier):
    model = tfeff.objectives.MaskedLM(classifier.encoder)
    for position in (-1, 6, 2**32 + 1):
        inputs = batch(mask_positions=np.array([[0], [position]]))
        with pytest.raises(ValueError, match=f"`mask_positions` must be.*{position}"):
            model(inputs)
    with pytest.raises(TypeError, match="`mask_positions` must be an integer tensor"):
        model(batch(mask_positions=np.array([[0.0], [1.5]])))


@pytest.mark.quick("3")
@pytest.mark.parametrize("label", [-1, 3])
def test_labels(classifier, label):
    logits = tf.constant([[0.0, 1.0, 2.0]] * 2)
    loss = GlobalMeanCrossentropy()
    labels = np.array([0, label])
    with pytest.raises(ValueError, match=f"`y_true` must be from 0 to 2.*{label}"):
        loss(labels, logits)
    with pytest.raises(ValueError, match=f"`y` must be ids of classes.*{label} at"):
        classifier.fit(batch(), labels, verbose=0)
    dataset = tf.data.Dataset.from_tensors((batch(), labels))
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"value of {label} "):
        classifier.fit(dataset, verbose=0)
    of_ratings = (
        "`y_true` must be an integer tensor: .* give `label_names`, or use a `R"
    )
    with pytest.raises(TypeError, match=of_ratings):
        classifier.fit(batch(), np.array([0.0, 1.5]), verbose=0)
    spec = tf.TensorSpec(2, "int64")
    compiled = tf.function(
        lambda y: loss(y, logits), input_signature=[spec], jit_compile=True
    )
    assert np.isnan(compiled(labels))
    assert np.isfinite(compiled(np.array([0, 2])))


@pytest.mark.parametrize("label", [-1, 2, 0.5])
def test_binary_labels(label):
    logits, labels = tf.constant([0.0, 1.0]), tf.constant([1, label], "float32")
    loss = GlobalMeanBinaryCrossentropy()
    with pytest.raises(ValueError, match=f"`y_true` must be 0 or 1.*{label}"):
        loss(labels, logits)
    graph = tf.function(loss)
    assert np.isnan(graph(labels, logits))
    good = tf.constant([1.0, 0.0])
    np.testing.assert_allclose(graph(good, logits), loss(good, logits), rtol=1e-6)
