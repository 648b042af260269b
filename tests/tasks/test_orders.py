"""Adapters, quantization, files and exports in every order that makes sense.

Each order either works, every file and export with the outputs of the model that it is
of, or is refused by name before anything is written. The page `docs/LORA.md` has the
table of this file.
"""

import re
import warnings
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import randomize
from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tests.subjects.sentences import tokenizer
from tfeff.encoders import Encoder, merge_lora
from tfeff.training.checkpoints import Checkpoints

PAGE = Path(__file__).resolve().parents[2] / "docs" / "LORA.md"
WORKS = "works"
# Steps, and what comes of them: it works, or the last step is refused with a message of
# these words, and that step is the way out.
ORDERS = [
    ("enable_lora, train, .keras, int8, .keras, export", WORKS, ""),
    ("enable_lora, train, .weights.h5, train, preset", WORKS, ""),
    ("enable_lora, train, export", WORKS, ""),
    ("enable_lora, train, serve", WORKS, ""),
    ("enable_lora, train, save_lora, train, save_lora", WORKS, ""),
    ("enable_lora, train, merge_lora, checkpoint, train", WORKS, ""),
    ("enable_lora, train, merge_lora, int8, .keras, preset, export", WORKS, ""),
    ("enable_lora, train, merge_lora, int4, .weights.h5, serve", WORKS, ""),
    ("enable_lora, train, merge_lora, float8, .keras", WORKS, ""),
    ("enable_lora, train, merge_lora, enable_lora, train, preset", WORKS, ""),
    ("int8, .keras, preset, export", WORKS, ""),
    ("int8, enable_lora, train, save_lora, export", WORKS, ""),
    ("int4, enable_lora, train, save_lora, train", WORKS, ""),
    ("float8, train, .keras", WORKS, ""),
    ("enable_lora, train, int8", "no LoRA adapters to be quantized", "merge_lora"),
    ("enable_lora, float8", "no LoRA adapters to be quantized", "merge_lora"),
    ("enable_lora, enable_lora", "no adapters yet", "merge_lora"),
    ("enable_lora, load_weights", "no LoRA adapters to load weights", "load first"),
    ("enable_lora, fit with checkpoints", "for a checkpoint", "save_lora"),
    ("enable_lora, fit with backup", "for a checkpoint", "save_lora"),
    ("enable_lora, checkpoint", "for a checkpoint", "merge_lora"),
    ("int8, enable_lora, .keras", "adapters on quantized layers", "save_lora"),
    ("int8, enable_lora, .weights.h5", "adapters on quantized layers", "save_lora"),
    ("int8, enable_lora, preset", "adapters on quantized layers", "save_lora"),
    ("int8, enable_lora, fit with .keras", "adapters on quantized", "save_lora"),
    ("int8, enable_lora, merge_lora", "no adapters on quantized layers", "save_lora"),
    ("float8, enable_lora", "Keras computes none in another mode", "int8 or int4"),
    ("gptq", "without their calibration data", "int8, int4 or float8"),
]
QUICK = {
    "enable_lora, train, .keras, int8, .keras, export",
    "int8, enable_lora, .keras",
    "enable_lora, float8",
    "enable_lora, fit with checkpoints",
    "float8, enable_lora",
    "gptq",
}


