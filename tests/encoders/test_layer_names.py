"""What is kept of layers by name is that of the same layers in every process."""

import keras
import numpy as np
import pytest

import tfeff
from tests.subjects.encoders import tiny
from tfeff.encoders.layer_names import layer_names, weight_names
from tfeff.objectives.objective import Objective


@keras.saving.register_keras_serializable("layer_names")
class Gated(tfeff.layers.SelfAttention):
    """Has layers that Keras names."""

    def __init__(self, num_heads, **kwargs):
        super().__init__(num_heads, **kwargs)
        self.gate, self.shift = keras.layers.Dense(8), keras.layers.Dense(8)

    def build(self, hidden_shape):
        super().build(hidden_shape)
        self.gate.build(hidden_shape)
        self.shift.build(hidden_shape)

    def call(self, hidden, *args, **kwargs):
        attended = super().call(hidden, *args, **kwargs)
        return attended * self.gate(hidden) + self.shift(hidden)


@keras.saving.register_keras_serializable("layer_names")
class TwoLayers(Objective):
    """Has a head of two layers that Keras names."""

    def __init__(self, encoder, **kwargs):
        one, two = keras.layers.Dense(8), keras.layers.Dense(3)
        outputs = two(one(encoder(encoder.input)["sequence_output"]))
        super().__init__(encoder, encoder.input, outputs, **kwargs)
        self.one, self.two = one, two


@pytest.fixture(name="encoder")
def _encoder(own_attentions):
    tfeff.encoders.register_attention("gated_of_tests", Gated)
    return tiny("bert_base", num_layers=2, hidden_dim=8, attention="gated_of_tests")


def in_another_process():
    """Other numbers than now, as where other layers were made before."""
    keras.layers.Dense(1)


def trainable(model):
    return {name: weight.trainable for name, weight in weight_names(model).items()}


def test_names(encoder):
    in_another_process()
    other = encoder.from_config(encoder.get_config())
    names = layer_names(encoder)
    assert list(names) == list(layer_names(other))
    for name, layer in {
        "block_1/attention/query": encoder.blocks[1].attention.query_dense,
        "block_1/attention/dense": encoder.blocks[1].attention.gate,
        "block_1/attention/dense#1": encoder.blocks[1].attention.shift,
    }.items():
        assert names[name] is layer
    assert encoder.blocks[1].attention.gate.name != "dense"
    weights = weight_names(encoder)
    assert list(weights) == list(weight_names(other))
    assert len(weights) == len(encoder.weights)
    assert weights["block_0/attention/dense#1/bias"] is (
        encoder.blocks[0].attention.shift.bias
    )


def test_those_of_a_model_inside_are_its_own(encoder):
    model = TwoLayers(encoder)
    assert [n for n, x in layer_names(model).items() if x.weights] == [
        "dense",
        "dense#1",
    ]
    inner = {f"encoder/{name}" for name in weight_names(encoder)}
    assert inner < set(weight_names(model))


@pytest.mark.parametrize("frozen", ["one", "two"])
def test_a_frozen_layer_of_a_head_is_frozen_when_it_is_loaded(
    frozen, encoder, tmp_path
):
    model = TwoLayers(encoder)
    getattr(model, frozen).trainable = False
    tfeff.training.save_checkpoint(model, tmp_path / "model.keras")
    in_another_process()
    loaded = tfeff.training.load_checkpoint(tmp_path / "model.keras")
    assert trainable(loaded) == trainable(model)
    assert trainable(model.from_config(model.get_config())) == trainable(model)


def test_a_frozen_layer_of_an_attention_stays_frozen(encoder, tmp_path):
    encoder.blocks[1].attention.shift.trainable = False
    encoder.save(tmp_path / "model.keras")
    in_another_process()
    for other in (
        keras.saving.load_model(tmp_path / "model.keras"),
        tfeff.encoders.extend_length(encoder, 2 * encoder.max_sequence_length),
        tfeff.encoders.disable_heads(encoder, {}),
    ):
        assert trainable(other) == trainable(encoder)


def test_a_quantized_layer_is_quantized_when_it_is_loaded(encoder, tmp_path):
    model = TwoLayers(encoder)
    model.quantize("int8")
    ids = np.ones([2, 5], "int32")
    batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    model.save(tmp_path / "model.keras")
    in_another_process()
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(batch), model(batch))
    assert [x.quantization_mode for x in layer_names(loaded).values()] == [
        x.quantization_mode for x in layer_names(model).values()
    ]


def test_adapters_are_loaded_beside_other_numbers(encoder, tmp_path):
    model = TwoLayers(encoder)
    in_another_process()
    other = TwoLayers(encoder.from_config(encoder.get_config()))
    other.encoder.set_weights(encoder.get_weights())
    gates = [block.attention.gate.name for block in encoder.blocks]
    encoder.enable_lora(2, ["query", *gates])
    for value, weight in enumerate(model.trainable_weights):
        weight.assign(0 * weight + value)
    tfeff.tasks.save_lora(model, tmp_path / "a.safetensors")
    tfeff.tasks.load_lora(other, tmp_path / "a.safetensors")
    for one, two in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(one, two)
