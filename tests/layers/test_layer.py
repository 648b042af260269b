"""What Keras asks every layer for beside its call."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import tree

from tests.checks.saving import check_same, outputs_of
from tests.subjects.layers import CASES, layer_classes, symbolic
from tfeff.compat.layers import LeavesShared

INITIALIZED = {
    name: [x for x in case.make().get_config() if x.endswith("initializer")]
    for name, case in CASES.items()
}
SINGLE = [
    name
    for name, case in CASES.items()
    if not case.others and not isinstance(case.inputs, list)
]
# Of each kind one, where all take long.
QUICK = (
    *("BlockwiseAttention", "MixedAttention", "OneHeadAttention", "RelativeAttention"),
    *("EncoderBlock", "TwoStreamBlocks"),
)


def test_all_layers_are_tested():
    assert set(CASES) == layer_classes()


@pytest.mark.parametrize("name", CASES)
def test_output_shape_is_that_of_the_call(name):
    case = CASES[name]
    others = {f"{name}_shape": x.shape for name, x in case.others.items()}
    first = case.inputs
    first = [x.shape for x in first] if isinstance(first, list) else first.shape
    declared = case.make().compute_output_shape(first, **others)
    outputs = case.make()(case.inputs, **case.others)
    assert declared == tree.map_structure(lambda x: tuple(x.shape), outputs)


@pytest.mark.quick(*QUICK)
@pytest.mark.parametrize("name", CASES)
def test_a_cloned_model_and_a_saved_one_are_the_same(name, tmp_path):
    case = CASES[name]
    inputs = [case.inputs, case.others]
    first, others = tree.map_structure(symbolic, inputs)
    model = keras.Model([first, others], case.make()(first, **others))
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for copy in (clone, loaded):
        check_same(outputs_of(copy, inputs), outputs_of(model, inputs))


@pytest.mark.parametrize("name", CASES)
def test_a_configuration_makes_a_layer_of_the_same(name):
    layer = CASES[name].make(dtype=keras.DTypePolicy("float32"))
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config


@pytest.mark.quick(*QUICK)
@pytest.mark.parametrize("name", CASES)
def test_a_frozen_layer_is_frozen_in_a_model(name):
    case = CASES[name]
    first, others = tree.map_structure(symbolic, [case.inputs, case.others])

    def model_of(layer):
        return keras.Model([first, others], layer(first, **others))

    layer = case.make(trainable=False)
    found = {weight.path for weight in model_of(layer).trainable_weights}
    # Blocks that are shared with an encoder are frozen with that.
    assert found == {w.path for x in getattr(layer, "blocks", ()) for w in x.weights}
    layer = case.make()
    model = model_of(layer)
    layer.trainable = False
    # Streams freeze the blocks that they run, and a pooling leaves them to the encoder.
    num_left = len(found) if isinstance(layer, LeavesShared) else 0
    assert len(model.trainable_weights) == num_left
    clone = keras.models.clone_model(model)
    assert len(clone.trainable_weights) == num_left
    assert sum(weight.trainable for weight in clone.weights) == num_left


@pytest.mark.parametrize("times", [2, None])
@pytest.mark.parametrize("name", SINGLE)
def test_several_times(name, times):
    case = CASES[name]
    layer = case.make()
    together = np.stack([case.inputs, case.inputs[::-1]], axis=1)
    inputs = keras.Input((times, *together.shape[2:]), dtype=str(together.dtype))
    outputs = keras.layers.TimeDistributed(layer)(inputs)
    apart = [layer(together[:, 0]), layer(together[:, 1])]
    found = keras.Model(inputs, outputs)(together)
    np.testing.assert_array_equal(found, np.stack(apart, axis=1))
    assert all(x in (None, y) for x, y in zip(outputs.shape, found.shape, strict=True))


@pytest.mark.quick("OneHeadAttention", "RelativeAttention")
@pytest.mark.parametrize("name", SINGLE)
def test_mapped_by_tensorflow(name):
    case = CASES[name]
    layer = case.make()
    together = np.stack([case.inputs, case.inputs[::-1]])
    apart = [layer(together[0]), layer(together[1])]
    # TensorFlow has its own form of each operation for this.
    found = tf.vectorized_map(layer, tf.constant(together))
    np.testing.assert_allclose(found, np.stack(apart), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int64"])
@pytest.mark.parametrize("name", CASES)
def test_integers_may_be_of_any_size(name, dtype):
    case = CASES[name]
    layer = case.make()
    others = dict(case.others)
    if "ranks" in others:
        others["ranks"] = others["ranks"] + 126  # The largest of 8 bits among them.

    def of(dtype):
        inputs = [case.inputs, others]
        first, rest = tree.map_structure(
            lambda x: x.astype(dtype) if "int" in str(x.dtype) else x, inputs
        )
        return layer(first, **rest)

    tree.map_structure(np.testing.assert_array_equal, of(dtype), of("int32"))


@pytest.mark.parametrize("name", ["MeanPooling", "SegmentPooling"])
def test_a_mean_of_integers_is_a_number(name):
    case = CASES[name]
    whole = np.round(3 * case.inputs)
    expected = case.make()(whole, **case.others)
    found = case.make()(whole.astype("int32"), **case.others)
    assert np.any(expected != np.round(expected))
    np.testing.assert_array_equal(found, expected)
    first, others = tree.map_structure(symbolic, [whole.astype("int32"), case.others])
    assert case.make()(first, **others).dtype == "float32"


@keras.saving.register_keras_serializable(package="tests")
def halves(shape, dtype=None):
    return keras.ops.full(shape, 0.5, dtype)


@pytest.mark.parametrize("name", filter(INITIALIZED.get, INITIALIZED))
def test_a_function_is_an_initializer(name):
    case = CASES[name]
    names = INITIALIZED[name]
    layer = case.make(**dict.fromkeys(names, halves))
    copy = type(layer).from_config(layer.get_config())
    # Layers that it is given, such as shared blocks, have initializers of their own.
    given = {id(w) for x in getattr(layer, "blocks", ()) for w in x.weights}
    for made in (layer, copy):
        made(case.inputs, **case.others)
        for weight in made.weights:
            kind = weight.name.rpartition("_")[2].replace("taps", "kernel")
            if f"{kind}_initializer" in names and id(weight) not in given:
                assert np.all(weight.numpy() == 0.5), weight.path
        assert any(np.all(w.numpy() == 0.5) for w in made.weights)


@pytest.mark.parametrize("name", CASES)
def test_one_position_is_nothing_to_warn_of(name):
    case = CASES[name]
    inputs, others = tree.map_structure(lambda x: x[:, :1], [case.inputs, case.others])
    others = {name: 0 * x for name, x in others.items()}
    layer = case.make()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        layer(inputs, **others)
        layer(*tree.map_structure(symbolic, [inputs]), **others)
