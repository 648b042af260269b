"""Models that tfeff does not know serve their own outputs by name."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import tfeff
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.serving import load, make_encoder
from tfeff.data import TextExamples, text_features
from tfeff.export import parts
from tfeff.export.any_model import find_encoder, predict_endpoint
from tfeff.export.text_encoder import TextEncoder

LENGTH = 24
TEXTS = ("A tiger followed seven boxes", "", "Zebra ÉTÉ 日本 🦓 [MASK]", DOCUMENTS[0])
PAIRS = (DOCUMENTS[5], "zebras", "", "My neighbour; was it?")
NAMES = ("token_ids", "segment_ids", "padding_mask")


def make_inputs(*names, length=None):
    return {name: keras.Input((length,), dtype="int32", name=name) for name in names}


def functional(encoder):
    inputs = make_inputs(*NAMES)
    first = encoder(inputs)["sequence_output"][:, 0]
    return keras.Model(inputs, keras.layers.Dense(3)(first))


def of_a_list(encoder):
    """Its inputs in another order, of which one is missing; nested outputs."""
    inputs = make_inputs("padding_mask", "token_ids")
    zeros = ops.zeros_like(inputs["token_ids"])
    hidden = encoder({**inputs, "segment_ids": zeros})["sequence_output"]
    outputs = {"first": hidden[:, 0], "more": [hidden, {"sum": hidden + 1.0}]}
    return keras.Model(list(inputs.values()), outputs)


def of_token_ids(encoder):
    ids = keras.Input((LENGTH,), name="token_ids")  # A float, as Keras' default is.
    known = ops.cast(ids, "int32")
    mask = ops.cast(ops.not_equal(known, tokenizer().pad_token_id), "int32")
    given = dict(zip(NAMES, (known, ops.zeros_like(known), mask)))
    hidden = encoder(given)["sequence_output"]
    return keras.Model(ids, [hidden[:, 0], hidden[:, 1]])


class Subclassed(keras.Model):
    """Takes a dict; its encoder is below another layer; gives half precision."""

    def __init__(self, encoder):
        super().__init__()
        self.parts = {"encoders": [keras.Sequential([encoder])]}
        self.dense = keras.layers.Dense(2)

    def call(self, inputs, training=None):
        assert not training
        hidden = self.parts["encoders"][0](inputs)["sequence_output"]
        return {"scores": ops.cast(self.dense(hidden[:, 0]), "float16")}


class ByName(keras.Model):
    """Takes two of the inputs by name."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def call(self, token_ids, padding_mask):
        zeros = ops.zeros_like(token_ids)
        given = dict(zip(NAMES, (token_ids, zeros, padding_mask)))
        return self.encoder(given)["sequence_output"][:, 0]


class First(keras.layers.Layer):
    def call(self, outputs):
        return outputs["sequence_output"][:, 0]


def sequential(encoder):
    return keras.Sequential([encoder, First(), keras.layers.Dense(2)])


# Of each: whether it sees segments, and its outputs by name from those of its call.
KINDS = {
    functional: (True, lambda y: {"output": y}),
    of_a_list: (
        False,
        lambda y: {
            "first": y["first"],
            "more_0": y["more"][0],
            "more_1_sum": y["more"][1]["sum"],
        },
    ),
    of_token_ids: (False, lambda y: {"output_0": y[0], "output_1": y[1]}),
    Subclassed: (True, lambda y: {"scores": y["scores"]}),
    ByName: (False, lambda y: {"output": y}),
    sequential: (True, lambda y: {"output": y}),
}


def features(pairs):
    examples = TextExamples(TEXTS, PAIRS if pairs else None, None, None, (0, 1, 2, 3))
    return text_features(examples, tokenizer(), LENGTH).inputs


