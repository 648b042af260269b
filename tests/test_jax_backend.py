"""The layers run on another backend than TensorFlow, with the same numbers."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from tests.checks import assert_close
from tfeff.layers import EncoderBlock, FeedForward, LayerwisePooling, OneHeadAttention

REPOSITORY = Path(__file__).resolve().parents[1]
CODE = """
import sys, numpy as np, keras
from tfeff.layers import EncoderBlock, FeedForward, LayerwisePooling, OneHeadAttention
assert "tensorflow" not in sys.modules and keras.backend.backend() == "jax"
saved = np.load(sys.argv[1])
weights = [saved[f"w{i}"] for i in range(len(saved.files) - 2)]
x, mask = saved["x"], saved["mask"]
block = EncoderBlock(OneHeadAttention(4), FeedForward(12), dropout=0.1)
hidden, visible = keras.Input((None, 8)), keras.Input((None,), dtype="bool")
model = keras.Model([hidden, visible], block(hidden, padding_mask=visible))
block.set_weights(weights)
y = model([x, mask])
pooling = LayerwisePooling([block], initializer="ones")
pooled = pooling([x, y], padding_mask=mask)
np.savez(sys.argv[2], y=np.asarray(y), pooled=np.asarray(pooled))
model.compile("adam", "mse")
assert np.isfinite(model.fit([x, mask], x, verbose=0).history["loss"]).all()
"""


@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed (extra tpu)"
)
def test_layers_on_jax(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 7, 8)).astype("float32")
    mask = np.arange(7) < np.array([[7], [4]])
    block = EncoderBlock(OneHeadAttention(4), FeedForward(12), dropout=0.1)
    block.build((None, None, 8))
    weights = [rng.normal(size=w.shape).astype("float32") for w in block.weights[:]]
    block.set_weights(weights)
    y = block(x, padding_mask=mask)
    pooled = LayerwisePooling([block], initializer="ones")([x, y], padding_mask=mask)
    named = {f"w{i}": w for i, w in enumerate(weights)}
    np.savez(tmp_path / "in.npz", x=x, mask=mask, **named)
    result = subprocess.run(
        [sys.executable, "-c", CODE, tmp_path / "in.npz", tmp_path / "out.npz"],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert keras.backend.backend() == "tensorflow"
    with np.load(tmp_path / "out.npz") as out:
        assert_close(out["y"], y, 1e-5, "block")
        assert_close(out["pooled"], pooled, 1e-5, "pooling")
