"""Relative positions in attention against the equations, and their laws."""

from functools import partial

import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import (
    arrays_of,
    assert_close,
    check_equations,
    check_gradients,
    check_layer,
    randomize,
    variables_of,
)
from tests.checks.programs import largest_tensor
from tests.reference import batched, relative_attention
from tfeff.layers import RelativeAttention, RelativeEmbedding, SelfAttention

TABLES = ("shaw", "rpe", "bias", "huang1", "huang2", "huang3", "huang4")
METHODS = (*TABLES, "xlnet")
# By method: settings that clip at distances below 7. T5 has a bucket for 0 and 1 each.
CLIPPED = {method: {"max_distance": 2} for method in METHODS}
CLIPPED["bias"] = {"max_distance": 5, "num_buckets": 8}
BIASES = ("content_bias", "position_bias", "segment_bias")


def check(check, method, num_heads=2, **options):
    reference = partial(
        relative_attention, num_heads=num_heads, method=method, **options
    )
    check(
        partial(RelativeAttention, num_heads, method, **options),
        batched(reference),
        # The finite differences of a wider layer take seconds.
        hidden_dim=4 if check is check_equations else 8,
    )


def randomized(num_heads=2, method="shaw", **options):
    layer = RelativeAttention(num_heads, method, **options)
    layer.build((None, None, 8))
    randomize(variables_of(layer))
    return layer


def inputs_of(batch, length, size=8):
    return np.random.default_rng(0).normal(size=(batch, length, size)).astype("float32")


VISIBLE = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)


@pytest.mark.quick("huang1", "shaw")
@pytest.mark.parametrize("method", METHODS)
def test_layer(method):
    """Methods 1 and 2 are made like method 3, Shaw's like method 4."""
    alike = method in ("huang1", "huang2", "shaw")
    check(check_equations if alike else check_layer, method, **CLIPPED[method])


@pytest.mark.quick("shaw", "huang3")
@pytest.mark.parametrize("method", ["shaw", "huang1", "huang2", "huang3", "huang4"])
def test_equations_of_heads_that_share_a_table(method):
    check(check_equations, method, max_distance=3, shared_heads=True)


@pytest.mark.quick("shaw", "huang1")
@pytest.mark.parametrize("method", ["shaw", "rpe", "huang1", "huang4"])
def test_equations_not_clipped(method):
    check(check_equations, method, max_distance=7)


@pytest.mark.quick("1-interleaved")
@pytest.mark.parametrize("num_heads, layout", [(1, "interleaved"), (4, "concatenated")])
def test_equations_of_xlnet_not_clipped(num_heads, layout):
    options = {"max_distance": None, "sinusoid": layout}
    check(check_equations, "xlnet", num_heads, **options)


@pytest.mark.slow
@pytest.mark.parametrize("max_distance", [None, 2])
def test_xlnet_without_biases(max_distance):
    """Huang, section 3.4: all checks of a layer."""
    check(check_layer, "xlnet", max_distance=max_distance, query_bias=False)


def test_xlnet_without_biases_has_those_of_zero():
    """Also with segments, whose bias is one of the queries, too."""
    options = {"method": "xlnet", "relative_segments": True, "dtype": "float64"}
    layer = randomized(**options)
    without = randomized(**options, query_bias=False)
    named = variables_of(layer)
    assert set(named) - set(variables_of(without)) == set(BIASES)
    for name, variable in variables_of(without).items():
        variable.assign(named[name])
    hidden, segments = inputs_of(2, 5), np.array([[0, 0, 1, 1, 2], [0, 1, 0, 1, 1]])
    call = {"padding_mask": VISIBLE, "segment_ids": segments}
    actual = np.asarray(without(hidden, **call))
    assert np.abs(layer(hidden, **call) - actual).max() > 1e-3
    for name in BIASES:
        named[name].assign(np.zeros((2, 4)))
    assert_close(layer(hidden, **call), actual, 1e-12)


def test_one_head():
    check(check_equations, "shaw", num_heads=1, max_distance=1)


