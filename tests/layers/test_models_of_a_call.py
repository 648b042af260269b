"""Models with a call alone, which Keras builds on floats when it loads them."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tfeff import layers

IDS = np.array([[3, 4, 5, 0, 0], [3, 4, 0, 0, 0]], "int32")
INPUTS = {
    "token_ids": IDS,
    "segment_ids": np.array([[0, 1, 1, 0, 0], [0, 0, 0, 0, 0]], "int32"),
    "padding_mask": (IDS > 0).astype("int32"),
}


def make_block(attention=None, **options):
    attention = attention or layers.SelfAttention(2)
    return layers.EncoderBlock(attention, layers.FeedForward(8), **options)


@keras.saving.register_keras_serializable(package="tests")
class OfAnEncoder(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=9)
        self.head = keras.layers.Dense(2)

    def call(self, inputs):
        return self.head(self.encoder(inputs)["sequence_output"][:, 0])


@keras.saving.register_keras_serializable(package="tests")
class OfParts(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.parts = [layers.EncoderEmbedding(9, 8), make_block(), layers.MeanPooling()]
        self.head = keras.layers.Dense(2)

    def call(self, inputs):
        for part in self.parts:
            inputs = part(inputs)
        return self.head(inputs)


@keras.saving.register_keras_serializable(package="tests")
class OfBlocks(keras.Model):
    """Everything that takes ids or masks."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = keras.layers.Embedding(9, 8)
        relative = layers.RelativeAttention(2, "xlnet", relative_segments=True)
        self.blocks = [make_block(), make_block(relative, memory_efficient=True)]
        self.streams = layers.TwoStreamBlocks([make_block()])
        self.convolution = layers.DynamicConv1D(2, 3)
        self.pooling = layers.SegmentPooling()
        self.head = keras.layers.Dense(2)

    def call(self, inputs):
        ids, segment_ids, mask = (inputs[name] for name in INPUTS)
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, padding_mask=mask, segment_ids=segment_ids)
        x, _ = self.streams(x, ids, mask, target_positions=segment_ids)
        x = self.convolution(x, padding_mask=mask)
        return self.head(self.pooling(x, segment_ids, padding_mask=mask))


@pytest.mark.quick(
    "OfAnEncoder-inputs0-load_checkpoint",
    "OfParts-inputs1-load_model",
)
@pytest.mark.parametrize(
    "load", [keras.models.load_model, tfeff.training.load_checkpoint]
)
@pytest.mark.parametrize(
    "make, inputs", [(OfAnEncoder, INPUTS), (OfParts, IDS), (OfBlocks, INPUTS)]
)
def test_a_loaded_model_is_the_same(make, inputs, load, tmp_path):
    model = make()
    expected = keras.ops.convert_to_numpy(model(inputs))
    model.save(tmp_path / "model.keras")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        loaded = load(str(tmp_path / "model.keras"))
    found = keras.ops.convert_to_numpy(loaded(inputs))
    np.testing.assert_array_equal(found, expected)


HIDDEN, FLOATS = keras.Input((5, 8)), keras.Input((5,))
CALLS = {
    "token_ids": lambda: layers.EncoderEmbedding(9, 8)(FLOATS),
    "segment_ids": lambda: layers.SegmentPooling()(HIDDEN, FLOATS),
    "ranks": lambda: layers.TwoStreamBlocks([make_block()])(HIDDEN, FLOATS),
    "padding_mask": lambda: make_block()(HIDDEN, padding_mask=FLOATS),
    "padding_mask ": lambda: layers.MeanPooling()(HIDDEN, padding_mask=FLOATS),
    "token_ids ": lambda: OfAnEncoder().encoder(dict.fromkeys(INPUTS, FLOATS)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_symbolic_call_with_floats_is_refused_at_once(name):
    with pytest.raises(TypeError, match=f"`{name.strip()}` must be .* integer tensor"):
        CALLS[name]()


def test_a_sequential_model_is_to_begin_with_an_input_of_integers():
    parts = [layers.EncoderEmbedding(9, 8), layers.MeanPooling()]
    with pytest.raises(TypeError, match="begin with .keras.Input.*dtype='int32'"):
        keras.Sequential(parts)(IDS)
    model = keras.Sequential([keras.Input((None,), dtype="int32"), *parts])
    assert tuple(model(IDS).shape) == (2, 8)


class OfIds(keras.Model):
    def __init__(self):
        super().__init__()
        self.embedding = layers.EncoderEmbedding(9, 8)

    def call(self, token_ids):
        return self.embedding(token_ids)


def test_a_model_of_ids_is_exported_with_their_dtype(tmp_path):
    model = OfIds()
    expected = model(IDS)
    message = "dtype='int32'\\)`; a subclassed model .* int32 `input_signature`"
    with pytest.raises(TypeError, match=message):
        model.export(tmp_path / "float", verbose=False)
    signature = [keras.InputSpec(dtype="int32", shape=(None, None))]
    model.export(tmp_path / "ids", verbose=False, input_signature=signature)
    loaded = tf.saved_model.load(tmp_path / "ids")
    np.testing.assert_allclose(loaded.serve(IDS), expected, rtol=1e-6)
