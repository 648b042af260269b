"""Self-attention, Part_Mask and one-head attention against the equations."""

import itertools
from functools import partial

import keras
import numpy as np
import pytest

from tests.checks import (
    assert_close,
    check_equations,
    check_layer,
    randomize,
    variables_of,
)
from tests.reference import (
    batched,
    one_head_attention,
    partition_mask,
    partitioned_attention,
    self_attention,
    tent_mask,
)
from tests.subjects.partitions import TENTS
from tfeff.layers import OneHeadAttention, PartitionedAttention, SelfAttention
from tfeff.ops import kernels


def self_reference(num_heads):
    return batched(partial(self_attention, num_heads=num_heads))


def partitioned_reference(num_heads, *place):
    @batched
    def reference(hidden, visible, weights):
        mask = partition_mask(len(hidden), num_heads, *place)
        return partitioned_attention(hidden, visible, weights, num_heads, mask)

    return reference


def one_head_reference(num_parts, normalizer, bias, value, *place, **steps):
    @batched
    def reference(hidden, visible, weights):
        mask = partition_mask(len(hidden), num_parts, *place)
        return one_head_attention(
            hidden, visible, weights, mask, normalizer, bias, value, **steps
        )

    return reference


def one_head(num_parts, normalizer, bias, value, layer_index, num_layers, boundaries):
    return partial(
        OneHeadAttention,
        num_parts,
        normalizer=normalizer,
        partition_bias=bias,
        partition_value=value,
        layer_index=layer_index,
        num_layers=num_layers,
        boundaries=boundaries,
    )


@pytest.mark.parametrize("num_heads", [1, 4])
def test_self_attention(num_heads):
    check = check_layer if num_heads == 4 else check_equations
    check(partial(SelfAttention, num_heads), self_reference(num_heads))


@pytest.mark.slow
def test_partitioned_attention():
    check_layer(
        partial(PartitionedAttention, 4, layer_index=1, num_layers=3),
        partitioned_reference(4, 1, 3),
    )


@pytest.mark.quick("2-0-12-None")
@pytest.mark.parametrize(
    "num_heads, layer_index, num_layers, boundaries",
    [(2, 0, 12, None), (8, 11, 12, None), (4, 0, 1, (-2, 0, 3)), (1, 0, 1, ())],
)
def test_partitioned_attention_of_any_partition(
    num_heads, layer_index, num_layers, boundaries
):
    place = (layer_index, num_layers, boundaries)
    names = ("layer_index", "num_layers", "boundaries")
    check_equations(
        partial(PartitionedAttention, num_heads, **dict(zip(names, place))),
        partitioned_reference(num_heads, *place),
    )


@pytest.mark.quick("sigmoid_l2-True-True-None")
@pytest.mark.parametrize(
    "normalizer, bias, value, boundaries",
    [("sigmoid_l2", True, True, None), ("softmax", True, False, (-1, 1, 2))],
)
def test_one_head_attention(normalizer, bias, value, boundaries):
    arguments = (4, normalizer, bias, value, 1, 3, boundaries)
    check_layer(one_head(*arguments), one_head_reference(*arguments))