def test_heads_of_size_one():
    check(check_equations, "huang4", num_heads=4, max_distance=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "layout, query_bias",
    [("interleaved", True), ("concatenated", True), ("interleaved", False)],
)
def test_relative_segments(layout, query_bias):
    """Values and gradients; segment ids are not only 0 and 1."""
    visible = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 0]], bool)
    segments = np.array([[0, 0, 1, 2], [5, 1, 5, 3], [0, 1, 0, 1]], "int32")
    hidden = inputs_of(*visible.shape).astype("float64")

    def reference(arrays):
        return np.stack(
            [
                relative_attention(
                    arrays["hidden"][b],
                    visible[b],
                    arrays,
                    2,
                    "xlnet",
                    max_distance=None,
                    sinusoid=layout,
                    segment_ids=segments[b],
                    query_bias=query_bias,
                )[0]
                for b in range(3)
            ]
        )

    layer = RelativeAttention(
        *(2, "xlnet"),
        sinusoid=layout,
        relative_segments=True,
        query_bias=query_bias,
        dtype="float64",
    )
    call = partial(layer, padding_mask=visible, segment_ids=segments)
    call(hidden)
    randomize(variables_of(layer))
    expected = reference({**arrays_of(variables_of(layer)), "hidden": hidden})
    assert_close(call(hidden), expected, 1e-10)
    check_gradients(call, reference, variables_of(layer), {"hidden": hidden})


def test_only_equality_of_segments_counts():
    layer = randomized(method="xlnet", relative_segments=True)
    hidden = inputs_of(2, 5)
    segments = np.array([[0, 0, 1, 1, 2], [0, 1, 0, 1, 1]])
    renamed = np.array([[7, 7, 0, 0, 3], [4, 2, 4, 2, 2]])
    output = layer(hidden, segment_ids=segments)
    np.testing.assert_array_equal(layer(hidden, segment_ids=renamed), output)
    one = layer(hidden, segment_ids=np.zeros((2, 5), int))
    assert np.abs(output - one).max() > 1e-2


def test_weights():
    def shapes(*args, **kwargs):
        layer = randomized(*args, **kwargs)
        named = {n: tuple(v.shape) for n, v in variables_of(layer).items()}
        for name in ("query", "key", "value", "output"):
            assert named.pop(f"{name}/kernel") == (8, 8)
            assert named.pop(f"{name}/bias") == (8,)
        return named

    def table(*shape):
        return {"relative/embeddings": shape}

    for method, per_head, shared in (
        ("shaw", (7, 2, 4), (7, 4)),
        ("huang1", (4, 2), (4,)),
        ("huang2", (7, 2), (7,)),
        ("huang3", (7, 2, 4), (7, 4)),
        ("huang4", (7, 2, 4), (7, 4)),
    ):
        arguments = {"method": method, "max_distance": 3}
        assert shapes(**arguments) == table(*per_head)
        assert shapes(**arguments, shared_heads=True) == table(*shared)
    # The published sizes are the defaults: 255 rows, 32 buckets, and all distances of
    # Huang's 512 tokens.
    assert shapes(method="rpe") == table(255, 8)
    assert shapes(method="shaw") == table(255, 2, 4)
    assert shapes(method="huang1") == table(512, 2)
    assert shapes(method="huang2") == table(1023, 2)
    assert shapes(method="huang3") == table(1023, 2, 4)
    assert shapes(method="huang4") == table(1023, 2, 4)
    assert shapes(method="bias") == table(32, 2)
    assert shapes(method="bias", num_buckets=8) == table(8, 2)
    xlnet = {
        "relative/kernel": (8, 8),
        "content_bias": (2, 4),
        "position_bias": (2, 4),
    }
    assert shapes(method="xlnet") == xlnet
    segments = {"segment_bias": (2, 4), "segment_embeddings": (2, 2, 4)}
    assert shapes(method="xlnet", relative_segments=True) == xlnet | segments
    bare = {n: x for n, x in (xlnet | segments).items() if n not in BIASES}
    assert shapes(method="xlnet", relative_segments=True, query_bias=False) == bare