class Model:
    """A classifier that goes through the steps of an order."""

    def __init__(self, folder):
        self.folder, self.count = folder, 0
        encoder = tiny("bert_base", num_layers=1, vocabulary_size=60, num_segments=2)
        randomize({w.path: w for w in encoder.weights}, 1)
        self.model = tfeff.tasks.Classifier(encoder, 2)
        self.batch = batch_of(encoder)
        self.base = None

    def take(self, step):
        """Takes a step; raises unless the model, or what it wrote, is the same."""
        self.count += 1
        steps = {
            ".keras": self.keras,
            ".weights.h5": self.weights,
            "fit with checkpoints": self.fit_with_checkpoints,
            "fit with backup": self.fit_with_backup,
            "fit with .keras": self.fit_with_keras,
        }
        if step in ("int8", "int4", "float8", "gptq"):
            self.quantize(step)
        else:
            steps.get(step, getattr(self, step.strip("."), None))()

    def path(self, ending=""):
        return self.folder / f"{self.count}{ending}"

    def check(self, other):
        expected = self.model(self.batch)
        np.testing.assert_allclose(other(self.batch), expected, rtol=1e-5, atol=1e-5)

    def copy(self):
        other = type(self.model).from_config(self.model.get_config())
        other.set_weights(self.model.get_weights())
        return other

    def train(self):
        before = self.model(self.batch).numpy()
        # Keras' gradients of float8 are those of graphs.
        query = self.model.encoder.blocks[0].attention.query_dense
        eagerly = query.quantization_mode != "float8"
        self.model.compile(keras.optimizers.Adam(1e-2), run_eagerly=eagerly)
        self.model.fit(self.batch, np.array([0, 1, 1]), verbose=0)
        assert not np.allclose(self.model(self.batch), before, atol=1e-5)

    def quantize(self, mode):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Of each layer that cannot be quantized.
            config = (
                keras.quantizers.GPTQConfig(["a"], None) if mode == "gptq" else None
            )
            self.model.quantize(mode, config=config)
        assert self.model.encoder.blocks[0].attention.query_dense.quantization_mode

    def enable_lora(self):
        base = self.copy() if not self.adapters() else None
        before = self.model(self.batch).numpy()
        self.model.encoder.enable_lora(2)
        np.testing.assert_allclose(self.model(self.batch), before, atol=1e-6)
        self.base = base

    def adapters(self):
        return [w for w in self.model.weights if "lora" in w.path]

    def merge_lora(self):
        merged = merge_lora(self.model)
        self.check(merged)
        self.model = merged

    def save_lora(self):
        tfeff.tasks.save_lora(self.model, self.path(".safetensors"))
        tfeff.tasks.load_lora(self.base, self.path(".safetensors"))
        self.check(self.base)

    def keras(self):
        self.model.save(self.path(".keras"))
        loaded = keras.models.load_model(self.path(".keras"))
        self.check(loaded)
        self.model = loaded

    def weights(self):
        self.model.save_weights(self.path(".weights.h5"))
        loaded = type(self.model).from_config(self.model.get_config())
        loaded.load_weights(self.path(".weights.h5"))
        self.check(loaded)

    def load_weights(self):
        self.base.save_weights(self.folder.parent / "base.weights.h5")
        self.model.load_weights(self.folder.parent / "base.weights.h5")

    def checkpoint(self):
        if not self.model.compiled:
            self.model.compile()
        tfeff.training.save_checkpoint(self.model, str(self.path(".keras")))
        loaded = tfeff.training.load_checkpoint(str(self.path(".keras")))
        self.check(loaded)
        self.model = loaded

    def fit_with_checkpoints(self):
        self.fit(Checkpoints(str(self.path()), steps_per_epoch=1))

    def fit_with_backup(self):
        self.fit(keras.callbacks.BackupAndRestore(str(self.path())))

    def fit_with_keras(self):
        self.fit(keras.callbacks.ModelCheckpoint(str(self.path(".keras"))))

    def fit(self, callback):
        """Nothing is trained where it is refused."""
        self.model.compile(run_eagerly=True)
        try:
            self.model.fit(self.batch, np.zeros(3), callbacks=[callback], verbose=0)
        finally:
            assert int(self.model.optimizer.iterations) == 0

    def preset(self):
        tfeff.tasks.save_pretrained(self.model.encoder, tokenizer(), self.path())
        loaded, _ = tfeff.tasks.load_pretrained(self.path())
        self.check_encoder(loaded(self.batch)["sequence_output"])
        again = Encoder.from_preset(str(self.path()))
        self.check_encoder(again(self.batch)["sequence_output"])

    def export(self):
        self.model.encoder.export(str(self.path()), verbose=False)
        served = tf.saved_model.load(str(self.path()))
        inputs = {k: tf.constant(v) for k, v in self.batch.items()}
        self.check_encoder(served.serve(inputs)["sequence_output"])

    def serve(self):
        tfeff.export.save_for_serving(self.model, tokenizer(), self.path())
        plain = self.model
        if self.adapters():
            plain = merge_lora(plain)
        tfeff.export.save_for_serving(plain, tokenizer(), self.path("-plain"))
        texts = tf.constant(["The small cat", "it wasn't often there"])
        one, other = (
            tf.saved_model.load(str(path)).signatures["classify"](texts)
            for path in (self.path(), self.path("-plain"))
        )
        np.testing.assert_allclose(
            one["probabilities"], other["probabilities"], atol=1e-6
        )

    def check_encoder(self, states):
        expected = self.model.encoder(self.batch)["sequence_output"]
        real = self.batch["padding_mask"].astype(bool)
        np.testing.assert_allclose(states[real], expected[real], rtol=1e-5, atol=1e-5)


@pytest.mark.quick(
    "enable_lora-float8",
    "enable_lora-fit with checkpoints",
    "int8-enable_lora-.keras",
    "float8-enable_lora",
    "gptq",
)
@pytest.mark.parametrize(
    ("order", "outcome"),
    [
        pytest.param(
            order,
            outcome,
            id=order.replace(", ", "-"),
            marks=() if order in QUICK else pytest.mark.slow,
        )
        for order, outcome, _ in ORDERS
    ],
)
def test_order(order, outcome, tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    *steps, last = order.split(", ")
    model = Model(folder)
    for step in steps:
        model.take(step)
    if outcome == WORKS:
        model.take(last)
        return
    files = sorted(path.name for path in folder.iterdir())
    logits = model.model(model.batch).numpy()
    with pytest.raises(ValueError, match=re.escape(outcome)):
        model.take(last)
    # Nothing is lost: the model is as it was, and nothing was begun.
    assert sorted(path.name for path in folder.iterdir()) == files
    np.testing.assert_array_equal(model.model(model.batch), logits)


def table():
    """The orders as the page has them."""
    lines = ["| order | |", "|---|---|"]
    for order, outcome, instead in ORDERS:
        *steps, last = (f"`{step}`" for step in order.split(", "))
        if outcome == WORKS:
            lines.append(f"| {' → '.join([*steps, last])} | works |")
        else:
            lines.append(
                f"| {' → '.join([*steps, f'**{last}**'])} | refused: {instead} |"
            )
    return "\n".join(lines)


def test_the_page_has_the_table():
    page = PAGE.read_text(encoding="utf-8")
    assert table() in page, table()
