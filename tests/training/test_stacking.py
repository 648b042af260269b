"""Stages of growing depth: where they end, what is written, killed and resumed."""

import csv
import math
import os

import keras
import numpy as np
import pytest

import tfeff
from tests.subjects.batches import Killed, masked_lm_batches
from tests.subjects.objectives import make_masked_lm
from tfeff.training import (
    AdamW,
    RunDirectory,
    double_depth,
    load_checkpoint,
    train_by_stacking,
)
from tfeff.training.checkpoint_folder import checkpoint_path, checkpoint_steps
from tfeff.training.early_stopping import since_lowest
from tfeff.training.stacking import _losses_of_stage

LAYERS = 4


def train(directory, dies_after=None, **arguments):
    """Three stages, of 1, 2 and 4 layers; dies before the batch `dies_after`."""

    def batches(skip):
        import tensorflow as tf

        def generate():
            keras.utils.set_random_seed(99)  # Whatever the process did before.
            endless = masked_lm_batches(batches=3).repeat()
            for index, batch in enumerate(endless.skip(skip), start=skip):
                if index == dies_after:
                    raise Killed
                yield batch

        return tf.data.Dataset.from_generator(
            generate, output_signature=masked_lm_batches().element_spec
        )

    def model():
        keras.utils.set_random_seed(0)
        return make_masked_lm("shatter_tiny", dropout=0.2, encoder=dict(num_layers=1))

    run = RunDirectory(directory, {"seed": 0})
    settings = dict(
        num_layers=LAYERS,
        switch_steps=[2, 4],
        total_steps=6,
        steps_per_epoch=2,
        tokens_per_step=44,
        validation_data=masked_lm_batches(batches=1, seed=1),
        keep_checkpoints=1,
    )
    return run, train_by_stacking(run, model, batches, **settings | arguments)


