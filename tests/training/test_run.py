"""Runs that are killed and go on, and checkpoints that are never half there."""

import contextlib
import csv
import errno
import io
import json
import os
import shutil
import signal
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.batches import Killed, masked_lm_batches
from tests.subjects.objectives import make_masked_lm
from tfeff.training import (
    RunDirectory,
    adamw,
    latest_checkpoint,
    load_checkpoint,
    make_strategy,
    save_checkpoint,
)
from tfeff.training.checkpoint_folder import checkpoint_steps, run_checkpoint
from tfeff.training.run_callbacks import WriteBoard


def train(directory, dies_after=None, **options):
    """A run of 4 epochs of 5 steps; dies within the step after `dies_after`."""

    def batches(skip):
        keras.utils.set_random_seed(99)  # Whatever the process did before.
        endless = masked_lm_batches(batches=13).repeat()
        for index, batch in enumerate(endless.skip(skip), start=skip):
            if index == dies_after:
                raise Killed
            yield batch

    def dataset(skip):
        import tensorflow as tf

        return tf.data.Dataset.from_generator(
            lambda: batches(skip), output_signature=masked_lm_batches().element_spec
        )

    def model():
        keras.utils.set_random_seed(0)
        return make_masked_lm("shatter_tiny", dropout=0.2)

    run = RunDirectory(directory, {"seed": 0})
    model = run.fit(
        model,
        dataset,
        total_steps=20,
        steps_per_epoch=5,
        tokens_per_step=44,
        validation_data=masked_lm_batches(batches=3, seed=1),
        **options,
    )
    return run, model


def metrics(run):
    with open(run.path("metrics.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory):
    """A run that nothing interrupts, its model, and what it said."""
    lines = io.StringIO()
    with contextlib.redirect_stderr(lines):
        run, model = train(tmp_path_factory.mktemp("whole") / "run")
    return run, model, lines.getvalue()


@pytest.mark.parametrize(
    "dies_after", [12, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 15))]
)
def test_a_killed_run_goes_on_to_the_same_numbers(whole_run, tmp_path, dies_after):
    whole, model, _ = whole_run
    with pytest.raises(Exception, match="Killed"):
        train(tmp_path / "killed", dies_after)
    resumed, again = train(tmp_path / "killed")
    assert metrics(resumed) == metrics(whole)
    assert [row["step"] for row in metrics(whole)] == ["5", "10", "15", "20"]
    assert {"loss", "val_loss", "learning_rate", "accuracy"} <= set(metrics(whole)[0])
    for one, two in zip(model.get_weights(), again.get_weights()):
        np.testing.assert_array_equal(two, one)


@keras.saving.register_keras_serializable(package="tests.training.test_run")
class Drawn(keras.layers.Layer):
    """Makes its generator only where it is built."""

    def build(self, shape):
        self.seed_generator = keras.random.SeedGenerator(5)

    def call(self, x, training=False):
        return keras.random.dropout(x, 0.3, seed=self.seed_generator)


def _with_random_layers():
    x = keras.Input((4,))
    y = keras.layers.GaussianNoise(0.1)(keras.layers.Dropout(0.3)(x))
    y = keras.layers.Dropout(0.3, seed=3)(keras.layers.Dense(8)(y))
    return x, keras.layers.Dense(1)(Drawn()(tfeff.layers.Dropout(0.2)(y)))


@keras.saving.register_keras_serializable(package="tests.training.test_run")
class Subclassed(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = keras.Model(*_with_random_layers())

    def call(self, x, training=None):
        return self.inner(x, training=training)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["functional", "subclassed", "sequential"])
@pytest.mark.parametrize("dies_after", [7, 11])
def test_models_of_others_draw_the_dropout_that_they_would_have(
    kind, dies_after, tmp_path
):
    def make():
        keras.utils.set_random_seed(0)
        if kind == "functional":
            model = keras.Model(*_with_random_layers())
        elif kind == "subclassed":
            model = Subclassed()
            model.build((None, 4))
        else:
            parts = [
                keras.Input((4,)),
                keras.layers.Dropout(0.5),
                keras.layers.Dense(1),
            ]
            model = keras.Sequential(parts)
        model.compile(adamw(1e-2, 2, 20), loss="mse")
        return model

    def run(name, callbacks=()):
        x = np.random.default_rng(1).normal(size=(40, 4)).astype("float32")
        data = tf.data.Dataset.from_tensor_slices((x, x.sum(1))).repeat().batch(4)
        with RunDirectory(tmp_path / name, {}) as directory:
            return directory.fit(
                make,
                data.skip,
                total_steps=20,
                steps_per_epoch=5,
                tokens_per_step=4,
                callbacks=callbacks,
            ).get_weights()

    def stop(batch, logs):
        stop.calls += 1
        if stop.calls == dies_after:
            signal.raise_signal(signal.SIGINT)

    stop.calls = 0
    expected = run("whole")
    with pytest.raises(KeyboardInterrupt):
        run("cut", [keras.callbacks.LambdaCallback(on_train_batch_end=stop)])
    for one, two in zip(expected, run("cut"), strict=True):
        np.testing.assert_array_equal(two, one)


