"""The layers run on another backend than TensorFlow, with the same numbers."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import assert_close

REPOSITORY = Path(__file__).resolve().parents[1]
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="jax is not installed (extra tpu)"
)


def run_on_jax(*arguments, cwd=None):
    """What Python writes that runs with these arguments."""
    result = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "KERAS_BACKEND": "jax"},
        cwd=cwd,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


SHARDED = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import keras
import numpy as np
import tfeff
d = keras.distribution
mesh = {
    "data": d.DeviceMesh((2,), ("batch",), d.list_devices()),
    "model": d.DeviceMesh((1, 2), ("batch", "model"), d.list_devices()),
}
ids = np.arange(28, dtype="int32").reshape(4, 7)
x = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids * 0 + 1}
for kind in ("none", "data", "model"):
    if kind == "data":
        d.set_distribution(d.DataParallel(mesh[kind]))
    if kind == "model":
        layouts = d.LayoutMap(mesh[kind])
        layouts[".*(query|intermediate).*kernel"] = (None, "model")
        d.set_distribution(
            d.ModelParallel(layout_map=layouts, batch_dim_name="batch")
        )
    keras.utils.set_random_seed(0)
    encoder = tfeff.encoders.build(
        PRESET, vocabulary_size=50, max_sequence_length=16, num_layers=2, dropout=0.0
    )
    model = tfeff.tasks.Classifier(encoder, 2)
    model.compile(tfeff.training.adamw(1e-3, 1, 9))
    logs = model.fit(x, np.array([0, 1, 1, 0]), batch_size=4, epochs=4, verbose=0)
    sharded = [w for w in model.weights if "model" in str(w.value.sharding)]
    print(kind, len(sharded), *logs.history["loss"])
"""


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["bert_tiny", "shatter_tiny", "convbert_small"])
def test_devices_of_keras_distribution(preset):
    """Replicas and shards train as one device does."""
    out = run_on_jax("-c", f"PRESET = {preset!r}\n{SHARDED}")
    one, data, model = (line.split() for line in out.splitlines()[-3:])
    assert [line[0] for line in (one, data, model)] == ["none", "data", "model"]
    assert int(one[1]) == int(data[1]) == 0 < int(model[1])
    losses = np.array([line[2:] for line in (one, data, model)], float)
    assert losses.shape == (3, 4) and losses[0, -1] < losses[0, 0]
    np.testing.assert_allclose(losses[1:], losses[[0, 0]], rtol=1e-4)


# Both processes make these layers, in this order.
LAYERS = """
from tfeff.layers import *
attentions = [
    OneHeadAttention(4),
    PartitionedAttention(4),
    *(RelativeAttention(4, method) for method in ("bias", "xlnet")),
    *(RelativeAttention(4, f"huang{n}", max_distance=3) for n in (1, 2, 3, 4)),
    *(RelativeAttention(4, method, max_distance=3) for method in ("shaw", "rpe")),
    BlockwiseAttention(4, "2:1:1"),
    SparseAttention(4, stride=3, expressivity=1),
    LightweightConv1D(4, 3),
    DynamicConv1D(4, 3),
    *(MixedAttention(4, 2, 3, kind) for kind in ("span_dynamic", "separable")),
    OneHeadAttention(4, key_projection=True, values_by_part=False, alpha=-9.0),
]
blocks = [
    EncoderBlock(attention, FeedForward(12, num_groups=2), dropout=0.1)
    for attention in attentions
]
# Their gradients are compared, in blocks of queries on the other backend.
IN_BLOCKS = 0, 1, 9
embed = EncoderEmbedding(11, 8, max_sequence_length=7, embedding_dim=6)
"""
CODE = (
    """
import sys, jax, numpy as np, keras
"""
    + LAYERS
    + """
assert "tensorflow" not in sys.modules and keras.backend.backend() == "jax"
saved = np.load(sys.argv[1])
x, mask = saved["x"], saved["mask"]
results = {}
for number, block in enumerate(blocks):
    hidden, visible = keras.Input((None, 8)), keras.Input((None,), dtype="bool")
    model = keras.Model([hidden, visible], block(hidden, padding_mask=visible))
    block.set_weights([saved[f"{number}/{i}"] for i in range(len(block.weights))])
    results[f"{number}"] = np.asarray(model([x, mask]))
    if number == 0:
        pooling = LayerwisePooling([block], initializer="ones")
        results["pooled"] = np.asarray(pooling([x, x], padding_mask=mask))
    if number == 3:
        streams = TwoStreamBlocks([block], initializer="ones")
        results["content"], results["query"] = streams(
            x, saved["ranks"], mask, target_positions=saved["targets"]
        )
    if number in (0, 7):
        model.compile("adam", "mse")
        losses = model.fit([x, mask], x, verbose=0).history["loss"]
        assert np.isfinite(losses).all()
    if number in IN_BLOCKS:
        block.set_weights([saved[f"{number}/{i}"] for i in range(len(block.weights))])
        block.attention.query_block_size = 3
        loss = lambda x: keras.ops.sum(keras.ops.sin(block(x, padding_mask=mask)))
        results[f"gradient {number}"] = np.asarray(jax.jit(jax.grad(loss))(x))
        # As `memory_efficient="block"`, and with the gradient taken after tracing.
        again = np.asarray(jax.grad(jax.jit(jax.checkpoint(loss)))(x))
        np.testing.assert_allclose(again, results[f"gradient {number}"], 1e-4, 1e-5)
    loss = lambda x: keras.ops.sum(block(x, padding_mask=jax.numpy.array(mask)))
    jax.make_jaxpr(jax.grad(jax.checkpoint(loss)))(x)
embed.build((None, None))
embed.set_weights([saved[f"embedding/{i}"] for i in range(len(embed.weights))])
ids = keras.Input((None,), dtype="int32")
results["embedding"] = np.asarray(keras.Model(ids, embed(ids))(saved["targets"]))
np.savez(sys.argv[2], **results)

# Without a block around, Keras infers its shapes by lengths without a value.
assert SparseAttention(4, 3, 1)(keras.Input((None, 8))).shape == (None, None, 8)
# Integers stay integers where Keras' floats are of half precision.
keras.config.set_floatx("bfloat16")
keras.config.set_dtype_policy("bfloat16")
long = np.ones((1, 600, 8), "bfloat16")
for attention in (
    RelativeAttention(2, "bias", 3, num_buckets=4, query_block_size=64),
    PartitionedAttention(4, boundaries=[-1, 0, 2], query_block_size=64),
):
    assert attention(long).shape == (1, 600, 8)
"""
)


