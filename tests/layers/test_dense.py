"""Dense layers are Keras' own in all but the gradient of the bias."""

import json
import warnings

import keras
import numpy as np
import pytest

from tests.checks import assert_close, randomize, variables_of
from tfeff.compat.layers import frozen_kernel
from tfeff.layers.dense import Dense
from tfeff.layers.grouped_dense import GroupedDense

INPUTS = np.random.default_rng(2).normal(size=(2, 5, 8)).astype("float32")


def pair(**settings):
    """Ours and Keras' layer with the same weights."""
    made = [cls(6, name="dense", **settings) for cls in (Dense, keras.layers.Dense)]
    for layer in made:
        layer.build(INPUTS.shape)
        randomize(variables_of(layer))
    return made


def check_same(ours, theirs):
    assert [w.path for w in ours.weights] == [w.path for w in theirs.weights]
    np.testing.assert_array_equal(ours(INPUTS), theirs(INPUTS))


@pytest.mark.parametrize("dtype", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_is_the_layer_of_keras(dtype):
    for settings in ({}, {"activation": "gelu"}, {"use_bias": False}):
        check_same(*pair(dtype=dtype, **settings))


@pytest.mark.parametrize("mode", ["int8", "int4", "float8"])
def test_is_quantized_as_keras_does(mode, tmp_path):
    layers = pair()
    for layer in layers:
        layer.quantize(mode)
    check_same(*layers)
    models = [keras.Sequential([keras.Input((5, 8)), layer]) for layer in pair()]
    for model in models:
        with warnings.catch_warnings():  # That the input has nothing to quantize.
            warnings.simplefilter("ignore")
            model.quantize(mode)
    check_same(models[0].layers[0], models[1].layers[0])
    models[0].save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded.layers[0]) is Dense
    np.testing.assert_array_equal(loaded(INPUTS), models[0](INPUTS))


def test_adapters():
    layers = pair()
    for layer in layers:
        layer.enable_lora(2)
        randomize(variables_of(layer))
    check_same(*layers)


@pytest.mark.parametrize("cls", [Dense, GroupedDense])
def test_an_adapted_kernel_is_saved_in_full_precision(cls, tmp_path):
    def model(dtype):
        groups = {"num_groups": 2} if cls is GroupedDense else {}
        layer = cls(6, dtype=dtype, **groups)
        return layer, keras.Sequential([keras.Input((5, 8)), layer])

    layer, adapted = model("mixed_bfloat16")
    dense = getattr(layer, "dense", layer)
    dense.enable_lora(2)  # It begins with a change of 0.
    adapted.save_weights(tmp_path / "model.weights.h5")
    loaded, plain = model("float32")
    plain.load_weights(tmp_path / "model.weights.h5")
    kernel = getattr(loaded, "dense", loaded).kernel
    np.testing.assert_array_equal(kernel, frozen_kernel(dense))


def test_reads_what_keras_wrote(tmp_path):
    ours, theirs = (keras.Sequential([keras.Input((5, 8)), layer]) for layer in pair())
    ours.set_weights([np.zeros_like(w) for w in ours.get_weights()])
    theirs.save_weights(tmp_path / "model.weights.h5")
    ours.load_weights(tmp_path / "model.weights.h5")
    check_same(ours.layers[0], theirs.layers[0])
    config = theirs.layers[0].get_config()
    assert json.dumps(Dense.from_config(config).get_config()) == json.dumps(config)


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize("change", ["nothing", "adapter", "int8"])
def test_projects_without_the_bias(use_bias, change):
    layer, _ = pair(use_bias=use_bias)
    if change == "adapter":
        layer.enable_lora(2)
    if change == "int8":
        layer.quantize("int8")
    else:
        randomize(variables_of(layer))
    expected = layer(INPUTS)[0]
    if use_bias:
        expected = expected - layer.bias
    assert_close(layer.project(INPUTS[0]), expected, 1e-6)
