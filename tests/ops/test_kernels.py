"""Every kernel equals the equation of its name, values and gradients."""

import functools
import inspect
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close, rounding_to_nearest
from tfeff import ops
from tfeff.ops import kernels
from tfeff.ops.kernels.near_far import NearFar, without_gradient


class Entry(NamedTuple):
    """A kernel's arguments, and equation and kernel if not those of its name in `ops`.

    A tensor is given by its axes: b batch, n heads, t queries, s keys, h head size,
    r = t + s relative positions, w windows. All get gradients but those in `CONSTANTS`.
    """

    axes: dict[str, str]
    settings: dict = {}
    equation: Callable | None = None
    kernel: Callable | None = None


def with_count(function):
    """Given the number of queries, that of relative positions less that of keys."""

    def counted(key, rows):
        count = keras.ops.shape(rows)[0] - keras.ops.shape(key)[2]
        return function(key, rows, count)

    return counted


def attend(query, mask, rows, key, value):
    return ops.softmax_values(ops.shaw_scores(query, key, rows), value, mask, rows=rows)


def attend_again(queries, rows, keys, context):
    """With the result of the forward pass, as in a recomputation."""
    (query, mask), (key, value) = queries, keys
    scores = kernels.shaw_scores(query, key, rows)
    return kernels.softmax_values(scores, value, mask, rows=rows, context=context)


def attend_in_blocks(query, mask, rows, key, value, size):
    return kernels.over_query_blocks(
        attend_again, (query, mask), rows, (key, value), value, size
    )