@pytest.mark.slow
def test_steps_to_keep_stay_after_kills(whole_run, tmp_path):
    """Started anew within the second epoch and within the fourth."""
    options = {"keep_steps": (5, 15), "keep_checkpoints": 1}
    for dies_after in (7, 17):
        with pytest.raises(Exception, match="Killed"):
            train(tmp_path / "run", dies_after, **options)
    run, _ = train(tmp_path / "run", **options)
    steps = checkpoint_steps(run.path("checkpoints"))
    assert steps == [5, 15, 20]
    for step in (15, None):
        expected, found = (
            load_checkpoint(run_checkpoint(directory, step)[0], compile=False)
            for directory in (whole_run[0].directory, run.directory)
        )
        assert not found.compiled
        for one, two in zip(expected.get_weights(), found.get_weights(), strict=True):
            np.testing.assert_array_equal(two, one)
    message = "step 10 of .*run, which has those of steps 5, 15, 20$"
    with pytest.raises(ValueError, match=message):
        run_checkpoint(run.directory, 10)


def test_settings_that_somebody_deleted_are_written_at_the_end(tmp_path):
    with RunDirectory(tmp_path / "run", {"seed": 0}) as run:
        os.remove(run.path("config.json"))
        run.finish()
    with RunDirectory(tmp_path / "run", {"seed": 0}) as run:
        assert os.listdir(run.directory).count("config.json") == 1


def test_what_a_run_leaves_behind(whole_run):
    run, _, lines = whole_run
    assert sorted(os.listdir(run.directory)) == [
        "checkpoints",
        "config.json",
        "learning_curve.png",
        "metrics.csv",
        "run.lock",
        "tensorboard",
    ]
    assert sorted(os.listdir(run.path("checkpoints"))) == [
        "step-00000015.keras",
        "step-00000020.keras",
    ]
    with open(run.path("learning_curve.png"), "rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n"
    assert "step 20/20 loss " in lines and "tokens/s 0:00 left" in lines
    before = metrics(run)
    train(run.directory)  # Nothing is left to do.
    assert metrics(run) == before


@pytest.mark.slow
def test_a_row_without_its_checkpoint_is_written_again(whole_run, tmp_path):
    """Killed between the row of metrics and the checkpoint, or within a row."""
    expected = metrics(whole_run[0])
    shutil.copytree(whole_run[0].directory, tmp_path / "run")
    os.remove(tmp_path / "run" / "checkpoints" / "step-00000020.keras")
    with open(tmp_path / "run" / "metrics.csv", "a", encoding="utf-8") as file:
        file.write("4,0.1,")
    run, _ = train(tmp_path / "run")
    assert metrics(run) == expected


def test_another_configuration_is_refused(tmp_path):
    RunDirectory(tmp_path / "run", {"preset": "bert_tiny", "seed": 0, "steps": [1, 2]})
    RunDirectory(tmp_path / "run", {"preset": "bert_tiny", "seed": 0, "steps": (1, 2)})
    (tmp_path / "run" / "tokenizer.spm").touch()
    with pytest.raises(ValueError, match="seed: there 0, now 1.*"):
        RunDirectory(
            tmp_path / "run", {"preset": "bert_tiny", "seed": 1, "steps": [1, 2]}
        )
    with pytest.raises(ValueError, match="seed: there 0, now None"):
        RunDirectory(tmp_path / "run", {"preset": "bert_tiny", "steps": [1, 2]})


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        ({"a": 1, "rate": np.float32(1)}, TypeError, "'rate': .*not JSON serializable"),
        ({"rate": float("nan")}, ValueError, "must not have NaN.*'rate': nan"),
        ([1], TypeError, "must be a mapping of names to JSON values"),
    ],
)
def test_a_configuration_that_cannot_be_kept_is_named(tmp_path, config, error, message):
    with pytest.raises(error, match=f"`config` .*{message}"):
        RunDirectory(tmp_path / "run", config)
    assert os.listdir(tmp_path) == []


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("text")
    with pytest.raises(ValueError, match="no config.json"):
        RunDirectory(tmp_path, {})
    with pytest.raises(ValueError, match="which is a file"):
        RunDirectory(tmp_path / "thesis.tex", {})
    assert os.listdir(tmp_path) == ["thesis.tex"]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (dict(total_steps=11, steps_per_epoch=5), "total_steps=11, steps_per_epoch=5"),
        (dict(total_steps=0, steps_per_epoch=5), "`total_steps`.*0"),
        (dict(total_steps=10, steps_per_epoch=5), "steps_per_execution=2"),
        (
            dict(total_steps=10, steps_per_epoch=5, keep_steps=[5, 7]),
            r"multiples of .*keep_steps=\[5, 7\], with a checkpoint every 5 steps",
        ),
        (
            dict(total_steps=10, steps_per_epoch=5, keep_steps=[15]),
            "`keep_steps` must be at most 10",
        ),
        (dict(total_steps=10, steps_per_epoch=5, keep_steps=[0]), "`keep_steps`.*0"),
        (dict(total_steps=10, steps_per_epoch=5, run_steps=5), "`run_steps`.*=5"),
    ],
)
def test_steps_that_do_not_fit(tmp_path, steps, message):
    run = RunDirectory(tmp_path / "run", {})
    with pytest.raises(ValueError, match=message):
        run.fit(
            lambda: make_masked_lm("bert_tiny", steps_per_execution=2),
            lambda skip: masked_lm_batches(),
            tokens_per_step=1,
            **steps,
        )