@pytest.mark.quick("of_token_ids")
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_outputs_are_those_of_the_model_by_name(make):
    sees_segments, by_name = KINDS[make]
    encoder = make_encoder(max_sequence_length=LENGTH)
    model = make(encoder)
    assert find_encoder(model) is encoder
    fixed = LENGTH if make is of_token_ids else None
    text_encoder = TextEncoder(tokenizer(), LENGTH, fixed is not None)
    pairs = sees_segments or make is of_a_list
    predict = tf.function(predict_endpoint(model, text_encoder, pairs, 10**4))
    texts = [tf.constant(t) for t in ((TEXTS, PAIRS) if pairs else (TEXTS,))]
    outputs = predict(*texts)
    inputs = {name: ops.convert_to_tensor(x) for name, x in features(pairs).items()}
    if make is of_a_list:
        inputs = [inputs["padding_mask"], inputs["token_ids"]]
    if make is of_token_ids:
        inputs = inputs["token_ids"]
    if make is ByName:
        expected = model(inputs["token_ids"], inputs["padding_mask"])
    else:
        expected = model(inputs)
    expected = by_name(expected)
    assert outputs.keys() == expected.keys()
    for name, value in expected.items():
        assert outputs[name].dtype == tf.float32
        value = np.array(value)
        if value.ndim == 3:  # As long as the longest text, which is all of it here.
            assert outputs[name].shape[1] == LENGTH
        tolerance = 1e-3 if value.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(outputs[name], value, atol=tolerance)
        assert np.ptp(value, axis=0).max() > 0.05
    if sees_segments:
        apart = predict(texts[1], texts[0])
        assert not np.allclose(next(iter(apart.values())), next(iter(outputs.values())))
    empty = predict(*[tf.constant([], tf.string)] * len(texts))
    assert all(value.shape[0] == 0 for value in empty.values())


def test_outputs_have_a_limit(monkeypatch):
    """Two tensors of 16 numbers for each token, and one of half precision."""
    monkeypatch.setattr(parts, "MOST_BYTES", 4 * 3 * 16 * 10)
    encoder = make_encoder(max_sequence_length=LENGTH)
    hidden = encoder(encoder.input)["sequence_output"]
    outputs = {"two": [hidden, hidden + 1.0], "half": ops.cast(hidden, "float16")}
    model = keras.Model(encoder.input, outputs)
    text_encoder = TextEncoder(tokenizer(), LENGTH)
    predict = tf.function(predict_endpoint(model, text_encoder, False, 10**4))
    assert predict(tf.constant([""] * 5))["two_0"].shape == (5, 2, 16)
    error = tf.errors.InvalidArgumentError
    with pytest.raises(error, match=r"`text` must have .* 1920 bytes.*\[2304\]"):
        predict(tf.constant([""] * 6))


@pytest.mark.slow
def test_an_export_of_a_fixed_length_and_of_pairs(tmp_path):
    encoder = make_encoder()
    inputs = make_inputs(*NAMES, length=LENGTH)
    model = keras.Model(
        inputs, {"mean": ops.mean(encoder(inputs)["sequence_output"], 1)}
    )
    tfeff.export.save_for_serving(model, tokenizer(), tmp_path / "model", pairs=True)
    signatures = load(tmp_path / "model").signatures
    assert set(signatures) == {"predict", "serving_default"}
    served = signatures["predict"](
        text=tf.constant(TEXTS), text_pair=tf.constant(PAIRS)
    )
    expected = model(features(pairs=True))["mean"]
    np.testing.assert_allclose(served["mean"], expected, atol=1e-5)


def refused(error, match, model, tmp_path, **options):
    path = tmp_path / "new" / "model"
    with pytest.raises(error, match=match):
        tfeff.export.save_for_serving(model, tokenizer(), path, **options)
    assert not (tmp_path / "new").exists()


