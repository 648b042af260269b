"""ConvBERT's Table 9: the operations of a layer of base size, 512 tokens."""

import math

import pytest

from tests.checks import variables_of
from tfeff.layers import MixedAttention, SelfAttention

TOKENS, WIDTH, HEADS = 512, 768, 12


@pytest.mark.parametrize(
    ("make", "printed"), [(SelfAttention, 2.6), (MixedAttention, 1.9)]
)
def test_operations_are_those_printed(make, printed):
    """Every number of a kernel meets each token once; `W^O` is left out there."""
    layer = make(HEADS)
    layer.build((None, None, WIDTH))
    kernels = sum(
        math.prod(weight.shape)
        for name, weight in variables_of(layer).items()
        if name.endswith("kernel") and not name.startswith("output")
    )
    width = layer.query_dense.units  # Of the attention heads together.
    pairs = 2 * TOKENS * width  # A token's scores, and its weighted values.
    taps = layer.kernel_size * width if make is MixedAttention else 0
    operations = 2 * TOKENS * (kernels + pairs + taps)
    assert round(operations / 1e9, 1) == printed