def test_layers_on_jax(tmp_path):
    made = {}
    exec(LAYERS, made)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 7, 8)).astype("float32")
    mask = np.arange(7) < np.array([[7], [4]])
    ranks = np.array([[-1, 0, 2, 1, -1, -1, 3], [0, -1, -1, 1, -1, -1, -1]], "int32")
    targets = np.array([[1, 6, 3], [0, 3, 0]], "int32")
    arrays, expected = {}, {}
    for number, block in enumerate(made["blocks"]):
        block.build((None, None, 8))
        weights = [rng.normal(size=w.shape).astype("float32") for w in block.weights]
        block.set_weights(weights)
        arrays |= {f"{number}/{i}": w for i, w in enumerate(weights)}
        expected[f"{number}"] = block(x, padding_mask=mask)
        if number in made["IN_BLOCKS"]:
            with tf.GradientTape() as tape:
                hidden = tf.Variable(x)
                loss = tf.reduce_sum(tf.sin(block(hidden, padding_mask=mask)))
            expected[f"gradient {number}"] = tape.gradient(loss, hidden)
    pooling = made["LayerwisePooling"]([made["blocks"][0]], initializer="ones")
    expected["pooled"] = pooling([x, x], padding_mask=mask)
    streams = made["TwoStreamBlocks"]([made["blocks"][3]], initializer="ones")
    expected["content"], expected["query"] = streams(
        x, ranks, mask, target_positions=targets
    )
    embed = made["embed"]
    expected["embedding"] = embed(targets)
    arrays |= {f"embedding/{i}": w for i, w in enumerate(embed.get_weights())}
    np.savez(
        tmp_path / "in.npz", x=x, mask=mask, ranks=ranks, targets=targets, **arrays
    )
    run_on_jax("-c", CODE, tmp_path / "in.npz", tmp_path / "out.npz")
    assert keras.backend.backend() == "tensorflow"
    with np.load(tmp_path / "out.npz") as out:
        assert set(out.files) == set(expected)
        for name, value in expected.items():
            assert_close(out[name], value, 1e-5, name)


BEYOND_INT32 = """
import numpy as np
from tests.subjects.objectives import make_encoder
from tfeff.ops import gather_positions
from tfeff.training.losses import GlobalMeanBinaryCrossentropy, GlobalMeanCrossentropy

def received(name, call, *arguments):
    try:
        call(*arguments)
    except ValueError as error:
        assert f"`{name}` must be from " in str(error), error
        assert f"Received: {2**32 + 1} at [0, 1] of {name}" in str(error), error
    else:
        raise AssertionError(name)

ids, logits = np.array([[1, 2**32 + 1]]), np.zeros((1, 2, 5), "float32")
encoder = make_encoder()
for name in encoder.input:
    inputs = dict.fromkeys(encoder.input, np.ones((1, 2), "int64"))
    encoder(inputs)
    received(name, encoder, inputs | {name: ids})
received("positions", gather_positions, logits, ids)
received("y_true", GlobalMeanCrossentropy(), ids, logits)
received("y_true", GlobalMeanBinaryCrossentropy(), ids, logits[..., 0])
"""