@pytest.mark.quick("shaw-False", "huang2-False", "huang4-False")
@pytest.mark.parametrize("shared_heads", [False, True])
@pytest.mark.parametrize("method", ["shaw", "huang1", "huang2", "huang3", "huang4"])
@settings(max_examples=4)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 2**16))
def test_a_neutral_table_is_plain_attention(method, shared_heads, k, length, seed):
    """Ones where the table multiplies, zeros where it is added."""
    layer = randomized(method=method, max_distance=k, shared_heads=shared_heads)
    plain = SelfAttention(2)
    plain.build((None, None, 8))
    for name, variable in variables_of(plain).items():
        variable.assign(variables_of(layer)[name])
    table = variables_of(layer)["relative/embeddings"]
    neutral = np.zeros if method in ("shaw", "huang4") else np.ones
    table.assign(neutral(table.shape))
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(2, length, 8)).astype("float32")
    visible = rng.random((2, length)) < 0.7
    for expected, actual in zip(
        plain(hidden, padding_mask=visible, return_attention_scores=True),
        layer(hidden, padding_mask=visible, return_attention_scores=True),
    ):
        assert_close(actual, expected, 1e-5)


@pytest.mark.parametrize("method", TABLES)
def test_initial_table(method):
    """Factors are 1; what is added is small, and not zero."""
    layer = RelativeAttention(2, method)
    layer.build((None, None, 8))
    table = variables_of(layer)["relative/embeddings"].numpy()
    if method in ("huang1", "huang2", "huang3"):
        assert (table == 1.0).all()
    else:
        assert 0.01 < table.std() < 0.03 and np.abs(table).max() < 0.1


@settings(max_examples=10)
@given(st.integers(1, 9), st.integers(1, 7), st.booleans(), st.integers(0, 2**16))
def test_both_forms_of_method_4_agree(k, length, shared_heads, seed):
    """Equation 16, equation 17 and the layer."""
    layer = randomized(
        method="huang4", max_distance=k, shared_heads=shared_heads, dtype="float64"
    )
    rng = np.random.default_rng(seed)
    hidden, visible = rng.normal(size=(2, length, 8)), rng.random((2, length)) < 0.7
    arguments = (hidden, visible, arrays_of(variables_of(layer)))
    options = {"num_heads": 2, "max_distance": k, "shared_heads": shared_heads}
    forms = [
        batched(partial(relative_attention, method=method, **options))(*arguments)
        for method in ("huang4", "huang4, equation 17")
    ]
    output = layer(hidden, padding_mask=visible, return_attention_scores=True)
    for sixteen, seventeen, actual in zip(*forms, output):
        assert_close(sixteen, seventeen, 1e-12)
        assert_close(actual, seventeen, 1e-10)


