"""Layers where Keras' own floats are float16: its integers are then int16."""

import keras
import numpy as np
import pytest

from tests.checks.numeric import flat
from tests.subjects.backend_layers import ATTENTIONS
from tests.subjects.layers import IDS, vectors
from tfeff.layers import EncoderEmbedding

HIDDEN = vectors(2, 7, 8)
LAYERS = {
    **{name: (make, HIDDEN) for name, make in ATTENTIONS.items()},
    "embedding": (lambda: EncoderEmbedding(9, 8), IDS),
}


def model_of(name):
    make, inputs = LAYERS[name]
    symbolic = keras.Input(inputs.shape[1:], dtype=str(inputs.dtype))
    return keras.Model(symbolic, make()(symbolic))


@pytest.fixture
def set_floatx():
    floatx, policy = keras.config.floatx(), keras.config.dtype_policy()

    def change(name):
        keras.config.set_floatx(name)
        keras.config.set_dtype_policy(name)

    yield change
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)


@pytest.mark.quick("shaw")
@pytest.mark.parametrize("name", LAYERS)
def test_a_step_is_that_of_float32(name, set_floatx):
    inputs = LAYERS[name][1]
    target = np.random.default_rng(2).normal(size=(*inputs.shape[:2], 8))
    initial = [
        w.astype("float16").astype("float32") for w in model_of(name).get_weights()
    ]
    results = {}
    for floatx in ("float32", "float16"):
        set_floatx(floatx)
        model = model_of(name)
        model.set_weights(initial)
        output = model.predict(inputs, verbose=0)
        assert output.dtype == floatx
        model.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=False)
        model.fit(inputs, target, verbose=0)
        updates = map(np.subtract, model.get_weights(), initial)
        results[floatx] = output.astype("float32"), flat(updates)
    for half, whole in zip(results["float16"], results["float32"], strict=True):
        assert np.linalg.norm(half - whole) <= 5e-3 * np.linalg.norm(whole)
