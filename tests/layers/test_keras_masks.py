"""Keras' masks of tensors, as those of `Embedding(mask_zero=True)`."""

import inspect
import warnings

import keras
import numpy as np
import pytest
from keras import tree

from tests.checks.pages import python_blocks
from tests.subjects.layers import CASES, LENGTH, WIDTH, symbolic, vectors
from tfeff import layers
from tfeff.compat.layers import keras_mask

VISIBLE = np.arange(LENGTH) < np.array([[6], [4], [1]])
# Their output has other positions than their input, or none.
ENDS = {"LayerwisePooling", "MeanPooling", "PartitionOfUnityMask", "SegmentPooling"}
READS = [
    name
    for name, case in CASES.items()
    if "padding_mask" in inspect.signature(case.make().call).parameters
]
# What Keras' wrappers take.
OF_ONE_TENSOR = [
    name
    for name in READS
    if not CASES[name].others and not isinstance(CASES[name].inputs, list)
]


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def masked(x):
    """Vectors with Keras' mask, false where they are zeros."""
    return tree.map_structure(keras.layers.Masking(), x)


def padded(case):
    return tree.map_structure(lambda x: x * VISIBLE[..., None], case.inputs)


def equal(found, expected):
    for one, other in zip(tree.flatten(found), tree.flatten(expected), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.quick(
    "BlockwiseAttention",
    "MixedAttention",
    "OneHeadAttention",
    "RelativeAttention",
    "LayerwisePooling",
    "TwoStreamBlocks",
)
@pytest.mark.parametrize("name", READS)
def test_the_mask_of_the_input_is_the_padding_mask(name, tmp_path):
    case = CASES[name]
    layer, x = case.make(), padded(case)
    layer(x, **case.others)
    # Without biases, convolutions could not tell zeros from padding.
    layer.set_weights([vectors(*w.shape) for w in layer.weights])
    expected = layer(x, padding_mask=VISIBLE, **case.others)
    unmasked = layer(x, **case.others)
    one, other = tree.flatten(expected)[0], tree.flatten(unmasked)[0]
    assert not np.allclose(one, other)
    equal(layer(masked(x), **case.others), expected)
    # A mask that is given counts.
    ones = np.ones_like(VISIBLE)
    equal(layer(masked(x), padding_mask=ones, **case.others), unmasked)
    if "mask" in inspect.signature(layer.call).parameters:
        equal(layer(masked(x), mask=ones, **case.others), unmasked)

    first, others = tree.map_structure(symbolic, [x, case.others])
    model = keras.Model([first, others], layer(masked(first), **others))
    equal(model([x, case.others]), expected)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    equal(loaded([x, case.others]), expected)


@pytest.mark.parametrize("times", [2, None])
@pytest.mark.parametrize("name", OF_ONE_TENSOR)
def test_each_time_has_its_mask(name, times):
    case = CASES[name]
    layer, x = case.make(), padded(case)
    layer(x)
    layer.set_weights([vectors(*w.shape) for w in layer.weights])
    apart = [
        layer(x, padding_mask=VISIBLE),
        layer(x[::-1], padding_mask=VISIBLE[::-1]),
    ]
    together = np.stack([x, x[::-1]], axis=1)
    wrapper = keras.layers.TimeDistributed(layer)
    inputs = keras.Input((times, *x.shape[1:]))
    model = keras.Model(inputs, wrapper(masked(inputs)))
    for found in (wrapper(masked(together)), model(together)):
        np.testing.assert_allclose(found, np.stack(apart, axis=1), atol=1e-6)


@pytest.mark.parametrize("name", OF_ONE_TENSOR)
def test_a_mask_is_no_input_of_a_model(name):
    case = CASES[name]
    hidden = masked(symbolic(case.inputs))
    layer = case.make()
    part = keras.Model(hidden, layer(hidden))
    equal(part(case.inputs), layer(case.inputs))


@pytest.mark.parametrize("name", CASES)
def test_a_mask_goes_on_as_long_as_there_are_positions(name):
    case = CASES[name]

    def marked(x):
        x = keras.ops.convert_to_tensor(x)
        x._keras_mask = keras.ops.convert_to_tensor(VISIBLE)
        return x

    outputs = case.make()(tree.map_structure(marked, case.inputs), **case.others)
    output, *rest = tree.flatten(outputs)
    assert all(keras_mask(x) is None for x in rest)
    assert (keras_mask(output) is None) == (name in ENDS)
    if name not in ENDS:
        np.testing.assert_array_equal(keras_mask(output), VISIBLE)


@pytest.mark.parametrize("memory_efficient", [False, "attention", "block"])
def test_padding_changes_nothing_in_a_sequential_model(memory_efficient):
    block = layers.EncoderBlock(
        layers.SelfAttention(2),
        layers.FeedForward(12),
        memory_efficient=memory_efficient,
    )
    model = keras.Sequential(
        [
            keras.layers.Embedding(9, WIDTH, mask_zero=True),
            layers.OneHeadAttention(2),
            block,
            layers.GroupedDense(6, 2),
            layers.MeanPooling(),
        ]
    )
    expected = model(np.array([[3, 4, 5]]))
    ids = np.array([[3, 4, 5, 0, 0]])
    for found in (
        model(ids),
        model(ids, training=True),
        model.predict(ids, verbose=0),
    ):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_padding_changes_nothing_in_the_example_of_the_page():
    names = {}
    example = python_blocks("docs/LAYERS.md")[0]
    exec(example, names)
    ids = np.array([[5, 6, 7]])
    found = names["model"](np.pad(ids, ((0, 0), (0, 3))))
    np.testing.assert_allclose(found, names["model"](ids), atol=1e-6)
