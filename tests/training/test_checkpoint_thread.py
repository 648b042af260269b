"""Checkpoints that a thread writes: of one moment, waited for, and no error lost."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import zipfile

import keras
import numpy as np
import pytest

from tests.subjects.clusters import REPOSITORY
from tests.subjects.small_runs import Raises, Small, contents, train
from tfeff.training import (
    Checkpoints,
    DistributedModel,
    load_checkpoint,
    save_checkpoint,
)
from tfeff.training.background import Background
from tfeff.training.checkpoint_file import load_notes


@pytest.fixture
def model():
    model = Small()
    model.compile("adam", "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    return model


@pytest.fixture
def checkpoints(model, tmp_path):
    checkpoints = Checkpoints(str(tmp_path), steps_per_epoch=1, keep=1)
    checkpoints.set_model(model)
    return checkpoints


@pytest.fixture
def gate(monkeypatch):
    """Lets the thread write only when it is set."""
    gate, save = threading.Event(), keras.Model.save

    def wait_and_save(self, path, **kwargs):
        gate.wait()
        save(self, path, **kwargs)

    monkeypatch.setattr(keras.Model, "save", wait_and_save)
    yield gate
    gate.set()


def test_the_file_is_that_of_the_moment(model, checkpoints, gate, tmp_path):
    gate.set()
    save_checkpoint(model, str(tmp_path / "same.keras"))
    gate.clear()
    checkpoints.save(1)
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)  # While it is not written.
    assert not (tmp_path / "step-00000001.keras").exists()
    gate.set()
    checkpoints.wait()
    with (
        zipfile.ZipFile(tmp_path / "same.keras") as same,
        zipfile.ZipFile(tmp_path / "step-00000001.keras") as saved,
    ):
        for name in ("config.json", "model.weights.h5"):
            assert same.read(name) == saved.read(name)
    loaded = load_checkpoint(str(tmp_path / "step-00000001.keras"))
    assert int(loaded.optimizer.iterations) + 1 == int(model.optimizer.iterations) == 2


def test_one_is_written_at_a_time_and_older_ones_go_when_it_is(checkpoints, gate):
    gate.set()
    checkpoints.save(1)
    checkpoints.wait()
    gate.clear()
    checkpoints.save(2)
    names = os.listdir(checkpoints._directory)
    assert "step-00000001.keras" in names and "step-00000002.keras" not in names
    second = threading.Thread(target=checkpoints.save, args=(3,))
    second.start()
    second.join(0.2)
    assert second.is_alive()
    gate.set()
    second.join()
    checkpoints.wait()
    assert os.listdir(checkpoints._directory) == ["step-00000003.keras"]


@pytest.mark.slow
@pytest.mark.parametrize("step", [12, 18])
def test_a_full_disk_ends_the_training(step, tmp_path, monkeypatch):
    name, replace = f"step-{step:08d}.keras", os.replace

    def full(source, target):
        if target.endswith(name):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match=f"No space left.*run/checkpoints/{name}"):
        train(tmp_path / "run")
    monkeypatch.undo()
    found = sorted(os.listdir(tmp_path / "run" / "checkpoints"))
    assert found == [f"step-{n:08d}.keras" for n in (6, 12)[: step // 6 - 1]]
    run, _ = train(tmp_path / "run")
    assert contents(run) == contents(train(tmp_path / "whole")[0])


def test_a_signal_waits_for_what_is_being_written(tmp_path, gate):
    class Opens(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if self.model.optimizer.iterations == 8:
                threading.Timer(0.3, gate.set).start()

    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", Raises(signal.SIGINT, step=8), Opens())
    names = sorted(os.listdir(tmp_path / "run" / "checkpoints"))
    assert names == ["step-00000006.keras", "step-00000008.keras"]


@pytest.mark.slow
def test_a_process_that_ends_waits_for_its_work(tmp_path):
    code = (
        "import time; from tfeff.training.background import Background\n"
        "def work(): time.sleep(0.5); print('done')\n"
        "Background().start(work)"
    )
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    result = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert result.stdout == "done\n", result.stderr


def test_a_variable_without_a_copy_is_an_error(model, tmp_path):
    from tfeff.compat.saving import ReadsCopies

    copies = [(v, v.numpy()) for v in model.optimizer.variables]
    with (
        ReadsCopies(copies),
        pytest.raises(ValueError, match="no copy of the variable"),
    ):
        model.save(str(tmp_path / "model.keras"))


class WithTeacher(DistributedModel):
    """A model with another one in it, which was compiled and trained before."""

    def __init__(self, teacher):
        super().__init__()
        self.student, self.teacher = Small(), teacher

    def build(self, shape):
        self.built = True

    def call(self, inputs, training=None):
        return self.student(inputs, training=training)

    def get_config(self):
        return {}


def test_a_compiled_model_within_is_saved_with_its_optimizer(model, tmp_path):
    outer = WithTeacher(model)
    outer.compile("adam", "mse")
    outer.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    checkpoints = Checkpoints(str(tmp_path), steps_per_epoch=1, keep=1)
    checkpoints.set_model(outer)
    checkpoints.save(1)
    checkpoints.wait()
    save_checkpoint(outer, str(tmp_path / "same.keras"))
    with (
        zipfile.ZipFile(tmp_path / "same.keras") as same,
        zipfile.ZipFile(tmp_path / "step-00000001.keras") as saved,
    ):
        for name in ("config.json", "model.weights.h5"):
            assert same.read(name) == saved.read(name)


def test_a_relative_folder_stays_where_it_is(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    checkpoints = Checkpoints("saved", steps_per_epoch=1)
    checkpoints.set_model(model)
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    checkpoints.save(1)
    checkpoints.wait()
    assert os.listdir(tmp_path / "saved") == ["step-00000001.keras"]
    assert os.listdir(tmp_path / "other") == []


@pytest.mark.slow
def test_checkpoints_of_another_training_are_left_alone(model, tmp_path):
    data = np.ones((4, 2)), np.ones((4, 1))

    def fit(model, **settings):
        callback = Checkpoints(str(tmp_path), 1)
        model.fit(*data, 4, verbose=0, callbacks=[callback], **settings)

    fit(model, epochs=3)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert sorted(before) == ["step-00000002.keras", "step-00000003.keras"]
    other = Small()
    other.compile("adam", "mse")
    start = other.get_weights()
    for settings in ({}, {"initial_epoch": 2, "epochs": 4}):
        with pytest.raises(ValueError, match="`directory` must have no .*of step 3"):
            fit(other, **settings)
    for one, two in zip(start, other.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    # To go on from the newest one is what they are for.
    loaded = load_checkpoint(str(tmp_path / "step-00000003.keras"))
    fit(loaded, initial_epoch=3, epochs=4)
    assert "step-00000004.keras" in os.listdir(tmp_path)


def test_a_checkpoint_under_the_name_of_another_step_is_refused(model, tmp_path):
    checkpoints = Checkpoints(str(tmp_path), steps_per_epoch=1)
    checkpoints.set_model(model)
    checkpoints.save(3)
    checkpoints.wait()
    saved = tmp_path / "step-00000003.keras"
    saved.rename(tmp_path / "step-00000007.keras")
    with pytest.raises(ValueError, match="step-00000007.*saved after step 3"):
        load_checkpoint(str(tmp_path / "step-00000007.keras"))
    (tmp_path / "step-00000007.keras").rename(tmp_path / "best.keras")
    load_checkpoint(str(tmp_path / "best.keras"))


def make_layers():
    return keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(2), keras.layers.Dense(1)]
    )


def test_what_is_frozen_after_compile_is_refused_before_it_is_trained(tmp_path):
    """The loaded optimizer would be for fewer weights, and begin anew."""
    data = np.ones((4, 2)), np.ones((4, 1))

    def fit(model):
        callback = Checkpoints(str(tmp_path), 1)
        model.fit(*data, 4, verbose=0, callbacks=[callback])

    model = make_layers()
    model.compile("adam", "mse")
    model.fit(*data, 4, verbose=0)
    model.layers[0].trainable = False
    with pytest.raises(ValueError, match="compile again .*of 4 weights, 2 that train"):
        fit(model)
    assert not os.listdir(tmp_path)
    model.compile("adam", "mse")
    fit(model)
    loaded = load_checkpoint(str(tmp_path / "step-00000001.keras"))
    assert int(loaded.optimizer.iterations) == 1
    assert len(loaded.trainable_weights) == 2


def test_a_weight_that_is_frozen_alone_is_refused(tmp_path):
    model = make_layers()
    model.layers[0].kernel.trainable = False
    model.compile("adam", "mse")
    with pytest.raises(ValueError, match="freeze its layer.*Received: .*kernel, and"):
        model.fit(
            *(np.ones((4, 2)), np.ones((4, 1))),
            verbose=0,
            callbacks=[Checkpoints(str(tmp_path), 1)],
        )


@keras.saving.register_keras_serializable("tests")
class FreezesItself(keras.Model):
    """Its loaded copies freeze the same weight, which is no layer's own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(1)

    def build(self, shape):
        self.dense.build(shape)
        self.dense.bias.trainable = False
        self.built = True

    def call(self, x):
        return self.dense(x)