def column(run, name):
    with open(run.path("metrics.csv"), encoding="utf-8", newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def table(run):
    with open(run.path("metrics.csv"), encoding="utf-8") as file:
        return file.read()


def literal_end(losses, patience):
    """How many losses are seen before one stops, going on from each new lowest."""
    for seen in range(1, len(losses) + 1):
        best = min(range(seen), key=lambda i: (losses[i], i))
        if seen - 1 - best >= patience:
            return seen
    return None


def test_levelling_off():
    rng = np.random.default_rng(0)
    for _ in range(300):
        losses = rng.integers(0, 5, rng.integers(1, 9)).astype(float).tolist()
        for patience in (1, 2, 3):
            ends = [
                n
                for n in range(1, len(losses) + 1)
                if since_lowest(losses[:n]) >= patience
            ]
            assert (ends or [None])[0] == literal_end(losses, patience)
    assert since_lowest([]) == 0 and since_lowest([math.nan]) == 1
    assert since_lowest([math.nan, 2.0, math.nan]) == 1


@pytest.mark.slow
def test_stages_by_steps_and_a_killed_run(tmp_path):
    whole, model = train(tmp_path / "whole")
    assert model.encoder.num_layers == LAYERS
    assert int(model.optimizer.iterations.numpy()) == 6
    assert column(whole, "step") == ["2", "4", "6"]
    assert column(whole, "num_layers") == ["1", "2", "4"]
    assert os.listdir(whole.path("checkpoints")) == ["step-00000006.keras"]
    rates = [float(rate) for rate in column(whole, "learning_rate")]
    assert rates[0] < rates[1] < 1e-3 and rates[2] < 1e-3  # One schedule for all.
    with pytest.raises(Exception, match="Killed"):
        train(tmp_path / "killed", dies_after=5)
    resumed, again = train(tmp_path / "killed")
    assert table(resumed) == table(whole)
    for one, two in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(two, one)


@pytest.mark.slow
def test_new_moments_do_not_begin_the_schedule_anew(tmp_path):
    copied, _ = train(tmp_path / "copied")
    with pytest.raises(Exception, match="Killed"):
        train(tmp_path / "reset", dies_after=5, optimizer="reset")
    reset, model = train(tmp_path / "reset", optimizer="reset")
    assert column(reset, "learning_rate") == column(copied, "learning_rate")
    assert column(reset, "loss")[0] == column(copied, "loss")[0]
    assert column(reset, "loss")[2] != column(copied, "loss")[2]
    assert int(model.optimizer.iterations.numpy()) == 2


@pytest.mark.slow
def test_a_run_killed_in_its_first_stage_or_before_it_grew(tmp_path, monkeypatch):
    whole, model = train(tmp_path / "whole")
    with pytest.raises(Exception, match="Killed"):
        train(tmp_path / "first", dies_after=1)

    def killed(*args):
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr("tfeff.training.stacking.double_depth", killed)
        train(tmp_path / "before")
    for name in ("first", "before"):
        resumed, again = train(tmp_path / name)
        assert table(resumed) == table(whole)
        for one, two in zip(model.get_weights(), again.get_weights(), strict=True):
            np.testing.assert_array_equal(two, one)


@pytest.mark.slow
def test_a_plateau_ends_a_stage_before_its_step(tmp_path, monkeypatch):
    """The later stages do not move anything: each loss after their first is flat."""
    settings = dict(
        switch_steps=[12, 14], total_steps=16, patience=2, steps_per_epoch=1
    )

    def still(model, optimizer):
        model = double_depth(model, optimizer)
        model.compile(AdamW(1e-30))
        model.optimizer.build(model.trainable_variables)
        return model

    monkeypatch.setattr("tfeff.training.stacking.double_depth", still)
    run, model = train(tmp_path / "run", **settings)
    losses = [float(x) for x in column(run, "val_loss")]
    depths = column(run, "num_layers")
    first = depths.count("1")
    assert first == min(literal_end(losses[:first], 2) or 99, 12)
    # A lowest loss and two that are not lower, then the last depth.
    assert depths[first:] == ["2"] * 3 + ["4"] * (16 - first - 3)
    assert int(model.optimizer.iterations.numpy()) == 16 - first - 3

    with pytest.raises(Exception, match="Killed"):
        train(tmp_path / "killed", first + 2, **settings)
    resumed, _ = train(tmp_path / "killed", **settings)
    assert table(resumed) == table(run)


class Flat(keras.callbacks.Callback):
    """Makes all validation losses equal, and may stop the training after an epoch."""

    def __init__(self, last=None):
        super().__init__()
        self.last = last

    def on_epoch_end(self, epoch, logs=None):
        logs["val_loss"] = 1.0
        if epoch == self.last:
            self.model.stop_training = True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "patience", "depths"),
    [
        pytest.param(0, None, "1112", id="within_stage"),
        pytest.param(2, None, "1112", id="last_of_stage"),
        pytest.param(1, 1, "1122", id="at_plateau"),
    ],
)
def test_a_callback_ends_all_stages(tmp_path, last, patience, depths, capsys):
    settings = dict(
        num_layers=2,
        switch_steps=[3],
        total_steps=4,
        steps_per_epoch=1,
        patience=patience,
    )
    run, model = train(tmp_path / "run", callbacks=[Flat(last)], **settings)
    assert model.encoder.num_layers == 1
    assert int(model.optimizer.iterations.numpy()) == last + 1
    assert checkpoint_steps(run.path("checkpoints")) == [last + 1]
    run, model = train(tmp_path / "run", callbacks=[Flat()], **settings)
    assert "".join(column(run, "num_layers")) == depths
    lines = capsys.readouterr().err.splitlines()  # Of the whole run, in each stage.
    told = [line.split()[1] for line in lines if line.startswith("step ")]
    assert told == ["1/4", "2/4", "3/4", "4/4"]
    assert int(model.optimizer.iterations.numpy()) == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(switch_steps=[4, 2]), "`switch_steps`.*4, 2"),
        (dict(switch_steps=[2, 6]), "`switch_steps`.*total_steps=6"),
        (dict(switch_steps=[1, 2]), "`steps_per_epoch`.*1, 2"),
        (dict(switch_steps=[2]), "`num_layers`.*num_layers=4, a model of 1 layers"),
        (dict(num_layers=2), "`make_model`.*num_layers=2"),
        (dict(num_layers=3), "`num_layers`.*num_layers=3"),
        (dict(patience=0), "`patience`.*0"),
        (dict(optimizer="new"), "`optimizer` must be.*'new'"),
        (dict(patience=1, validation_data=None), "`patience`.*validation_data"),
    ],
)
def test_wrong_arguments_are_named(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        train(tmp_path / "run", **arguments)
    assert os.listdir(tmp_path / "run") == ["config.json"]


@pytest.mark.parametrize("name", ["switch_steps", "total_steps"])
def test_steps_that_are_no_integers_are_named(tmp_path, name):
    value = {"switch_steps": [2, 3.5], "total_steps": 6.5}[name]
    with pytest.raises(TypeError, match=f"`{name}` must be an integer"):
        train(tmp_path / "run", **{name: value})


@pytest.mark.slow
def test_steps_to_keep_are_of_all_stages(tmp_path):
    with pytest.raises(Exception, match="Killed"):
        train(tmp_path / "run", 3, keep_steps=[2, 4], steps_per_epoch=1)
    run, _ = train(tmp_path / "run", keep_steps=[2, 4], steps_per_epoch=1)
    folder = run.path("checkpoints")
    assert checkpoint_steps(folder) == [2, 4, 6]
    depths = [
        load_checkpoint(checkpoint_path(folder, step)).encoder.num_layers
        for step in (2, 4)
    ]
    assert depths == [2, 4]  # Each grew at its step.


def test_patience_needs_the_losses_of_the_stage():
    rows = [{"num_layers": "1"}, {"num_layers": "2", "val_loss": "0.5"}]
    with pytest.raises(ValueError, match="`patience` must be None for .*patience=2"):
        _losses_of_stage(rows, 1, 2)
    assert _losses_of_stage(rows, 2, 1) == [0.5]
    assert _losses_of_stage(rows, 1, None) == []


@pytest.mark.parametrize(
    "make",
    [
        lambda path: tfeff.training.KeepBest(dict, "f1", 1, path),
        lambda path: keras.callbacks.EarlyStopping(restore_best_weights=True),
    ],
)
def test_callbacks_that_put_back_weights_are_refused(make, tmp_path):
    with pytest.raises(ValueError, match="`callbacks` must leave the weights"):
        train(tmp_path / "run", callbacks=[make(str(tmp_path))])
    assert not (tmp_path / "run" / "metrics.csv").exists()