@pytest.fixture(scope="module")
def trained():
    """A model after two steps."""
    model = make_masked_lm("bert_tiny")
    model.fit(masked_lm_batches(batches=2), shuffle=False, verbose=0)
    return model


@pytest.mark.parametrize("name", ["checkpoints", "preset", "model.keras", "cells"])
def test_a_link_to_a_missing_disk_is_refused(name, tmp_path):
    """What it holds would be made anew, there or in its place."""
    with RunDirectory(tmp_path / "run", {}) as run:
        Path(run.path("notes.txt")).touch()
    link, disk = tmp_path / "run" / name, tmp_path / "disk"
    link.symlink_to(disk)
    with pytest.raises(ValueError, match=f"`directory` must have .* {name} is a link"):
        RunDirectory(tmp_path / "run", {})
    disk.mkdir()
    RunDirectory(tmp_path / "run", {}).close()


def test_a_directory_that_is_a_link_to_nothing(tmp_path):
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    with pytest.raises(ValueError, match="`directory` must be .* is a link to what is"):
        RunDirectory(tmp_path / "run", {})


@pytest.mark.parametrize("there", ["link", "file"])
def test_checkpoints_that_cannot_be_read_begin_no_new_training(there, tmp_path):
    with RunDirectory(tmp_path / "run", {}) as run:
        folder = tmp_path / "run" / "checkpoints"
        if there == "link":
            folder.symlink_to(tmp_path / "disk that is not there")
        else:
            folder.touch()
        with pytest.raises(OSError, match="a link to what is not there.*checkpoints"):
            run.fit(
                lambda: pytest.fail("made a model"),
                lambda skipped: pytest.fail("made data"),
                total_steps=2,
                steps_per_epoch=1,
                tokens_per_step=1,
            )


@pytest.mark.parametrize(
    ("hook", "arguments"),
    [
        ("on_train_begin", ()),
        ("on_epoch_end", (0,)),
        ("on_test_begin", ()),
        ("on_test_end", ()),
        ("on_train_end", ()),
    ],
)
def test_errors_of_tensorboard_name_its_folder(hook, arguments, tmp_path, monkeypatch):
    board = str(tmp_path / "tensorboard")

    def full(*_):
        message = f"{board}/train/events.v2; No space left on device\n\tFailed to flush"
        raise tf.errors.ResourceExhaustedError(None, None, message)

    monkeypatch.setattr(keras.callbacks.TensorBoard, hook, full)
    message = f"No space left on device, while writing {board}$"
    with pytest.raises(OSError, match=message):
        getattr(WriteBoard(board), hook)(*arguments)


def test_a_folder_that_vanishes_keeps_no_lock(tmp_path):
    with pytest.raises(ZeroDivisionError), RunDirectory(tmp_path / "run", {}):
        os.rename(tmp_path / "run", tmp_path / "moved")
        raise ZeroDivisionError
    with RunDirectory(tmp_path / "moved", {}):
        pass