@pytest.mark.parametrize("method", METHODS)
def test_is_shift_invariant(method):
    """Padding in front moves the outputs and changes none."""
    layer = randomized(method=method, **CLIPPED[method])
    hidden = inputs_of(2, 5)
    expected = layer(hidden, padding_mask=VISIBLE)
    for shift in (1, 4):
        shifted = layer(
            np.pad(hidden, ((0, 0), (shift, 0), (0, 0)), constant_values=9.0),
            padding_mask=np.pad(VISIBLE, ((0, 0), (shift, 0))),
        )
        assert_close(shifted[:, shift:], expected, 1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_knows_the_order(method):
    layer = randomized(method=method, **CLIPPED[method])
    hidden, order = inputs_of(2, 5), [3, 0, 4, 1, 2]
    permuted, output = layer(hidden[:, order]), np.asarray(layer(hidden))[:, order]
    assert np.abs(permuted - output).max() > 1e-2 * np.abs(output).max()


@pytest.mark.parametrize("method", [m for m in TABLES if m != "bias"])
def test_lengths_beyond_the_table_reuse_its_end_rows(method):
    layer = randomized(method=method, max_distance=2)
    longer = randomized(method=method, max_distance=30)
    for name, variable in variables_of(longer).items():
        values = variables_of(layer)[name].numpy()
        if name == "relative/embeddings":
            before = 0 if method == "huang1" else 28
            edges = ((before, 28), *[(0, 0)] * (values.ndim - 1))
            values = np.pad(values, edges, mode="edge")
        variable.assign(values)
    hidden = inputs_of(2, 31)
    assert_close(layer(hidden), longer(hidden), 1e-5)


@pytest.mark.parametrize("method", ["shaw", "rpe", "huang4", "xlnet"])
def test_no_vector_for_every_pair_is_ever_made(method):
    """Tensors of B N T 2T elements are needed, T T H are not."""
    num_heads, size, length = 2, 16, 64
    layer = RelativeAttention(num_heads, method, max_distance=20)
    hidden = inputs_of(1, length, num_heads * size)
    layer(hidden)
    largest = largest_tensor(layer, layer.trainable_variables, hidden)
    scores = num_heads * length * length
    assert scores <= largest <= 2.5 * scores < length * length * size / 2


@pytest.mark.slow
def test_long_sequences_in_half_precision():
    hidden = inputs_of(1, 300)
    for method in METHODS:
        options = CLIPPED[method]
        expected = np.asarray(
            randomized(method=method, dtype="float64", **options)(hidden)
        )
        for dtype, tolerance in (("mixed_float16", 0.01), ("mixed_bfloat16", 0.06)):
            layer = randomized(method=method, dtype=dtype, **options)
            error = np.abs(np.asarray(layer(hidden), "float64") - expected).max()
            assert error <= tolerance * np.abs(expected).max(), (method, dtype, error)


def test_layers_can_share_one_embedding():
    """The bias of T5: one table, and its gradient is the sum."""
    shared = RelativeEmbedding(128, shape=(2,), index="t5")
    layers = [RelativeAttention(2, "bias", relative_embedding=shared) for _ in range(2)]
    hidden = inputs_of(2, 5)
    for layer in layers:
        layer(hidden)
        assert layer.relative_embedding is shared
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, layers[1](layers[0](inputs)))
    assert sum("embeddings" in v.path for v in model.weights) == 1
    own = RelativeAttention(2, "bias")
    own(hidden)
    for name, variable in variables_of(own).items():
        source = variables_of(layers[0]).get(name, shared.embeddings)
        variable.assign(source)
    assert_close(layers[0](hidden), own(hidden), 1e-6)
    before = np.asarray(layers[1](hidden))
    shared.embeddings.assign_add(np.arange(64.0).reshape(32, 2))
    assert np.abs(layers[1](hidden) - before).max() > 1e-3


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"num_heads": 0}, "num_heads"),
        ({"method": "huang5"}, "method"),
        ({"method": None}, "method"),
        ({"max_distance": 0}, "max_distance"),
        ({"max_distance": -3}, "max_distance"),
        ({"max_distance": 1.5}, "max_distance"),
        ({"method": "xlnet", "max_distance": 0}, "max_distance"),
        ({"method": "bias", "num_buckets": 5}, "num_buckets"),
        # They would have no effect.
        ({"method": "shaw", "num_buckets": 8}, "num_buckets"),
        ({"method": "bias", "sinusoid": "concatenated"}, "sinusoid"),
        ({"method": "bias", "max_distance": 8}, "max_distance"),
        ({"method": "xlnet", "sinusoid": "cosine"}, "sinusoid"),
        ({"relative_segments": True}, "relative_segments"),
        ({"query_bias": False}, "query_bias"),
        ({"method": "rpe", "shared_heads": True}, "shared_heads"),
        ({"relative_embedding": np.zeros((3, 2))}, "relative_embedding"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_names_a_bad_argument(arguments, name):
    arguments = {"num_heads": 2, "method": "shaw", **arguments}
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        RelativeAttention(**arguments)


def test_method_1_is_not_clipped_up_to_512_tokens():
    """Section 3.5.1; the last of its 512 rows is the distance 511."""
    layer = randomized(method="huang1")
    hidden = inputs_of(1, 512)
    _, before = layer(hidden, return_attention_scores=True)
    table = layer.relative_embedding.embeddings
    table.assign(np.asarray(table) + 3.0 * (np.arange(512)[:, None] == 511))
    _, after = layer(hidden, return_attention_scores=True)
    moved = np.abs(after - before)[0].max(axis=(0, 2)) > 1e-7
    assert np.flatnonzero(moved).tolist() == [0, 511]


def test_a_layer_that_was_saved_with_another_default_keeps_it():
    old = RelativeAttention(2, "huang1", 127).get_config()
    del old["query_bias"]
    assert RelativeAttention.from_config(old).max_distance == 127


def test_method_and_number_of_heads_must_be_given():
    with pytest.raises(TypeError, match="method"):
        RelativeAttention(2)


def test_names_bad_input():
    hidden = inputs_of(2, 5)
    with pytest.raises(ValueError, match="`num_heads` must divide.*num_heads=3.*dim=8"):
        RelativeAttention(3, "shaw")(hidden)
    layer = RelativeAttention(2, "xlnet", relative_segments=True)
    for bad in (
        None,
        np.zeros((2, 4), int),
        np.zeros((2, 5)),
        np.zeros((2, 5, 1), int),
    ):
        with pytest.raises((ValueError, TypeError), match="`segment_ids` .*must .*Rec"):
            layer(hidden, segment_ids=bad)


def test_a_shared_embedding_must_fit():
    other = RelativeEmbedding(128, shape=(3,), index="t5")
    with pytest.raises(ValueError, match="`relative_embedding` must .*Received: "):
        RelativeAttention(2, "bias", relative_embedding=other)(inputs_of(2, 5))


@pytest.mark.parametrize(
    ("name", "method", "options", "table"),
    [
        ("max_distance", "huang4", {"max_distance": 3}, {"max_distance": 7}),
        ("max_distance", "bias", {"max_distance": 64}, {"index": "t5"}),
        ("num_buckets", "bias", {"num_buckets": 16}, {"index": "t5"}),
        ("relative_embedding", "huang1", {}, {}),
        ("relative_embedding", "huang2", {}, {"index": "distance"}),
        ("relative_embedding", "bias", {}, {}),
        ("relative_embedding", "shaw", {}, {"index": "t5"}),
    ],
)
def test_arguments_that_contradict_a_shared_embedding(name, method, options, table):
    shared = RelativeEmbedding(**{"max_distance": 128, **table})
    with pytest.raises(ValueError, match=f"`{name}` must .*Received: {name}"):
        RelativeAttention(2, method, relative_embedding=shared, **options)


def test_arguments_of_a_shared_embedding_are_those_of_the_layer():
    shared = RelativeEmbedding(64, (2,), index="t5", num_buckets=16)
    layer = RelativeAttention(2, "bias", relative_embedding=shared)
    assert (layer.max_distance, layer.num_buckets) == (64, 16)
    copy = RelativeAttention.from_config(layer.get_config())
    assert (copy.max_distance, copy.num_buckets) == (64, 16)


@pytest.mark.slow
def test_a_shared_embedding_is_shared_in_a_saved_model(tmp_path):
    shared = RelativeEmbedding(3, shape=(2, 4))
    inputs = hidden = keras.Input((None, 8))
    for _ in range(3):
        hidden = RelativeAttention(2, "shaw", 3, relative_embedding=shared)(hidden)
    model = keras.Model(inputs, hidden)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert len(loaded.weights) == len(model.weights)
    x = inputs_of(2, 5)
    np.testing.assert_array_equal(loaded(x), model(x))


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "float64"])
@pytest.mark.parametrize("method", ["shaw", "rpe", "bias"])
def test_a_shared_table_of_another_dtype(method, dtype):
    shape = {"shaw": (2, 4), "rpe": (8,), "bias": (2,)}[method]
    index = "t5" if method == "bias" else "signed"
    table = RelativeEmbedding(16, shape, index)
    layer = RelativeAttention(2, method, relative_embedding=table, dtype=dtype)
    output = layer(np.ones((1, 3, 8)))
    assert output.dtype == layer.compute_dtype


def test_a_configuration_may_leave_defaults_out():
    layer = RelativeAttention.from_config({"num_heads": 2, "method": "shaw"})
    assert layer.get_config().keys() == RelativeAttention(2, "shaw").get_config().keys()
