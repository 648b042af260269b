"""Trainings that end where nothing better comes, in one start or in several."""

import contextlib
import csv
import io

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfeff.training import KeepBest, RunDirectory, latest_checkpoint

STEPS = 12


class Told(keras.callbacks.Callback):
    """Sets the validation losses, and dies within an epoch."""

    def __init__(self, losses, dies_in=None):
        super().__init__()
        self.losses, self.dies_in = losses, dies_in

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.dies_in:
            raise KeyboardInterrupt

    def on_epoch_end(self, epoch, logs=None):
        logs["val_loss"] = self.losses[epoch]


def make_model():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    return model


def batches(skip=0):
    one = tf.data.Dataset.from_tensors((tf.ones((1, 1)), tf.zeros((1, 1))))
    return one.repeat().skip(skip)


def train(directory, losses, patience=2, dies_in=None):
    """A run of six epochs of two steps; its `metrics.csv` and what it said."""
    said = io.StringIO()
    with RunDirectory(directory, {}) as run, contextlib.redirect_stderr(said):
        run.fit(
            make_model,
            batches,
            total_steps=STEPS,
            steps_per_epoch=2,
            tokens_per_step=1,
            validation_data=batches().take(1),
            patience=patience,
            callbacks=[Told(losses, dies_in)],
        )
    with open(run.path("metrics.csv"), encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)), said.getvalue()


@pytest.mark.quick("losses0-counts0")
@pytest.mark.parametrize(
    ("losses", "counts"),
    [
        ([3.0, 2.0, 2.5, 2.0, 1.0, 0.5], [0, 0, 1, 2]),  # An equal one is not lower.
        ([3.0, 2.0, 2.5, 1.0, 1.5, 0.5], [0, 0, 1, 0, 1, 0]),
        ([3.0, 4.0, 5.0, 1.0, 1.0, 1.0], [0, 1, 2]),
    ],
)
def test_a_run_ends_after_validations_without_a_lower_loss(tmp_path, losses, counts):
    rows, said = train(tmp_path / "run", losses)
    assert [int(row["validations_since_lowest"]) for row in rows] == counts
    _, step = latest_checkpoint(str(tmp_path / "run" / "checkpoints"))
    assert step == 2 * len(counts)
    ended = f"the training ended at step {step}: no new lowest validation loss in 2"
    assert (ended in said) == (step < STEPS)
    again, _ = train(tmp_path / "run", losses)
    assert again == rows


@pytest.mark.slow
@pytest.mark.parametrize("dies_in", [1, 2, 3])
def test_a_killed_run_ends_where_it_would_have(tmp_path, dies_in):
    losses = [3.0, 2.0, 2.5, 2.0, 1.0, 0.5]
    whole, _ = train(tmp_path / "whole", losses)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", losses, dies_in=dies_in)
    rows, _ = train(tmp_path / "run", losses)
    assert rows == whole


@pytest.mark.slow
def test_without_patience_nothing_is_counted(tmp_path):
    rows, said = train(tmp_path / "run", [1.0] * 6, patience=None)
    assert len(rows) == 6 and "validations_since_lowest" not in rows[0]
    assert "lowest" not in said


@pytest.mark.parametrize(
    ("scores", "patience", "steps", "best"),
    [
        ([0.1, 0.3, 0.3, 0.2, 0.9], 2, [1, 2, 3, 4], 2),
        ([0.1, 0.3, 0.2, 0.4, 0.4], 2, [1, 2, 3, 4, 5], 4),
        ([0.5, 0.1, 0.9, 0.9, 0.9], 1, [1, 2], 1),
        ([float("nan"), float("nan"), 0.1, 0.0, 0.0], 2, [1, 2, 3, 4, 5], 3),
    ],
)
def test_the_best_weights_come_back_early(tmp_path, scores, patience, steps, best):
    weights, left = [], iter(scores)

    def evaluate(model):
        weights.append(model.get_weights())
        return {"score": next(left)}

    model = make_model()
    keep = KeepBest(evaluate, "score", 1, tmp_path, patience)
    model.fit(batches(), steps_per_epoch=5, verbose=0, callbacks=[keep])
    with open(tmp_path / "dev_metrics.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == steps
    assert keep.best_step == best
    assert keep.stopped_step == (steps[-1] if steps[-1] - best == patience else None)
    assert int(rows[-1]["evaluations_since_best"]) == steps[-1] - best
    np.testing.assert_array_equal(model.get_weights()[0], weights[best - 1][0])


def test_patience_counts_undefined_metrics_whose_newest_weights_are_kept(tmp_path):
    weights = []

    def evaluate(model):
        weights.append(model.get_weights())
        return {"score": float("nan")}

    model = make_model()
    keep = KeepBest(evaluate, "score", 1, tmp_path, 2)
    model.fit(batches(), steps_per_epoch=5, verbose=0, callbacks=[keep])
    assert keep.best_step == keep.stopped_step == 3
    with open(tmp_path / "dev_metrics.csv", encoding="utf-8", newline="") as file:
        counts = [row["evaluations_since_best"] for row in csv.DictReader(file)]
    assert counts == ["0", "1", "2"]
    np.testing.assert_array_equal(model.get_weights()[0], weights[-1][0])


def test_bad_patience_is_named(tmp_path):
    with pytest.raises(ValueError, match="`patience` must be .*patience=0"):
        KeepBest(len, "score", 1, tmp_path, 0)
    with pytest.raises(ValueError, match="`patience` must be .*patience=0"):
        train(tmp_path / "run", [], patience=0)
    with (
        RunDirectory(tmp_path / "other", {}) as run,
        pytest.raises(ValueError, match="`patience` must be None without"),
    ):
        run.fit(
            make_model,
            batches,
            total_steps=2,
            steps_per_epoch=1,
            tokens_per_step=1,
            patience=1,
        )


def test_steps_and_patience_that_do_not_fit_an_earlier_start(tmp_path):
    def fit(**arguments):
        with RunDirectory(tmp_path / "run", {}) as run:
            return run.fit(
                make_model, batches, steps_per_epoch=2, tokens_per_step=1, **arguments
            )

    fit(total_steps=4)
    with pytest.raises(
        ValueError, match="`total_steps` must .*=2, a checkpoint of .*4"
    ):
        fit(total_steps=2)
    valid = batches().take(1)
    with pytest.raises(ValueError, match="`patience` must be None for .*patience=3"):
        fit(total_steps=8, validation_data=valid, patience=3)
    fit(total_steps=6, validation_data=valid)  # Now some of the rows have a loss.
    with pytest.raises(ValueError, match="`patience` must be None for .*patience=3"):
        fit(total_steps=8, validation_data=valid, patience=3)
    assert fit(total_steps=6).optimizer.iterations == 6


@pytest.mark.parametrize(
    "make",
    [
        lambda path: KeepBest(dict, "score", 1, path),
        lambda path: keras.callbacks.BackupAndRestore(path),
        lambda path: keras.callbacks.SwapEMAWeights(),
        lambda path: keras.callbacks.EarlyStopping(restore_best_weights=True),
    ],
)
def test_a_run_refuses_callbacks_that_put_back_weights(make, tmp_path):
    """The newest checkpoint, with which the next start goes on, has others."""
    with (
        RunDirectory(tmp_path / "run", {}) as run,
        pytest.raises(ValueError, match="`callbacks` must leave the weights"),
    ):
        run.fit(
            make_model,
            lambda skipped: batches(),
            total_steps=2,
            steps_per_epoch=1,
            tokens_per_step=1,
            callbacks=[make(str(tmp_path / "kept"))],
        )
    assert not (tmp_path / "run").exists()