def parted(rows, queries, keys):
    """Rows `[t + W, n]` of near keys, and one part of all keys on either side."""
    queries, keys = (keras.ops.shape(x)[-2] for x in (queries, keys))
    parts = rows.shape[-1]
    left, right = (keras.ops.one_hot([part], parts, dtype=rows.dtype) for part in OUTER)
    first = keras.ops.cast(keys // 4, "int32")
    return NearFar(rows, left, right, first, keys, keras.ops.shape(rows)[0] - queries)


def near_far_scores(function):
    def of_parted(query, key, partition, bias):
        rows = parted(without_gradient(partition), query, key)
        return function(query, key, rows, bias)

    return of_parted


def near_far_values(function):
    def of_parted(scores, value, partition, **arguments):
        rows = parted(without_gradient(partition), scores, value)
        return function(scores, value, rows, **arguments)

    return of_parted


def side_by_side(own_scores, shared_scores, own, shared, mask):
    """The keys of a window and those of all, one after the other; windows as heads."""
    batch, heads, count, rows, keys = keras.ops.shape(own_scores)
    scores = keras.ops.concatenate([own_scores, shared_scores], axis=-1)
    shared = keras.ops.broadcast_to(shared[:, :, None], keras.ops.shape(own))
    values = keras.ops.concatenate([own, shared], axis=-2)
    mask = keras.ops.concatenate([mask[:, :, :1], mask[:, :, -1:]], axis=-1)
    context = ops.softmax_values(
        keras.ops.reshape(scores, (batch, heads * count, rows, 2 * keys)),
        keras.ops.reshape(values, (batch, heads * count, 2 * keys, values.shape[-1])),
        mask,
    )
    return keras.ops.reshape(context, (batch, heads, count, rows, values.shape[-1]))


def by_window(own_scores, shared_scores, own, shared, mask):
    masks = mask[:, :, None, :1], mask[:, :, None, -1:]
    return kernels.window_values((own_scores, shared_scores), (own, shared), masks)


OUTER = 0, 2
QUERIES, KEYS, PAIRS = "bnth", "bnsh", "bnts"
SCORES = dict(query=QUERIES, key=KEYS, rows="rnh")
VALUES = dict(scores=PAIRS, value=KEYS)
PARTS = dict(scores="b1ts", value=KEYS, partition="nts")
ALL = dict(query=QUERIES, mask="b1ts", rows="rnh", key=KEYS, value=KEYS)
# By the name of a kernel, and what is special.
KERNELS = {
    "activated_product": Entry(dict(x="bth", kernel="hn"), dict(activation=ops.gelu)),
    "activated_product, by tanh": Entry(
        dict(x="bth", kernel="hn"), dict(activation=ops.gelu_tanh)
    ),
    "gated_scores": Entry(SCORES),
    "gated_scores, shared": Entry(SCORES | dict(rows="rh")),
    "gelu": Entry(dict(x="bth")),
    "gelu_tanh": Entry(dict(x="bth")),
    "key_products": Entry(
        dict(key=KEYS, rows="rnh"),
        equation=with_count(ops.key_products),
        kernel=with_count(kernels.key_products),
    ),
    "l2_normalized_sigmoid": Entry(dict(scores=PAIRS, mask="b1ts")),
    "masked_softmax": Entry(dict(scores=PAIRS, mask="b1ts")),
    "near_far_one_head_scores": Entry(
        dict(query="b1th", key="b1sh", partition="vn", bias="nh"),
        equation=near_far_scores(
            lambda query, key, rows, bias: ops.one_head_scores(
                query, key, kernels.toeplitz_rows(query, rows), bias
            )
        ),
        kernel=near_far_scores(kernels.near_far_one_head_scores),
    ),
    "near_far_part_values": Entry(
        PARTS | dict(partition="vn", mask="b1ts", keep="b1ts"),
        equation=near_far_values(
            lambda scores, value, rows, **arguments: ops.part_values(
                scores, value, kernels.toeplitz_rows(scores, rows), **arguments
            )
        ),
        kernel=near_far_values(
            lambda scores, value, rows, **arguments: kernels.near_far_part_values(
                scores, value, rows, OUTER, **arguments
            )
        ),
    ),
    "over_query_blocks": Entry(
        ALL, {}, attend, functools.partial(attend_in_blocks, size=6)
    ),
    "over_query_blocks, one block": Entry(
        ALL, {}, attend, functools.partial(attend_in_blocks, size=None)
    ),
    "part_values": Entry(PARTS | dict(mask="b11s", keep="b1ts")),
    "part_values, softmax": Entry(
        PARTS | dict(mask="b1ts"), dict(normalizer="softmax")
    ),
    "part_values, plain": Entry(PARTS),
    "relative_products": Entry(dict(x=QUERIES, rows="rnh")),
    "relative_products, shared": Entry(dict(x=QUERIES, rows="rh")),
    "relative_values": Entry(dict(weights=PAIRS, rows="rnh")),
    # Rows that are near and far are those of `tests/layers/test_near_far.py`.
    "bias_scores": Entry(SCORES | dict(rows="rn")),
    "toeplitz_rows": Entry(dict(query=QUERIES, rows="rn")),
    "pairwise_scores": Entry(SCORES),
    "scaled_scores": Entry(SCORES | dict(rows="rn")),
    "shaw_scores": Entry(SCORES),
    "xlnet_scores": Entry(SCORES | dict(content_bias="nh", position_bias="nh")),
    "xlnet_scores, without biases": Entry(
        SCORES, dict(content_bias=None, position_bias=None)
    ),
    "softmax_values": Entry(
        VALUES | dict(rows="rnh", mask="b1ts", partition="nts", keep=PAIRS)
    ),
    "softmax_values, plain": Entry(VALUES),
    "window_values": Entry(
        dict(
            **dict(own_scores="bnwts", shared_scores="bnwts"),
            **dict(own="bnwsh", shared="bnsh", mask="b1ts"),
        ),
        equation=side_by_side,
        kernel=by_window,
    ),
}
# Numbers of queries and keys: odd, single, in the middle of a sequence, and such that
# kernels take blocks of 128.
ODD, ONE, MIDDLE = (7, 7), (1, 1), (5, 9)
IN_BLOCKS, MIDDLE_IN_BLOCKS = (256, 256), (128, 256)


def sizes_of(batch, count, keys):
    sizes = dict(b=batch, n=3, w=2, t=count, s=keys, h=12)
    near = keys and (keys + 1) // 2
    return sizes | {"r": count and count + keys, "v": near and count + near, "1": 1}


def shape_of(axes, sizes):
    return tuple(sizes[axis] for axis in axes)


def normal(random, shape):
    return random.normal(size=shape)


def visible(random, shape):
    """Ragged, with holes, and one row of the last sequence has no visible key."""
    batch, _, count, keys = shape
    lengths = keys - np.arange(batch) * (keys // 2)
    seen = np.arange(keys) < lengths[:, None, None, None]
    seen = seen & (random.random(shape) < 0.8)
    seen[-1, :, count // 2] = False
    return seen


CONSTANTS = {
    "mask": visible,
    "keep": lambda random, shape: random.random(shape) < 0.7,
    "partition": lambda random, shape: random.random(shape),
}


def equation_of(name):
    entry, name = KERNELS[name], name.split(",")[0]
    return functools.partial(entry.equation or getattr(ops, name), **entry.settings)


def kernel_of(name):
    """`run` of the kernel, to be called or compiled."""
    entry, name = KERNELS[name], name.split(",")[0]
    kernel = entry.kernel or getattr(kernels, name)
    return functools.partial(run, functools.partial(kernel, **entry.settings))


def cast(x, dtype):
    return tf.constant(x) if x.dtype == bool else tf.cast(x, dtype)


def run(function, inputs, dtype="float64"):
    """Results, and the gradients of the inputs for numbers of the dtype at results."""
    floats = [x for name, x in inputs.items() if name not in CONSTANTS]
    with tf.GradientTape() as tape:
        tape.watch(floats)
        results = tf.nest.flatten(function(**inputs))
    upstream = []
    for y in results:
        # As if random, and exactly the same however it is compiled.
        x = tf.range(tf.size(y, tf.int64)) ** 3 % 1013
        x = tf.cast(x, "float64") / 506 - 1
        x = tf.reshape(tf.cast(tf.cast(x, dtype), y.dtype), tf.shape(y))
        upstream.append(tf.ensure_shape(x, y.shape))
    zero = tf.UnconnectedGradients.ZERO
    return [
        *results,
        *tape.gradient(results, floats, upstream, unconnected_gradients=zero),
    ]


def check(name, lengths, kernel, dtype="float64", tolerance=1e-11):
    """Against the equation, in float64, of the same rounded inputs."""
    random, sizes = np.random.default_rng(0), sizes_of(2, *lengths)
    inputs = {}
    for argument, axes in KERNELS[name].axes.items():
        draw = CONSTANTS.get(argument, normal)
        inputs[argument] = cast(draw(random, shape_of(axes, sizes)), dtype)
    precise = {argument: cast(x, "float64") for argument, x in inputs.items()}
    actual = kernel(inputs, dtype)
    assert actual[0].dtype == dtype
    for x, y in zip(actual, run(equation_of(name), precise, dtype), strict=True):
        assert x.shape == y.shape
        if dtype in ("float16", "bfloat16"):
            assert tf.norm(tf.cast(x, "float64") - y) <= tolerance * tf.norm(y)
        else:
            assert_close(x, y, tolerance)


def test_every_kernel_is_here():
    assert {name.split(",")[0] for name in KERNELS} == set(kernels.__all__)


@pytest.mark.parametrize("name", sorted({*kernels.__all__} & {*ops.__all__}))
def test_arguments_are_those_of_the_equation(name):
    kernel = getattr(kernels, name)
    of_kernel, of_equation = (
        [
            str(x.replace(annotation=inspect.Parameter.empty))
            for x in inspect.signature(function).parameters.values()
        ]
        for function in (kernel, getattr(ops, name))
    )
    # A kernel may have the result as one more argument.
    assert of_kernel in (of_equation, [*of_equation, "context=None"])
    assert kernel.__doc__.startswith(f"Equals `tfeff.ops.{name}`")


@pytest.mark.quick(
    "activated_product",
    "gated_scores",
    "gelu",
    "key_products",
    "masked_softmax",
    "near_far_part_values",
    "over_query_blocks, one block",
    "part_values, softmax",
    "relative_products",
    "relative_values",
    "toeplitz_rows",
    "scaled_scores",
    "xlnet_scores",
    "softmax_values",
    "window_values",
)
@pytest.mark.parametrize("name", KERNELS)
def test_eager(name):
    for lengths in (ODD, ONE, MIDDLE, IN_BLOCKS):
        check(name, lengths, kernel_of(name))
    check(name, ODD, kernel_of(name), "float32", 1e-5)


@pytest.mark.quick(
    "activated_product",
    "gated_scores",
    "gelu",
    "key_products",
    "masked_softmax",
    "near_far_part_values",
    "over_query_blocks, one block",
    "part_values, softmax",
    "relative_products",
    "relative_values",
    "toeplitz_rows",
    "scaled_scores",
    "xlnet_scores",
    "softmax_values",
    "window_values",
)
@pytest.mark.parametrize("name", KERNELS)
def test_unknown_lengths(name):
    axes, sizes = KERNELS[name].axes, sizes_of(None, None, None)
    inputs = {
        argument: tf.TensorSpec(
            shape_of(axes[argument], sizes),
            "bool" if argument in ("mask", "keep") else "float64",
        )
        for argument in axes
    }
    kernel = tf.function(kernel_of(name), input_signature=[inputs], autograph=False)
    for lengths in (ODD, ONE, MIDDLE):
        check(name, lengths, lambda inputs, dtype: kernel(inputs))


@pytest.mark.quick(
    "over_query_blocks",
    "part_values",
    "softmax_values",
    "relative_products",
    "gelu",
    "near_far_part_values",
)
@pytest.mark.parametrize("name", KERNELS)
def test_xla(name):
    compiled = tf.function(kernel_of(name), jit_compile=True, autograph=False)
    for lengths in (MIDDLE, MIDDLE_IN_BLOCKS):
        check(name, lengths, compiled)


@pytest.mark.quick(
    "activated_product-float16-0.005",
    "gelu-float16-0.005",
    "l2_normalized_sigmoid-float16-0.005",
    "near_far_part_values-float16-0.005",
    "part_values-float16-0.005",
    "relative_products-float16-0.005",
    "xlnet_scores-float16-0.005",
    "softmax_values-bfloat16-0.015",
)
@pytest.mark.parametrize("dtype, tolerance", [("float16", 5e-3), ("bfloat16", 0.015)])
@pytest.mark.parametrize("name", KERNELS)
def test_half_precision(name, dtype, tolerance):
    kernel = kernel_of(name)
    if dtype == "bfloat16":
        kernel = rounding_to_nearest(kernel)
    for lengths in (ODD, IN_BLOCKS):
        check(name, lengths, kernel, dtype, tolerance)
