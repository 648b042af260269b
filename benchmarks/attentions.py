"""The attentions that the benchmarks measure, one layer each, and their step."""

import functools
import math

BLOCK = 128  # Positions in a block of `blockwise`, whatever the length.
RELATIVE = ("shaw", "rpe", "bias", "huang1", "huang2", "huang3", "huang4", "xlnet")
TITLES = {
    "self": "self-attention",
    "partitioned": "Part_Mask",
    "one_head_softmax": "1H_Softmax",
    "one_head_sigmoid": "1H_Sigmoid",
    "part_bias": "Part_Bias",
    "shatter": "Shatter",
    "shaw": "Shaw",
    "rpe": "RPE",
    "bias": "bias for each distance (RAB)",
    "huang1": "method 1",
    "huang2": "method 2",
    "huang3": "method 3",
    "huang4": "method 4",
    "xlnet": "XLNet",
    "blockwise_n2": "BlockBERT, 2 blocks",
    "blockwise_n3": "BlockBERT, 3 blocks",
    "blockwise": f"BlockBERT, blocks of {BLOCK}",
    "sparse": "Sparse Transformer, fixed",
    "lightweight_conv": "lightweight convolution",
    "dynamic_conv": "dynamic convolution",
    "span_dynamic_conv": "span-based dynamic convolution",
    "mixed": "ConvBERT's mixed attention",
    "mixed_separable": "mixed, separable convolution",
}


def attentions(num_heads: int, length: int) -> dict:
    """Makers of the attentions for a length, by name."""
    from tfeff import layers

    def one_head(normalizer="sigmoid_l2", bias=False, value=False):
        return functools.partial(
            layers.OneHeadAttention,
            num_heads,
            normalizer=normalizer,
            partition_bias=bias,
            partition_value=value,
        )

    def mixed(convolution):
        return functools.partial(
            layers.MixedAttention, num_heads, convolution=convolution
        )

    makers = {
        "self": functools.partial(layers.SelfAttention, num_heads),
        "partitioned": functools.partial(layers.PartitionedAttention, num_heads),
        "one_head_softmax": one_head("softmax"),
        "one_head_sigmoid": one_head(),
        "part_bias": one_head(bias=True),
        "shatter": one_head(bias=True, value=True),
    }
    for method in RELATIVE:
        distance = None if method in ("bias", "xlnet") else 127
        makers[method] = functools.partial(
            layers.RelativeAttention, num_heads, method, distance
        )
    for name, blocks in (
        ("blockwise_n2", 2),
        ("blockwise_n3", 3),
        ("blockwise", math.ceil(length / BLOCK)),
    ):
        makers[name] = functools.partial(
            layers.BlockwiseAttention, num_heads, head_blocks(num_heads, blocks)
        )
    return makers | {
        "sparse": functools.partial(layers.SparseAttention, num_heads),
        "lightweight_conv": functools.partial(layers.LightweightConv1D, num_heads),
        "dynamic_conv": functools.partial(layers.DynamicConv1D, num_heads),
        "span_dynamic_conv": functools.partial(layers.SpanDynamicConv1D, num_heads),
        "mixed": mixed("span_dynamic"),
        "mixed_separable": mixed("separable"),
    }


def head_blocks(num_heads: int, blocks: int) -> list[int]:
    """Two heads each for the shifts 1 and 2, as far as they exist; the rest shift 0."""
    counts = [0, 2, 2][:blocks] + [0] * (blocks - 3)
    counts[0] = num_heads - sum(counts)
    return counts


def step(layer, weights, state, hidden, cotangent):
    """The output of a layer, and the gradients of its weights and its input."""
    import jax

    def forward(weights, hidden):
        return layer.stateless_call(weights, state, hidden, training=True)[0]

    output, backward = jax.vjp(forward, weights, hidden)
    return output, backward(cotangent)