@pytest.mark.quick("True-True-sigmoid_l2")
@pytest.mark.parametrize("normalizer", ["softmax", "sigmoid_l2"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("value", [False, True])
def test_one_head_attention_of_every_kind(normalizer, bias, value):
    arguments = (4, normalizer, bias, value, 0, 12, None)
    check_equations(one_head(*arguments), one_head_reference(*arguments))


# Section 3.2, a sentence at a time: arguments, and those of the reference.
STEPS = {
    # "we may replace the tensor Q K^T with the matrix version Q K^T"
    "key": (dict(key_projection=True), dict(keep_key=True)),
    # "reducing V to matrix would hurt valid loss, even with sigmoid"
    "matrix": (dict(values_by_part=False), dict(value_matrix=True)),
    "both": (
        dict(key_projection=True, values_by_part=False),
        dict(keep_key=True, value_matrix=True),
    ),
}


@pytest.mark.quick("matrix-sigmoid_l2-True-False-check_equations")
@pytest.mark.parametrize(
    "step, normalizer, bias, value, checks",
    [
        ("both", "sigmoid_l2", True, True, check_layer),
        ("key", "softmax", False, False, check_equations),
        ("key", "sigmoid_l2", True, True, check_equations),
        ("matrix", "sigmoid_l2", False, False, check_equations),
        ("matrix", "softmax", False, True, check_equations),
        ("matrix", "sigmoid_l2", True, False, check_equations),
    ],
)
def test_steps_between(step, normalizer, bias, value, checks):
    arguments, of_reference = STEPS[step]
    layer = one_head(4, normalizer, bias, value, 1, 3, None)
    reference = one_head_reference(
        4, normalizer, bias, value, 1, 3, None, **of_reference
    )
    checks(partial(layer, **arguments), reference)


def test_scores_without_a_bias_need_no_partition(monkeypatch):
    layer = randomized(OneHeadAttention(4, partition_bias=False))
    hidden = np.ones((1, 3, 8), "float32")
    expansions = []
    original = kernels.toeplitz_rows
    monkeypatch.setattr(
        kernels, "toeplitz_rows", lambda *x: expansions.append(1) or original(*x)
    )
    layer(hidden)
    assert len(expansions) == 1  # For the values.


@pytest.mark.slow
def test_own_constants_and_functions():
    """The partition is that of the arguments, in scores, bias and values."""
    constants = (-2.0, None, 5.0)
    check_equations(
        partial(OneHeadAttention, 6, alpha=-2.0, spacing=5.0, layer_index=1),
        one_head_reference(6, "sigmoid_l2", True, True, 1, 12, None, *constants),
        hidden_dim=6,
    )
    check_equations(
        partial(PartitionedAttention, 6, beta=-0.3),
        partitioned_reference(6, 0, 12, None, None, -0.3),
        hidden_dim=6,
    )

    @batched
    def tents(hidden, visible, weights):
        mask = tent_mask(len(hidden), 3, 1.5)
        return one_head_attention(
            hidden, visible, weights, mask, "sigmoid_l2", True, True
        )

    check_equations(partial(OneHeadAttention, 3, partition=TENTS), tents, hidden_dim=6)


@pytest.mark.parametrize(
    "num_parts, layer_index, num_layers, boundaries",
    [(2, 0, 12, None), (6, 4, 5, None), (3, 0, 12, (0, 1))],
)
def test_shatter_of_any_partition(num_parts, layer_index, num_layers, boundaries):
    place = (layer_index, num_layers, boundaries)
    arguments = (num_parts, "sigmoid_l2", True, True, *place)
    check_equations(one_head(*arguments), one_head_reference(*arguments), hidden_dim=6)


def test_one_head_defaults_are_the_first_layer_of_shatter():
    check_equations(
        partial(OneHeadAttention, 4),
        one_head_reference(4, "sigmoid_l2", True, True, 0, 12, None),
    )


def shapes(layer, hidden_dim=8):
    layer.build((None, None, hidden_dim))
    return {name: tuple(v.shape) for name, v in variables_of(layer).items()}


def test_weights():
    def dense(*names):
        kernels = {f"{name}/kernel": (8, 8) for name in names}
        return kernels | {f"{name}/bias": (8,) for name in names}

    four = dense("query", "key", "value", "output")
    assert shapes(SelfAttention(2)) == four
    assert shapes(PartitionedAttention(2)) == four
    three = dense("query", "value", "output")
    plain = OneHeadAttention(2, partition_bias=False, partition_value=False)
    assert shapes(plain) == three
    embeddings = {"partition_embeddings": (4, 8)}
    assert shapes(OneHeadAttention(4)) == three | embeddings
    assert shapes(OneHeadAttention(4, partition_value=False)) == three | embeddings
    # The steps of section 3.2: one matrix more for the keys, and none for the values.
    assert shapes(OneHeadAttention(4, key_projection=True)) == four | embeddings
    assert shapes(OneHeadAttention(4, values_by_part=False)) == three | embeddings


@pytest.mark.parametrize(
    "layer", [PartitionedAttention(4, 1, 3), OneHeadAttention(4, boundaries=[-1, 0, 2])]
)
def test_configurations_of_earlier_versions(layer):
    """They have none of the newer arguments."""
    newer = ("alpha", "beta", "spacing", "partition", "key_projection")
    config = layer.get_config()
    earlier = {
        name: value
        for name, value in config.items()
        if name not in (*newer, "values_by_part")
    }
    assert type(layer).from_config(earlier).get_config() == config


def randomized(layer, hidden_dim=8):
    layer.build((None, None, hidden_dim))
    randomize(variables_of(layer))
    return layer


LAYERS = {
    "self": partial(SelfAttention, 2),
    "partitioned": partial(PartitionedAttention, 4),
    "shatter": partial(OneHeadAttention, 4),
    "one head": partial(
        OneHeadAttention, 4, "softmax", partition_bias=False, partition_value=False
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_is_shift_invariant(name):
    """Padding in front moves the outputs and changes none."""
    layer = randomized(LAYERS[name]())
    hidden = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    visible = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)
    shifted = layer(
        np.pad(hidden, ((0, 0), (3, 0), (0, 0)), constant_values=9.0),
        padding_mask=np.pad(visible, ((0, 0), (3, 0))),
    )
    assert_close(shifted[:, 3:], layer(hidden, padding_mask=visible), 1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_only_the_partition_knows_the_order(name):
    layer = randomized(LAYERS[name]())
    hidden = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    order = [3, 0, 4, 1, 2]
    permuted, output = layer(hidden[:, order]), np.asarray(layer(hidden))[:, order]
    if name == "self":
        assert_close(permuted, output, 1e-5)
    else:
        assert np.abs(permuted - output).max() > 1e-2 * np.abs(output).max()


@pytest.mark.parametrize("name", LAYERS)
def test_half_precision_over_many_positions(name):
    """Sums over hundreds of keys keep the accuracy of the inputs."""
    hidden = np.random.default_rng(0).normal(size=(1, 300, 8)).astype("float32")
    expected = np.asarray(randomized(LAYERS[name](dtype="float64"))(hidden))
    for dtype, tolerance in (("mixed_float16", 0.01), ("mixed_bfloat16", 0.06)):
        output = np.asarray(randomized(LAYERS[name](dtype=dtype))(hidden), "float64")
        error = np.abs(output - expected).max()
        assert error <= tolerance * np.abs(expected).max(), (dtype, error)


@pytest.mark.parametrize("name", LAYERS)
def test_one_initializer_gives_different_kernels(name):
    layer = LAYERS[name](kernel_initializer=keras.initializers.RandomNormal())
    layer.build((None, None, 8))
    kernels = [v.numpy() for k, v in variables_of(layer).items() if "kernel" in k]
    for one, other in itertools.combinations(kernels, 2):
        assert not np.allclose(one, other)


def test_a_seed_is_that_of_all_kernels():
    """As in Keras' own attention."""
    seeded = keras.initializers.RandomNormal(seed=1)
    layer = SelfAttention(2, kernel_initializer=seeded)
    keras_layer = keras.layers.MultiHeadAttention(2, 4, kernel_initializer=seeded)
    layer.build((None, None, 8))
    keras_layer.build((1, 1, 8), (1, 1, 8))
    for one in (layer, keras_layer):
        query, key = one.query_dense.kernel, one.key_dense.kernel
        np.testing.assert_array_equal(query, key)


@pytest.mark.parametrize("layer_class", [SelfAttention, PartitionedAttention])
@pytest.mark.parametrize("num_heads", [0, -2, 2.0, "2", None])
def test_names_bad_num_heads(layer_class, num_heads):
    with pytest.raises((ValueError, TypeError), match="`num_heads` must .*Received: "):
        layer_class(num_heads)


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"num_parts": 3}, "num_parts"),
        ({"num_parts": 0}, "num_parts"),
        ({"num_parts": 4.0}, "num_parts"),
        ({"num_parts": 4, "normalizer": "l2"}, "normalizer"),
        ({"num_parts": 4, "normalizer": None}, "normalizer"),
        ({"num_parts": 4, "layer_index": 12}, "layer_index"),
        ({"num_parts": 4, "layer_index": -1}, "layer_index"),
        ({"num_parts": 4, "layer_index": 0.5}, "layer_index"),
        ({"num_parts": 4, "num_layers": 0}, "num_layers"),
        ({"num_parts": 4, "boundaries": (0, 1)}, "boundaries"),
        ({"num_parts": 3, "boundaries": (1, 0)}, "boundaries"),
        ({"num_parts": 3, "boundaries": (0, float("nan"))}, "boundaries"),
        ({"num_parts": 3, "boundaries": "01"}, "boundaries"),
        ({"num_parts": 4, "dropout": 1.0}, "dropout"),
        ({"num_parts": 4, "dropout": -0.1}, "dropout"),
        ({"num_parts": 4, "dropout": "0.1"}, "dropout"),
    ],
)
def test_one_head_names_a_bad_argument(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        OneHeadAttention(**arguments)


def test_partitioned_attention_names_its_heads():
    with pytest.raises(ValueError, match="`num_heads` - 1 .*, num_heads=4$"):
        PartitionedAttention(4, boundaries=[0])


def test_partitioned_attention_names_odd_heads():
    with pytest.raises(ValueError, match="`num_heads` must be even.*num_heads=3"):
        PartitionedAttention(3)


@pytest.mark.parametrize(
    "layer, name",
    [
        (SelfAttention(3), "num_heads"),
        (PartitionedAttention(6), "num_heads"),
        (OneHeadAttention(6), "num_parts"),
    ],
)
def test_heads_must_divide_the_hidden_size(layer, name):
    with pytest.raises(ValueError, match=f"`{name}` must divide.*{name}=.*dim=8"):
        layer(np.zeros((1, 2, 8), "float32"))


@pytest.mark.parametrize("size", [8, 32])
def test_another_hidden_size_than_built_for_is_named(size):
    for layer in (SelfAttention(4), PartitionedAttention(4), OneHeadAttention(4)):
        layer(np.zeros((2, 6, 16), "float32"))
        with pytest.raises(ValueError, match="`hidden` must have a last axis of .*16"):
            layer(np.zeros((2, 6, size), "float32"))
