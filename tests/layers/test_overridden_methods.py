"""What a subclass overrides is computed, whatever kernel its class has."""

import keras
import numpy as np
import pytest

from tfeff import layers
from tfeff.layers.attention import stands_for

ATTENTIONS = {
    "self": (layers.SelfAttention, {"num_heads": 2}),
    "partitioned": (layers.PartitionedAttention, {"num_heads": 2}),
    "shatter": (layers.OneHeadAttention, {"num_parts": 2}),
    "one value": (layers.OneHeadAttention, {"num_parts": 2, "values_by_part": False}),
    "relative": (layers.RelativeAttention, {"num_heads": 2, "method": "huang4"}),
    "rpe": (layers.RelativeAttention, {"num_heads": 2, "method": "shaw"}),
    "blockwise": (layers.BlockwiseAttention, {"num_heads": 2, "head_blocks": (1, 1)}),
    "sparse": (
        layers.SparseAttention,
        {"num_heads": 2, "stride": 4, "expressivity": 2},
    ),
}


class NoWeights:
    """Overrides the weights, which are 0."""

    def attention_weights(self, scores, queries, keys):
        return 0 * super().attention_weights(scores, queries, keys)


class NoValues:
    """Overrides the context vectors, which are 0."""

    def values(self, weights, queries, keys):
        return 0 * super().values(weights, queries, keys)


@pytest.mark.parametrize("query_block_size", [None, 4])
@pytest.mark.parametrize("changed", [NoWeights, NoValues])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_what_is_overridden_is_computed(name, changed, query_block_size):
    cls, arguments = ATTENTIONS[name]
    layer = type(changed.__name__, (changed, cls), {})(
        query_block_size=query_block_size, **arguments
    )
    hidden = keras.random.normal([2, 24, 8], seed=0)
    np.testing.assert_array_equal(layer(hidden), np.zeros([2, 24, 8]))
    _, scores = layer(hidden, return_attention_scores=True)
    assert np.any(scores) == (changed is NoValues)
    unchanged = cls(query_block_size=query_block_size, **arguments)
    assert np.all(np.any(unchanged(hidden), axis=-1))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_kernels_compute_what_is_not_overridden(name):
    cls, arguments = ATTENTIONS[name]
    layer = type("Same", (cls,), {"extra": lambda self: None})(**arguments)
    assert stands_for(layer, "context", ("attention_weights", "values"))
