"""Where JAX has a GPU, plain attention is computed by its fused kernel.

Without a GPU, JAX computes the same by its plain version, on the same dispatch.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close
from tfeff import ops

REPOSITORY = Path(__file__).resolve().parents[1]
START = """
import json, sys, types, jax, numpy as np, keras
from tfeff.ops.kernels import backends, fused

backends.IMPLEMENTATION = "xla"

def device(platform="gpu", version="cuda 12090", capability="9.0"):
    client = types.SimpleNamespace(platform_version=version)
    return types.SimpleNamespace(
        platform=platform, client=client, compute_capability=capability
    )

def on(device):
    jax.devices = lambda: [device]
"""
# Some sequences are whole, some have holes, one sees nothing.
SHAPE = BATCH, HEADS, QUERIES, KEYS, SIZE = 4, 3, 6, 8, 16
MASKS = {
    "none": None,
    "of sequences": (BATCH, 1, 1, KEYS),
    "of heads": (BATCH, HEADS, 1, KEYS),
}

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed (extra tpu)"
)


def run(code, *arguments):
    """What a program prints that runs on JAX's CPU."""
    environment = {
        "PYTHONPATH": str(REPOSITORY),
        "KERAS_BACKEND": "jax",
        "JAX_PLATFORMS": "cpu",
    }
    result = subprocess.run(
        [sys.executable, "-c", START + code, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def make_mask(shape):
    if shape is None:
        return None
    mask = np.random.default_rng(1).random(shape) < 0.6
    mask[0], mask[1] = True, False
    return mask


NUMBERS = """
saved = dict(np.load(sys.argv[1]))
upstream, *tensors = (saved.pop(name) for name in ("upstream", *"qkv"))
results = {}
for name, mask in {"none": None, **saved}.items():
    for dtype in ("float32", "bfloat16"):  # JAX has no float16 on CPUs.
        given = [x.astype(dtype) for x in tensors]
        attend = jax.jit(lambda *given: fused.fused_attention(*given, mask))
        context, pull = jax.vjp(attend, *given)
        assert context.dtype == dtype
        arrays = context, *pull(upstream.astype(dtype))
        for what, x in zip(("values", *"qkv"), arrays, strict=True):
            results[f"{name}/{dtype}/{what}"] = np.asarray(x, "float32")
np.savez(sys.argv[2], **results)
"""


def test_values_and_gradients_are_those_of_the_equation(tmp_path):
    rng = np.random.default_rng(0)
    # Numbers that half precision has.
    query, key, value, upstream = (
        tf.cast(tf.cast(rng.normal(size=shape), "bfloat16"), "float64")
        for shape in (
            (BATCH, HEADS, QUERIES, SIZE),
            (BATCH, HEADS, KEYS, SIZE),
            (BATCH, HEADS, KEYS, SIZE),
            (BATCH, HEADS, QUERIES, SIZE),
        )
    )
    masks = {name: make_mask(shape) for name, shape in MASKS.items()}
    saved = {name: mask for name, mask in masks.items() if mask is not None}
    arrays = dict(zip("qkv", (query, key, value)), upstream=upstream)
    arrays = {name: x.numpy().astype("float32") for name, x in arrays.items()}
    np.savez(tmp_path / "in.npz", **arrays, **saved)
    run(NUMBERS, tmp_path / "in.npz", tmp_path / "out.npz")
    tolerances = {"float32": 1e-5, "bfloat16": 0.015}
    with np.load(tmp_path / "out.npz") as out:
        assert len(out.files) == 4 * len(tolerances) * len(masks)
        for name, mask in masks.items():
            with tf.GradientTape() as tape:
                tape.watch((query, key, value))
                scores = ops.dot_product_scores(query, key)
                context = ops.softmax_values(scores, value, mask)
            expected = tape.gradient(context, (query, key, value), upstream)
            for what, y in zip(("values", *"qkv"), (context, *expected)):
                for dtype, tolerance in tolerances.items():
                    x = out[f"{name}/{dtype}/{what}"]
                    if mask is not None:  # The sequence that sees nothing.
                        np.testing.assert_array_equal(x[1], 0)
                    if dtype == "float32":
                        assert_close(x, y, tolerance, f"{name} {what}")
                    else:
                        assert tf.norm(x - y) <= tolerance * tf.norm(y), (name, what)


DECISIONS = """
def decide(shape=(2, 3, 6, 64), keys=8, dtype="bfloat16", **of_device):
    on(device(**of_device))
    key = np.zeros((*shape[:2], keys, shape[3]), dtype)
    return fused.can_fuse(np.zeros(shape, dtype), key)

taken = [
    decide(),
    decide(dtype="float16"),
    decide((2, 3, 6, 128)),
    decide((2, 3, 6, 8)),
    decide(capability="8.0"),
    decide(capability="12.1"),
]
refused = [
    decide(platform="cpu", version=""),
    decide(platform="tpu", version="libtpu"),
    decide(version="rocm 60300", capability="gfx942"),
    decide(capability="7.5"),
    decide(dtype="float32"),
    decide(dtype="float64"),
    decide((2, 3, 6, 20)),
    decide((2, 3, 6, 136)),
    decide((2, 3, 5, 64)),
    decide(keys=7),
    decide(keys=0),
    decide((0, 3, 6, 64)),
]
keras.config.disable_flash_attention()
refused.append(decide())
print(json.dumps([taken, refused]))
"""


def test_where_it_applies():
    taken, refused = json.loads(run(DECISIONS))
    assert all(taken), taken
    assert not any(refused), refused


LAYERS = """
from tfeff.layers import *
from tfeff.layers.attention_inputs import AttentionInputs

keras.config.set_dtype_policy("mixed_bfloat16")
calls = []
original = fused.fused_attention

def counted(*arguments):
    calls.append(arguments)
    return original(*arguments)

fused.fused_attention = counted

class Colder(SelfAttention):
    def scores(self, queries, keys):
        return 2 * super().scores(queries, keys)

rng = np.random.default_rng(0)
hidden = rng.normal(size=(3, 12, 32)).astype("float32")
visible = np.arange(12) < np.array([[12], [5], [0]])
ranks = np.tile(np.arange(12, dtype="int32"), (3, 1))

class Asked(keras.layers.Layer):
    # whose call Keras casts weights and inputs.
    def __init__(self, attention, **asked):
        super().__init__(dtype=attention.dtype_policy)
        self.attention, self.asked = attention, asked

    def call(self, hidden):
        inputs = AttentionInputs(hidden, hidden, visible=visible, **self.asked)
        return self.attention.attend_sequence(inputs, return_scores=False)[0]

def compute(layer, device, **asked):
    on(device)
    calls.clear()
    asked = Asked(layer, **asked)

    def loss(hidden):
        result = asked(hidden).astype("float32")
        return keras.ops.sum(keras.ops.sin(result)), result

    gradient, result = jax.grad(loss, has_aux=True)(hidden)
    return np.asarray(result), np.asarray(gradient)

def check(taken, layer, **asked):
    layer.build(hidden.shape)
    plain = compute(layer, device("cpu", ""), **asked)
    assert not calls, (layer, asked)
    result = compute(layer, device(), **asked)
    assert bool(calls) == taken, (layer, asked)
    for x, y in zip(result, plain) if taken else ():
        assert np.linalg.norm(x - y) <= 0.015 * np.linalg.norm(y), (layer, asked)

check(True, SelfAttention(4))
check(True, SelfAttention(4, query_block_size=4))
check(True, SelfAttention(4), training=True, recompute=True)
check(True, SelfAttention(4, dropout=0.1))
check(True, BlockwiseAttention(4, "3:1"))
check(True, MixedAttention(4, 2, 3))
check(False, SelfAttention(4, dropout=0.1), training=True)
check(False, SelfAttention(4), query_ranks=ranks + 1, key_ranks=ranks)
check(False, SelfAttention(4, dtype="float32"))
check(False, Colder(4))
check(False, PartitionedAttention(4))
check(False, OneHeadAttention(4))
check(False, SparseAttention(4, stride=3, expressivity=1))
check(False, SparseAttention(4, stride=6, expressivity=6))
for method in ("bias", "xlnet", "shaw", "rpe", "huang1"):
    check(False, RelativeAttention(4, method))

on(device())
calls.clear()
SelfAttention(4)(hidden, return_attention_scores=True)
assert not calls
"""


def test_layers_whose_scores_are_plain():
    run(LAYERS)
