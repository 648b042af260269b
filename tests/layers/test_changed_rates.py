"""A rate of dropout that is changed afterwards, as users of Keras do."""

import keras
import numpy as np
import pytest

from tests.checks import assert_close, randomize
from tests.subjects.backend_layers import ATTENTIONS, WITHOUT_BLOCKS

WITH_DROPOUT = {
    **{name: {} for name in ATTENTIONS},
    **{
        f"{name} in blocks": {"query_block_size": 3}
        for name in ATTENTIONS
        if name not in WITHOUT_BLOCKS
    },
}


@pytest.mark.quick(
    "one_head",
    "partitioned in blocks",
    "xlnet",
    "shaw in blocks",
    "span_dynamic",
    "sparse in blocks",
    "blockwise",
)
@pytest.mark.parametrize("name", WITH_DROPOUT)
def test_all_of_an_attention_has_the_new_rate(name):
    hidden = np.random.default_rng(0).normal(size=(2, 11, 8)).astype("float32")
    outputs = []
    for first, then in ((0.5, 0.5), (0.1, 0.5)):
        keras.utils.set_random_seed(0)
        kind = name.removesuffix(" in blocks")
        layer = _with_dropout(ATTENTIONS[kind](**WITH_DROPOUT[name]), first)
        layer.build(hidden.shape)
        randomize({w.path: w for w in layer.weights}, scale=0.5)
        for part in layer._flatten_layers():
            if isinstance(part, keras.layers.Dropout) and part.rate:
                part.rate = then
        keras.utils.set_random_seed(1)
        outputs.append(layer(hidden, training=True).numpy())
        assert np.abs(outputs[-1] - layer(hidden).numpy()).max() > 0.01
    assert_close(outputs[1], outputs[0], 1e-6)


def _with_dropout(layer, rate):
    config = layer.get_config()
    return type(layer).from_config({**config, "dropout": rate})