def test_a_full_disk_leaves_earlier_checkpoints_intact(trained, tmp_path, monkeypatch):
    path = str(tmp_path / "step-00000001.keras")
    save_checkpoint(trained, path)
    with open(path, "rb") as file:
        before = file.read()

    def full(self, path, *args, **kwargs):
        with open(path, "wb") as file:
            file.write(b"half of a mod")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(trained), "save", full)
    for name in ("step-00000001.keras", "step-00000002.keras"):
        with pytest.raises(OSError, match="No space left"):
            save_checkpoint(trained, str(tmp_path / name))
    assert os.listdir(tmp_path) == ["step-00000001.keras"]
    with open(path, "rb") as file:
        assert file.read() == before
    assert load_checkpoint(path).optimizer.iterations.numpy() == 2


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty"])
def test_a_damaged_checkpoint_is_named(trained, tmp_path, damage):
    path = tmp_path / "step-00000001.keras"
    save_checkpoint(trained, str(path))
    content = bytearray(path.read_bytes())
    if damage == "truncated":
        content = content[: len(content) // 2]
    elif damage == "flipped":
        content[len(content) // 2] ^= 0xFF
    else:
        content = b""
    path.write_bytes(content)
    assert latest_checkpoint(str(tmp_path)) == (str(path), 1)
    with pytest.raises(ValueError, match="step-00000001.keras is truncated or corr"):
        load_checkpoint(str(path))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.EMFILE])
def test_a_checkpoint_that_the_system_refuses_to_read_is_no_damage(
    code, trained, tmp_path, monkeypatch
):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    path = str(tmp_path / "step-00000001.keras")
    save_checkpoint(trained, path)
    told = f"{os.strerror(code)}, while reading {path}"
    for refused in ("zipfile.ZipFile.__init__", "zipfile.ZipFile.testzip"):
        with monkeypatch.context() as patch, pytest.raises(OSError, match=told):
            patch.setattr(refused, refuse)
            load_checkpoint(path)
    with monkeypatch.context() as patch, pytest.raises(OSError, match=told):
        patch.setattr("keras.models.load_model", refuse)
        load_checkpoint(path)


@pytest.mark.parametrize("size", [1, 21, 22])
def test_a_tiny_checkpoint_is_damaged(size, tmp_path):
    path = tmp_path / "step-00000001.keras"
    path.write_bytes(b"P" * size)
    with pytest.raises(ValueError, match="step-00000001.keras is truncated or corr"):
        load_checkpoint(str(path))


def test_missing_checkpoints(tmp_path):
    assert latest_checkpoint(str(tmp_path / "nowhere")) == (None, 0)
    with pytest.raises(ValueError, match="no checkpoint at .*x.keras"):
        load_checkpoint(str(tmp_path / "x.keras"))


def test_strategies():
    assert make_strategy("default").num_replicas_in_sync == 1
    devices = len(tf.config.list_logical_devices("GPU")) or 2  # Else logical CPUs.
    assert make_strategy("mirrored").num_replicas_in_sync == devices
    assert make_strategy("mirrored") is make_strategy("mirrored")
    with pytest.raises(ValueError, match="`name`.*'gpu'"):
        make_strategy("gpu")
    with pytest.raises(ValueError, match="TPU"):
        make_strategy("tpu")
    with pytest.raises(ValueError, match="`tpu` can be given .*name='mirrored'"):
        make_strategy("mirrored", "local")


def test_a_start_that_failed_at_once_does_not_spend_the_folder(tmp_path):
    for seed in (0, 1):
        with RunDirectory(tmp_path, {"seed": seed}):
            config = json.loads((tmp_path / "config.json").read_text())
            assert config == {"seed": seed}
    assert os.listdir(tmp_path) == []


def test_a_configuration_of_something_else_is_left_alone(tmp_path):
    for config in ('{"mine": 1}', '{"seed": 0}', "{", "[]"):
        (tmp_path / "config.json").write_text(config)
        (tmp_path / ".partial-12345678").mkdir()
        (tmp_path / ".partial-12345678" / ".lock").touch()
        with pytest.raises(ValueError, match="config.json|seed: there .*, now 1"):
            RunDirectory(tmp_path, {"seed": 1})
        assert (tmp_path / "config.json").read_text() == config
        assert sorted(os.listdir(tmp_path)) == [".partial-12345678", "config.json"]
        shutil.rmtree(tmp_path / ".partial-12345678")
