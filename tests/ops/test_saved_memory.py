"""For each layer XLA saves one tensor over pairs, or one activation."""

import pytest

from tests.benchmarks.scripts import run

CODE = """
import os
os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
import jax
import numpy as np
from keras import ops
from tfeff.ops import gelu
from tfeff.ops.kernels import activated_product, part_values, softmax_values

B, T, N, H, K = 2, 256, 8, 8, 2048
random = np.random.default_rng(0)
kept = random.random((B, N, T, T)) < 0.9
partition = random.random((N, T, T)).astype("float32")
embeddings = random.random((2 * T, N, H)).astype("float32")
kernels = random.normal(size=(2, N * H, K)).astype("float32")

def in_heads(x):
    return ops.swapaxes(ops.reshape(x, (B, T, N, H)), 1, 2)

def dropped_softmax(x):
    x = in_heads(x)
    scores = ops.einsum("bnth,bnsh->bnts", x, x)
    return ops.swapaxes(softmax_values(scores, x, keep=kept), 1, 2)

def relative_values(x):
    x = in_heads(x)
    scores = ops.einsum("bnth,bnsh->bnts", x, x)
    return ops.swapaxes(softmax_values(scores, x, rows=embeddings), 1, 2)

def parts(x):
    scores = ops.einsum("btd,bsd->bts", x, x)[:, None]
    return ops.swapaxes(part_values(scores, in_heads(x), partition), 1, 2)

def feed_forward(x):
    x = ops.matmul(x, kernels[0])
    return activated_product(x, ops.transpose(kernels[1]), gelu)

def temporary(function, layers):
    def loss(x):
        for _ in range(layers):
            x = ops.reshape(function(x), (B, T, N * H))
        return ops.sum(ops.sin(x))

    x = jax.ShapeDtypeStruct((B, T, N * H), "float32")
    program = jax.jit(jax.grad(loss)).lower(x).compile()
    return program.memory_analysis().temp_size_in_bytes

pairs = 4 * B * N * T * T
for function, must in (
    (dropped_softmax, pairs),
    (relative_values, pairs),
    (parts, pairs / N),
    (feed_forward, 4 * B * T * K),
):
    saved = (temporary(function, 6) - temporary(function, 3)) / 3
    print(function.__name__, saved / must)
"""


def test_nothing_else_of_that_size_is_saved(tmp_path):
    pytest.importorskip("jax", reason="jax is not installed (extra tpu)")
    script = tmp_path / "saved.py"
    script.write_text(CODE)
    result = run(script)
    assert result.returncode == 0, result.stderr
    saved = dict(line.split() for line in result.stdout.splitlines())
    assert saved.keys() == {
        "dropped_softmax",
        "relative_values",
        "parts",
        "feed_forward",
    }
    for name, ratio in saved.items():
        assert float(ratio) < 1.8, f"{name} saves {ratio} times the necessary memory"