def test_arrays_beyond_int32_on_jax():
    run_on_jax("-c", BEYOND_INT32)


LOSS = """
import jax, numpy as np
import tfeff
from tfeff.training.losses import GlobalMeanCrossentropy

loss = GlobalMeanCrossentropy()
logits = np.zeros((1, 2, 3), "float32")
compiled = jax.jit(lambda targets: loss(targets, logits))
assert abs(float(compiled(np.array([[0, 2]]))) - np.log(3)) < 1e-6
for wrong in (3, -1):
    assert np.isnan(compiled(np.array([[0, wrong]])))
column = jax.jit(lambda targets: loss(targets, logits[0]))
assert abs(float(column(np.array([[0], [2]]))) - np.log(3)) < 1e-6

encoder = tfeff.encoders.build(
    "bert_tiny", vocabulary_size=20, num_layers=1, max_sequence_length=4
)
model = tfeff.tasks.Classifier(encoder, num_classes=3)
model.compile("sgd")
inputs = {name: np.ones((4, 4), "int32") for name in encoder.input}
for labels, is_nan in (([0, 1, 2, 0], False), ([0, 1, 2, 7], True)):
    batch = inputs, np.array(labels)  # Of arrays, labels are checked before.
    told = model.evaluate((x for x in [batch]), verbose=0, return_dict=True)
    assert np.isnan(told["loss"]) == is_nan, told
    history = model.fit((x for x in [batch]), verbose=0).history
    assert np.isnan(history["loss"]).all() == is_nan, history
"""


@pytest.mark.slow
def test_targets_beyond_the_classes_are_no_loss_of_zero():
    run_on_jax("-c", LOSS)


KEPT = """
import keras, numpy as np
from tests.subjects.objectives import make_encoder
from tfeff.tasks import Classifier

def fails(call, *arguments, **options):
    try:
        call(*arguments, verbose=0, **options)
    except (TypeError, ValueError):
        return
    raise AssertionError(call)

encoder = make_encoder(num_layers=1)
inputs = {name: np.ones((8, 4), "int32") for name in encoder.input}
too_long = {name: np.ones((8, 99), "int32") for name in encoder.input}
labels = np.arange(8) % 3
model = Classifier(encoder, 3)
model.compile("sgd", accumulation_steps=2)
before = model.get_weights()
fails(model.predict, too_long)
fails(model.evaluate, too_long, labels)
fails(model.fit, inputs, labels, batch_size=7)
for one, other in zip(before, model.get_weights(), strict=True):
    np.testing.assert_array_equal(one, other)
model.fit(inputs, labels, batch_size=4, verbose=0)
after = model.get_weights()
assert any((one != other).any() for one, other in zip(before, after))
# Not the values of an earlier error, nor those of before the epoch.
fails(model.fit, too_long, labels, batch_size=8)
fails(model.fit, inputs, labels, batch_size=4, validation_data=(too_long, labels))
trained = model.get_weights()
assert any((one != other).any() for one, other in zip(after, trained))
assert int(model.optimizer.iterations) == 4
fails(model.predict, too_long)
for one, other in zip(trained, model.get_weights(), strict=True):
    np.testing.assert_array_equal(one, other)
model.save("kept.keras")

# Plain Keras loses them: where it does not any more, `PutsValuesBack` can go.
plain = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
plain.compile("sgd", "mse")
fails(plain.predict, np.ones((3, 5)))
try:
    plain.get_weights()
except TypeError:
    print("lost")
"""


def test_weights_outlive_an_error_in_a_first_step(tmp_path):
    assert run_on_jax("-c", KEPT, cwd=tmp_path) == "lost\n"


HOOK = """
import keras, numpy as np
from tfeff.training import DistributedModel

class SumOfFour(DistributedModel):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1, kernel_initializer="ones")

    def call(self, x):
        return self.dense(x)

    def prepare_batch(self, data):
        x, *_ = keras.utils.unpack_x_y_sample_weight(data)
        return x[:, :3], keras.ops.sum(x, axis=-1, keepdims=True)

def compiled():
    model = SumOfFour()
    model.compile("sgd", "mse", metrics=["mae"])
    return model

x = np.ones((8, 4), "float32")
for found in (
    compiled().evaluate(x, batch_size=2, verbose=0),
    compiled().train_on_batch(x),
    [values[0] for values in compiled().fit(x, verbose=0).history.values()],
):
    np.testing.assert_allclose(found, [1.0, 1.0])
"""


def test_a_hook_makes_the_targets_and_the_width():
    run_on_jax("-c", HOOK)
