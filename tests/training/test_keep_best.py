"""The best weights on a development set: kept, written down and put back."""

import csv
import math

import keras
import numpy as np
import pytest

from tfeff.training import KeepBest

X, Y = np.ones((24, 1), "float32"), np.zeros((24, 1), "float32")


def make_model(**kwargs):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse", **kwargs)
    return model


class Scores:
    """Gives one score after another, and remembers the weights it was given for."""

    def __init__(self, *values):
        self.values = values
        self.weights = []

    def __call__(self, model):
        self.weights.append(model.get_weights())
        return {"other": 7, "score": self.values[len(self.weights) - 1]}


def train(directory, scores, every_steps=2, epochs=1, **kwargs):
    """Trains for 6 steps an epoch."""
    model = make_model(**kwargs)
    best = KeepBest(scores, "score", every_steps, directory)
    history = model.fit(X, Y, 4, epochs, verbose=0, shuffle=False, callbacks=[best])
    return model, best, history.history


def rows(directory):
    with open(directory / "dev_metrics.csv", encoding="utf-8", newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]


@pytest.mark.parametrize(
    ("values", "place", "best_so_far"),
    [
        ((0.1, 0.3, 0.2), 1, (0.1, 0.3, 0.3)),
        ((0.3, 0.3, 0.3), 0, (0.3, 0.3, 0.3)),
        ((math.nan, -2.0, math.nan), 1, (math.nan, -2.0, -2.0)),
        ((math.nan, math.nan, math.nan), 2, (math.nan,) * 3),
        ((math.nan, -math.inf, math.nan), 1, (math.nan, -math.inf, -math.inf)),
        ((-math.inf, math.nan, 0.0), 2, (-math.inf, -math.inf, 0.0)),
    ],
)
def test_the_best_weights_come_back(tmp_path, values, place, best_so_far):
    scores = Scores(*values)
    model, best, _ = train(tmp_path / "new" / "folder", scores)
    for kept, expected in zip(model.get_weights(), scores.weights[place], strict=True):
        np.testing.assert_array_equal(kept, expected)
    assert not np.array_equal(scores.weights[0][0], scores.weights[-1][0])
    assert best.best_step == 2 * (place + 1)
    np.testing.assert_equal(best.best, {"other": 7.0, "score": values[place]})
    table = rows(tmp_path / "new" / "folder")
    assert [int(row["step"]) for row in table] == [2, 4, 6]
    assert list(table[0]) == ["step", "other", "score", "best_score"]
    np.testing.assert_equal([float(row["score"]) for row in table], list(values))
    np.testing.assert_equal([float(r["best_score"]) for r in table], list(best_so_far))


@pytest.mark.parametrize(
    ("every_steps", "epochs", "steps_per_execution", "expected"),
    [
        (4, 2, 1, [4, 8, 12]),  # Epochs of 6 steps: counted through.
        (4, 1, 1, [4, 6]),  # The end is evaluated too, once.
        (100, 1, 1, [6]),
        (2, 2, 3, [3, 6, 9, 12]),
    ],
)
def test_when_it_evaluates(
    tmp_path, every_steps, epochs, steps_per_execution, expected
):
    scores = Scores(*range(4))
    train(
        tmp_path,
        scores,
        every_steps,
        epochs,
        steps_per_execution=steps_per_execution,
    )
    assert [int(row["step"]) for row in rows(tmp_path)] == expected


def test_the_metrics_of_the_training_stay_its_own(tmp_path):
    def evaluate(model):
        return {"score": -model.evaluate(X + 5, Y, 4, verbose=0)}

    keras.utils.set_random_seed(0)
    _, best, history = train(tmp_path, evaluate, every_steps=4)
    keras.utils.set_random_seed(0)
    plain = make_model().fit(X, Y, 4, verbose=0, shuffle=False).history
    assert history["loss"] == plain["loss"]
    assert set(history) == {"loss", "dev_score"}
    assert best.best_step == 6


@pytest.mark.parametrize("every_steps", [4, 1000])
def test_callbacks_see_the_last_evaluation(tmp_path, every_steps):
    seen = []
    see = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: seen.append(logs.get("dev_score"))
    )
    best = KeepBest(Scores(0.1, 0.2, 0.3), "score", every_steps, tmp_path)
    model = make_model()
    model.fit(X, Y, 4, 2, verbose=0, callbacks=[best, see])
    evaluated = [float(row["score"]) for row in rows(tmp_path)]
    assert seen[-1] == evaluated[-1] and len(seen) == 2
    assert len(evaluated) == (3 if every_steps == 4 else 1)


def test_bad_arguments_are_named(tmp_path):
    with pytest.raises(TypeError, match="`evaluate` must be .*Received"):
        KeepBest({"score": 1.0}, "score", 1, tmp_path)
    with pytest.raises(ValueError, match="`every_steps` must be .*every_steps=0"):
        KeepBest(Scores(), "score", 0, tmp_path)
    with pytest.raises(ValueError, match="must return 'score'.*'accuracy'"):
        train(tmp_path, lambda model: {"accuracy": 1.0})
    for metric in ("loss", "val_loss", "mae"):
        with pytest.raises(ValueError, match="`metric` must choose .* 'negative_"):
            KeepBest(Scores(), metric, 1, tmp_path)
    for found in ([0.5], None, {"score": "high"}, {"score": np.ones(2)}):
        with pytest.raises(TypeError, match="`evaluate` must return a mapping .*True"):
            train(tmp_path, lambda model, found=found: found)
    (tmp_path / "dev_metrics.csv").write_text("precious")
    with pytest.raises(ValueError, match="`directory` must not hold dev_metrics.csv"):
        KeepBest(Scores(), "score", 1, tmp_path)
    assert (tmp_path / "dev_metrics.csv").read_text() == "precious"


def test_a_relative_folder_stays_where_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    best = KeepBest(Scores(0.5), "score", 6, "kept")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    make_model().fit(X, Y, 4, verbose=0, callbacks=[best])
    assert len(rows(tmp_path / "kept")) == 1