def test_the_encoder_is_one_of_the_model(tmp_path):
    one, other = make_encoder(), make_encoder()
    inputs = make_inputs(*NAMES)
    refused(ValueError, "must have one.*which has none", keras.Sequential(), tmp_path)
    # Made of the encoder's outputs: its layers are the model's, itself is not.
    flat = keras.Model(one.input, one.output["sequence_output"][:, 0])
    refused(ValueError, "must have one.*which has none", flat, tmp_path)
    assert find_encoder(flat, one) is one
    refused(ValueError, "`encoder` must be the one of", flat, tmp_path, encoder=other)
    refused(TypeError, "`encoder` must be a", flat, tmp_path, encoder="encoder")
    both = keras.Model(
        inputs, one(inputs)["sequence_output"] + other(inputs)["sequence_output"]
    )
    refused(ValueError, "must have one.*which has 2", both, tmp_path)
    assert find_encoder(both, other) is other
    twice = keras.Model(inputs, one(one(inputs) and inputs)["sequence_output"])
    assert find_encoder(twice) is one
    refused(TypeError, "`model` must be a `keras.Model`", First(), tmp_path)


def test_what_texts_do_not_give_is_named(tmp_path):
    encoder = make_encoder()
    inputs = make_inputs(*NAMES)
    hidden = encoder(inputs)["sequence_output"]

    def with_input(name, shape=(None,), **more):
        other = keras.Input(shape, name=name, **more)
        outputs = {"a": hidden, "b": keras.layers.Identity()(other)}
        return keras.Model({**inputs, name: other}, outputs)

    message = "no inputs but token_ids, segment_ids, padding_mask.*"
    refused(ValueError, f"{message}'weights'", with_input("weights"), tmp_path)
    masks = with_input("mask_positions")
    refused(ValueError, f"{message}'mask_positions'", masks, tmp_path)
    ids = keras.Input((None, None), dtype="int32", name="token_ids")
    choices = keras.Model(ids, encoder(dict.fromkeys(NAMES, ids[:, 0])))
    refused(ValueError, f"{message}'token_ids' of the shape", choices, tmp_path)
    batch = make_inputs(*NAMES)
    batch["token_ids"] = keras.Input(
        batch_shape=(8, None), dtype="int32", name="token_ids"
    )
    eight = keras.Model(batch, encoder(batch)["sequence_output"])
    refused(ValueError, f"{message}'token_ids' of the shape", eight, tmp_path)
    lengths = make_inputs("token_ids", length=8) | make_inputs("padding_mask", length=9)
    unequal = keras.Model(
        lengths,
        {
            "a": encoder(dict.fromkeys(NAMES, lengths["token_ids"]))["sequence_output"],
            "b": keras.layers.Identity()(lengths["padding_mask"]),
        },
    )
    refused(ValueError, r"one length.*\[8, 9\]", unequal, tmp_path)
    fixed = of_token_ids(encoder)
    refused(
        ValueError,
        "`sequence_length` must be the 24",
        fixed,
        tmp_path,
        sequence_length=9,
    )
    refused(TypeError, "`pairs` must be", functional(encoder), tmp_path, pairs="yes")
    refused(
        TypeError,
        r"`top_k` must be an option.*\['pairs', 'max_tokens'\]",
        functional(encoder),
        tmp_path,
        top_k=3,
    )
    few = {"sequence_length": 9, "max_tokens": 8}
    refused(ValueError, "`max_tokens` must be", functional(encoder), tmp_path, **few)
    small = make_encoder(vocabulary_size=59)
    refused(ValueError, "no more ids than the encoder", functional(small), tmp_path)


class Wants(Subclassed):
    def call(self, inputs):
        return super().call(inputs)["scores"] * inputs["weights"]


class GivesNoTensor(Subclassed):
    def call(self, inputs):
        return {**super().call(inputs), "count": 7}


def test_calls_that_fail_and_outputs_that_are_no_tensors(tmp_path):
    encoder = make_encoder()
    refused(
        ValueError,
        "(?s)`model` must have outputs for token_ids.*Wants.*KeyError.*weights",
        Wants(encoder),
        tmp_path,
    )
    refused(
        TypeError, "must give tensors.*'count', 7", GivesNoTensor(encoder), tmp_path
    )