def test_a_model_that_freezes_its_own_weights_goes_on(tmp_path):
    data = np.ones((4, 2)), np.ones((4, 1))
    model = FreezesItself()
    model.compile("adam", "mse")
    model.fit(*data, verbose=0, callbacks=[Checkpoints(str(tmp_path), 1)])
    loaded = load_checkpoint(str(tmp_path / "step-00000001.keras"))
    callbacks = [Checkpoints(str(tmp_path), 1)]
    loaded.fit(*data, epochs=2, initial_epoch=1, verbose=0, callbacks=callbacks)
    assert int(loaded.optimizer.iterations) == 2


@keras.saving.register_keras_serializable("tests")
class CompilesItself(FreezesItself):
    def compile(self, *args, **kwargs):
        super().compile(*args, **kwargs)


def test_why_a_model_with_a_compile_of_its_own_is_loaded_without_its_optimizer(
    tmp_path,
):
    model = CompilesItself()
    model.compile("adam", "mse")
    saves = Checkpoints(str(tmp_path), 1)
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0, callbacks=[saves])
    with (
        pytest.warns(UserWarning, match="compile"),
        pytest.raises(ValueError, match="its class has a `compile` of its own"),
    ):
        load_checkpoint(str(tmp_path / "step-00000001.keras"))


