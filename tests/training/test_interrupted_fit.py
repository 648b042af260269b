"""A signal saves a training within its epoch, and the next start goes on with it."""

import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.signals import Signal
from tfeff.training import interrupted_fit
from tfeff.training.epochs import ResumeEpoch, metrics_state
from tfeff.training.held_signals import HeldSignals
from tfeff.training.interrupted_fit import interrupted_step
from tfeff.utils.files import remove_folder

STEPS = 9
X = np.random.default_rng(0).normal(size=(24, 3)).astype("float32")
Y = (X[:, 0] > 0).astype("int32")


def evaluate(model):
    loss, accuracy = model.evaluate(X, Y, verbose=0)
    return {"accuracy": accuracy, "negative_loss": -loss}


def train(folder, callbacks=(), replicas=1, units=4, early=None):
    """The best metrics, the last weights, and the metrics of the training."""
    (folder / "dev_metrics.csv").unlink(missing_ok=True)
    keras.utils.set_random_seed(1)
    devices = [f"CPU:{i}" for i in range(replicas)]
    reduction = tf.distribute.ReductionToOneDevice()
    with tf.distribute.MirroredStrategy(devices, reduction).scope():
        model = keras.Sequential(
            [
                keras.Input((3,)),
                keras.layers.Dense(units, "tanh"),
                keras.layers.Dropout(0.5),
                keras.layers.Dense(2),
            ]
        )
        model.compile(
            tfeff.training.adamw(0.1, 2, STEPS),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
            jit_compile=False,
        )
        best = tfeff.training.KeepBest(evaluate, "negative_loss", 2, folder)
        data = tf.data.Dataset.from_tensor_slices((X, Y))
        data = data.shuffle(24, seed=3, reshuffle_each_iteration=False)
        data = data.repeat().batch(4)
        with HeldSignals() as signals:
            if early is not None:
                signal.raise_signal(early)
            saved = str(folder / "saved")
            callbacks = [best, *callbacks]
            history = interrupted_fit.fit(
                model, data, STEPS, saved, signals, callbacks, best
            )
    return best.best, best.best_step, model.get_weights(), history.history


@pytest.mark.quick("1")
@pytest.mark.parametrize("replicas", [1, 2])
def test_goes_on_to_the_same_numbers(tmp_path, replicas):
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    for folder in (whole, ended):
        folder.mkdir()
    expected = train(whole, replicas=replicas)
    assert not (whole / "saved").exists()
    for step in (1, 4, 7):  # Before, at and after evaluations.
        with pytest.raises(KeyboardInterrupt):
            train(ended, [Signal(step)], replicas)
        assert interrupted_fit.interrupted_step(str(ended / "saved")) == step
    found = train(ended, replicas=replicas)
    assert found[:2] == expected[:2]
    for one, other in zip(found[2], expected[2], strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[3] == expected[3]
    rows = [(folder / "dev_metrics.csv").read_bytes() for folder in (whole, ended)]
    assert rows[0] == rows[1]
    remove_folder(str(ended / "saved"))
    assert interrupted_fit.interrupted_step(str(ended / "saved")) == 0


def test_other_signals_do_what_they_did(tmp_path, monkeypatch):
    def end(number, frame):
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        with pytest.raises(SystemExit, match="143"):
            train(tmp_path, [Signal(3, signal.SIGTERM)])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert interrupted_fit.interrupted_step(str(tmp_path / "saved")) == 3


def test_a_signal_before_the_training_ends_it_after_its_first_step(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, early=signal.SIGINT)
    assert interrupted_fit.interrupted_step(str(tmp_path / "saved")) == 1


def test_a_signal_before_the_training_goes_on_leaves_what_is_saved(tmp_path):
    """The steps that are skipped are none to save."""
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, [Signal(4)])
    saved = (tmp_path / "saved" / "SHA256SUMS").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, early=signal.SIGINT)
    assert interrupted_fit.interrupted_step(str(tmp_path / "saved")) == 4
    assert (tmp_path / "saved" / "SHA256SUMS").read_bytes() == saved


def test_the_last_step_is_the_end(tmp_path):
    """Nothing is left to go on with: the signal acts behind it."""
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, [Signal(STEPS)])
    assert not (tmp_path / "saved").exists()
    assert (tmp_path / "dev_metrics.csv").read_text().count("\n") == 6


def test_damage_and_other_models_are_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, [Signal(3)])
    with pytest.raises(ValueError, match="saved must be of this model and optimizer"):
        train(tmp_path, units=5)
    for name in ("state.json", "weights.safetensors"):
        path = tmp_path / "saved" / name
        content = path.read_bytes()
        path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
        with pytest.raises(ValueError, match=f"is damaged.*{name}"):
            train(tmp_path)
        # What is deleted in the step that is gone on from, is deleted behind this.
        with pytest.raises(ValueError, match=f"is damaged.*{name}"):
            interrupted_step(str(tmp_path / "saved"))
        path.write_bytes(content)


@pytest.mark.parametrize("run_eagerly", [False, True])
def test_functions_of_a_hook_draw_on(run_eagerly):
    """Shapes are asked for before they are traced for the steps."""

    class Noisy(tfeff.training.DistributedModel):
        def prepare_batch(self, data):
            x, y = data
            return x + self.noise(tf.shape(x)), tf.reduce_sum(y, -1, keepdims=True)

    def made():
        keras.utils.set_random_seed(0)
        inputs = keras.Input((3,))
        model = Noisy(inputs, keras.layers.Dense(1)(inputs))
        model.seed = keras.random.SeedGenerator(3)
        model.noise = tf.function(lambda s: keras.random.normal(s, seed=model.seed))
        model.compile("sgd", "mse", run_eagerly=run_eagerly, jit_compile=False)
        return model

    data = tf.data.Dataset.from_tensor_slices((X, X)).batch(6, drop_remainder=True)
    whole, begun, resumed = made(), made(), made()
    whole.fit(data, verbose=0)
    begun.fit(data.take(2), verbose=0)
    for variable, value in zip(resumed.variables, begun.variables, strict=True):
        variable.assign(value)
    resume = ResumeEpoch(2, metrics_state(begun), data.element_spec)
    history = resumed.fit(
        data.skip(2).repeat(), steps_per_epoch=4, verbose=0, callbacks=[resume]
    )
    assert history.history["loss"] == whole.history.history["loss"]
    for one, other in zip(resumed.variables, whole.variables, strict=True):
        np.testing.assert_array_equal(one, other)
