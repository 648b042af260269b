"""A training whose numbers are none any more ends, and loses nothing."""

import csv
import math
import os

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfeff.training import Diverged, KeepBest, RunDirectory
from tfeff.training.divergence import StopWhenDiverged


def make_model():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    return model


def dataset(skip, bad_step=None):
    """Endless batches; the targets of one step are not numbers."""
    steps = tf.data.Dataset.range(skip, 2**40)
    bad = -1 if bad_step is None else bad_step
    return steps.map(
        lambda step: (
            tf.ones((2, 1)),
            tf.fill((2, 1), tf.where(step == bad, np.nan, 1.0)),
        )
    )


def fit(directory, bad_step=None, **kwargs):
    run = RunDirectory(directory, {})
    return run.fit(
        make_model,
        lambda skip: dataset(skip, bad_step),
        total_steps=20,
        steps_per_epoch=5,
        tokens_per_step=1,
        keep_checkpoints=1,
        **kwargs,
    )


def steps(directory):
    if not (directory / "metrics.csv").exists():
        return []
    with open(directory / "metrics.csv", encoding="utf-8", newline="") as file:
        return [int(row["step"]) for row in csv.DictReader(file)]


class Ruins(keras.callbacks.Callback):
    """Makes the weights infinite at the end of an epoch, whose loss is finite."""

    def on_epoch_end(self, epoch, logs=None):
        if epoch == 2:
            for weight in self.model.weights:
                weight.assign(weight * np.inf)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"bad_step": 12}, "epoch 3: loss is nan.*checkpoints keeps"),
        ({"callbacks": [Ruins()]}, "epoch 3: weights are not finite"),
        (
            {"validation_data": dataset(0, 0).take(2), "bad_step": 7},
            "epoch 1: val_loss is nan",
        ),
    ],
)
def test_the_first_epoch_that_is_not_finite_ends_it(tmp_path, how, message):
    with pytest.raises(Diverged, match=message):
        fit(tmp_path, **how)
    diverged = 5 if "val_loss" in message else 15
    assert steps(tmp_path) == list(range(5, diverged, 5))
    kept = ["step-00000010.keras"] if diverged == 15 else []
    checkpoints = tmp_path / "checkpoints"
    assert (os.listdir(checkpoints) if checkpoints.exists() else []) == kept

    model = fit(tmp_path)
    assert steps(tmp_path) == [5, 10, 15, 20]
    for weight, expected in zip(model.weights, fit(tmp_path / "whole").weights):
        np.testing.assert_array_equal(weight, expected)


def test_keep_best_ends_and_gives_the_best_back(tmp_path):
    model = make_model()
    scores = iter([0.1, 0.4])
    best = KeepBest(lambda model: {"score": next(scores)}, "score", 2, tmp_path)
    history = model.fit(
        dataset(0, 3), steps_per_epoch=20, verbose=0, shuffle=False, callbacks=[best]
    )
    assert best.diverged_step == 4 and np.isnan(history.history["loss"][0])


@pytest.mark.parametrize("first", [0.1, math.nan])
def test_keep_best_never_prefers_weights_that_are_not_finite(tmp_path, first):
    model = make_model()
    scores = iter([first, 0.4])
    best = KeepBest(lambda model: {"score": next(scores)}, "score", 2, tmp_path)
    model.fit(
        dataset(0, 3), steps_per_epoch=20, verbose=0, shuffle=False, callbacks=[best]
    )
    assert best.best_step == 2
    assert all(np.isfinite(weight).all() for weight in model.get_weights())


@pytest.mark.parametrize("name", ["loss", "val_loss"])
def test_both_losses_tell_it(name):
    logs = {"loss": 1.0, "val_loss": 1.0, name: math.nan}
    with pytest.raises(Diverged, match=f"in epoch 3: {name} is nan"):
        StopWhenDiverged().on_epoch_end(2, logs)