def test_a_checkpoint_without_the_state_of_its_optimizer_is_named(tmp_path):
    """As earlier versions wrote them; Keras only warns."""
    model = make_layers()
    model.compile("adam", "mse")
    model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)
    model.layers[0].trainable = False
    checkpoints = Checkpoints(str(tmp_path), 1)
    checkpoints.set_model(model)
    checkpoints.save(1)
    checkpoints.wait()
    path = str(tmp_path / "step-00000001.keras")
    with (
        pytest.warns(UserWarning, match="Skipping variable loading"),
        pytest.raises(ValueError, match="step-00000001.* 10 variables.* 6"),
    ):
        load_checkpoint(path)
    load_checkpoint(path, compile=False)


def test_notes_of_a_user_may_have_any_name(model, tmp_path):
    data = np.ones((4, 2)), np.ones((4, 1))
    callback = Checkpoints(str(tmp_path), 1, notes=lambda: {"step": "warm-up"})
    model.fit(*data, 4, verbose=0, callbacks=[callback])
    path = str(tmp_path / "step-00000001.keras")
    assert load_notes(path)["step"] == "warm-up"
    load_checkpoint(path)
    path = str(tmp_path / "step-00000009.keras")
    save_checkpoint(model, path, {"step": 1})
    load_checkpoint(path)
    with pytest.raises(TypeError, match="`notes` must be .* with 'rate': "):
        save_checkpoint(model, path, {"rate": np.float32(1)})
    assert load_notes(path) == {"step": 1}


def test_a_callback_with_a_first_step_serves_a_second_fit(model, tmp_path):
    data = np.ones((4, 2)), np.ones((4, 1))
    callback = Checkpoints(str(tmp_path), 1, first_step=0)
    model.fit(*data, 4, verbose=0, callbacks=[callback])
    model.fit(*data, 4, verbose=0, callbacks=[callback], initial_epoch=1, epochs=2)
    assert "step-00000002.keras" in os.listdir(tmp_path)
    with pytest.raises(ValueError, match="step 2, for a training .* at step 0"):
        model.fit(*data, 4, verbose=0, callbacks=[callback])


def test_an_interrupted_wait_ends_with_the_work(monkeypatch):
    background, ended = Background(), []
    background.start(lambda: ended.append(1 / len(ended) if ended else 1))
    wait, interruptions = concurrent.futures.wait, [KeyboardInterrupt]

    def interrupted(work):
        if interruptions:
            raise interruptions.pop()
        return wait(work)

    monkeypatch.setattr(concurrent.futures, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        background.wait()
    assert ended == [1]
    background.wait()
    # Its error is told with the interruption.
    background.start(lambda: 1 / 0)
    interruptions.append(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        background.wait()
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
