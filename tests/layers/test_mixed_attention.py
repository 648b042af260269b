"""ConvBERT's mixed attention against its equation 6."""

from functools import partial

import keras
import numpy as np
import pytest

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
from tests.reference import batched, mixed_attention
from tfeff.layers import MixedAttention

KINDS = ("span_dynamic", "dynamic", "lightweight", "separable")
VISIBLE = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1]])


def reference(kind, heads, mask_conv=True):
    literal = batched(
        partial(mixed_attention, num_heads=heads, kind=kind, mask_conv=mask_conv)
    )
    if kind != "separable":
        return literal
    # Its bias is added even if nothing is visible, which checks of scores forbid.
    return lambda *arguments: literal(*arguments)[:1]


def randomized(num_heads=4, hidden_dim=8, **options):
    layer = MixedAttention(num_heads, **options)
    layer.build((None, None, hidden_dim))
    randomize(variables_of(layer))
    return layer


def inputs_of(batch, length, size=8, dtype="float32"):
    return np.random.default_rng(0).normal(size=(batch, length, size)).astype(dtype)


@pytest.mark.quick("dynamic")
@pytest.mark.parametrize("kind", KINDS)
def test_layer(kind):
    """Four heads, of which the bottleneck leaves two of either kind."""
    make = partial(MixedAttention, 4, kernel_size=3, convolution=kind)
    if kind in ("span_dynamic", "separable"):
        check_layer(make, reference(kind, 2))
    else:
        check_equations(make, reference(kind, 2), hidden_dim=4)


@pytest.mark.quick("1-2-1")
@pytest.mark.parametrize(
    "num_heads, head_ratio, heads", [(1, 2, 1), (2, 1, 2), (2, 2, 1), (4, 4, 1)]
)
def test_equations_of_other_bottlenecks(num_heads, head_ratio, heads):
    make = partial(MixedAttention, num_heads, head_ratio=head_ratio, kernel_size=3)
    check_equations(make, reference("span_dynamic", heads), hidden_dim=4)


def test_equations_of_the_bottleneck_alone():
    make = partial(MixedAttention, 4, convolution="none")
    check_equations(make, reference("none", 2), hidden_dim=4)


@pytest.mark.parametrize("kind", ["span_dynamic", "separable"])
def test_images_in_another_format_change_nothing(kind):
    """Keras has a format of images for all convolutions."""
    hidden = inputs_of(2, 8)
    options = {"kernel_size": 3, "convolution": kind}
    expected = randomized(**options)(hidden)
    before = keras.config.image_data_format()
    keras.config.set_image_data_format("channels_first")
    try:
        found = randomized(**options)(hidden)
    finally:
        keras.config.set_image_data_format(before)
    np.testing.assert_array_equal(found, expected)


def test_defaults_are_those_of_convbert():
    """Ratio 2, nine taps, span-based dynamic convolution, masked."""
    layer = randomized()
    assert variables_of(layer)["convolution/kernel/kernel"].shape == (4, 2 * 9)
    hidden = inputs_of(4, 5)
    expected = reference("span_dynamic", 2)(
        hidden.astype("float64"), VISIBLE, arrays_of(variables_of(layer))
    )
    output = layer(hidden, padding_mask=VISIBLE, return_attention_scores=True)
    for actual, literal in zip(output, expected):
        assert_close(actual, literal, 1e-5)


@pytest.mark.quick("lightweight")
@pytest.mark.parametrize("kind", KINDS)
def test_without_mask_conv_padding_leaks_into_the_convolution(kind):
    """The attention heads keep their mask. Values and gradients."""
    options = {"kernel_size": 3, "convolution": kind, "dtype": "float64"}
    layer = randomized(hidden_dim=4, **options, mask_conv=False)
    hidden = inputs_of(4, 5, 4, dtype="float64")
    call = partial(layer, padding_mask=VISIBLE)
    leaky = reference(kind, 2, mask_conv=False)

    def literal(arrays):
        return leaky(arrays["hidden"], VISIBLE, arrays)[0]

    named = variables_of(layer)
    assert_close(call(hidden), literal({**arrays_of(named), "hidden": hidden}), 1e-10)
    check_gradients(call, literal, named, {"hidden": hidden})
    masked = randomized(hidden_dim=4, **options)
    assert_close(layer(hidden), masked(hidden), 1e-12)
    difference = np.abs(call(hidden) - masked(hidden, padding_mask=VISIBLE))
    assert difference[VISIBLE == 1].max() > 1e-2


def test_scores_are_those_of_the_attention_heads():
    layer = randomized(kernel_size=3, convolution="separable")
    hidden = inputs_of(4, 5)
    expected = batched(partial(mixed_attention, num_heads=2, kind="separable"))(
        hidden.astype("float64"), VISIBLE, arrays_of(variables_of(layer))
    )
    output = layer(hidden, padding_mask=VISIBLE, return_attention_scores=True)
    for actual, literal in zip(output, expected):
        assert_close(actual, literal, 1e-5)
    assert output[1].shape == (4, 2, 5, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_is_shift_invariant(kind):
    layer = randomized(kernel_size=3, convolution=kind)
    hidden = inputs_of(4, 5)
    shifted = layer(
        np.pad(hidden, ((0, 0), (3, 0), (0, 0)), constant_values=9.0),
        padding_mask=np.pad(VISIBLE, ((0, 0), (3, 0))),
    )
    expected = np.asarray(layer(hidden, padding_mask=VISIBLE))
    visible = VISIBLE == 1
    assert_close(np.asarray(shifted)[:, 3:][visible], expected[visible], 1e-5)


def shapes(kernel_size=3, **options):
    named = variables_of(randomized(kernel_size=kernel_size, **options))
    return {name: tuple(v.shape) for name, v in named.items()}


def test_weights():
    attention = {f"{name}/kernel": (8, 4) for name in ("query", "key", "value")}
    attention |= {f"{name}/bias": (4,) for name in ("query", "key", "value")}
    attention |= {"output/kernel": (8, 8), "output/bias": (8,)}
    value = {"convolution/value/kernel": (8, 4), "convolution/value/bias": (4,)}
    taps = {"convolution/kernel/kernel": (4, 6), "convolution/kernel/bias": (6,)}
    span = {
        "convolution/span_key/depthwise_kernel": (3, 8, 1),
        "convolution/span_key/pointwise_kernel": (1, 8, 4),
        "convolution/span_key/bias": (4,),
    }
    assert shapes() == attention | value | taps | span
    assert shapes(convolution="dynamic") == attention | value | taps
    light = {"convolution/taps": (2, 3)}
    assert shapes(convolution="lightweight") == attention | value | light
    assert shapes(convolution="separable") == attention | {
        name.replace("span_key/", ""): shape for name, shape in span.items()
    }
    bottleneck = attention | {"output/kernel": (4, 8)}
    assert shapes(kernel_size=9, convolution="none") == bottleneck
    # A single head stays whole, whatever the ratio.
    one = shapes(num_heads=1)
    assert one["query/kernel"] == (8, 8) and one["output/kernel"] == (16, 8)
    assert shapes(head_ratio=1)["output/kernel"] == (16, 8)
    assert shapes(head_ratio=4)["output/kernel"] == (4, 8)


@pytest.mark.parametrize("kind", KINDS)
def test_never_unfolds_the_sequence(kind):
    """The scores are [B, N, T, T]; no other tensor comes near K T D elements."""
    length, size, taps = 24, 64, 21
    layer = MixedAttention(4, kernel_size=taps, convolution=kind)
    hidden = inputs_of(1, length, size)
    layer(hidden)
    visible = np.arange(length)[None] < length - 3
    largest = largest_tensor(layer, layer.trainable_variables, hidden, visible)
    weights = size * size
    assert (
        largest <= max(weights, 2 * (length + taps) * size) < taps * length * size / 4
    )


@pytest.mark.parametrize(
    "arguments, name",
    [
        ({"num_heads": 0}, "num_heads"),
        ({"num_heads": 2.0}, "num_heads"),
        ({"head_ratio": 0}, "head_ratio"),
        ({"head_ratio": 1.5}, "head_ratio"),
        ({"head_ratio": 3}, "head_ratio"),
        ({"head_ratio": 8}, "head_ratio"),
        ({"kernel_size": 4}, "kernel_size"),
        ({"kernel_size": 0}, "kernel_size"),
        ({"convolution": "conventional"}, "convolution"),
        ({"convolution": None}, "convolution"),
        ({"dropout": 1.0}, "dropout"),
    ],
)
def test_names_a_bad_argument(arguments, name):
    with pytest.raises((ValueError, TypeError), match=f"`{name}` must .*Received: "):
        MixedAttention(**{"num_heads": 4, **arguments})


def test_heads_must_divide_the_hidden_size():
    with pytest.raises(ValueError, match="`num_heads` must divide.*num_heads=6.*dim=8"):
        MixedAttention(6)(inputs_of(1, 2))
