"""Ctrl-C and SIGTERM end a run after a step, which another start goes on from."""

import os
import signal

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.checks import two_replicas
from tests.subjects.small_runs import Raises, Small, X, Y, contents, train
from tfeff.training import Checkpoints, RunDirectory
from tfeff.training.checkpoint_folder import checkpoint_steps
from tfeff.training.epochs import _restore_metrics, metrics_state
from tfeff.training.held_signals import HeldSignals


def assert_equal(one, two):
    assert contents(one[0]) == contents(two[0])
    for a, b in zip(one[1].variables, two[1].variables, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("steps_per_execution", [1, 2])
def test_a_run_that_signals_end_goes_on_to_the_same_bits(tmp_path, steps_per_execution):
    whole = train(tmp_path / "whole", steps_per_execution=steps_per_execution)
    steps = {"steps_per_execution": steps_per_execution}
    # Within an epoch; in its last step; twice in an epoch; while it is validated.
    for place in (
        {"step": 2},
        {"step": 6},
        {"step": 8},
        {"step": 10},
        {"validation": 12},
    ):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "run", Raises(signal.SIGINT, **place), **steps)
        newest = sorted(os.listdir(tmp_path / "run" / "checkpoints"))[-1]
        assert newest == f"step-{[*place.values()][0]:08d}.keras"
    assert_equal(train(tmp_path / "run", **steps), whole)


@pytest.mark.slow
def test_on_several_replicas(tmp_path):
    settings = {"strategy": two_replicas(), "steps_per_execution": 2}
    whole = train(tmp_path / "whole", **settings)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", Raises(signal.SIGINT, step=8), **settings)
    assert_equal(train(tmp_path / "run", **settings), whole)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "one", Raises(signal.SIGINT, step=8), **settings)
    # Another number of replicas goes on, with masks of dropout that are others.
    table, checkpoints = contents(train(tmp_path / "one", steps_per_execution=2)[0])
    assert checkpoints == contents(whole[0])[1] and len(table.splitlines()) == 4


@pytest.mark.parametrize(
    "state", [[[[6.0]], [[3.0]]], [[[2.0], [4.0]], [[1.0], [2.0]]]]
)
@pytest.mark.parametrize("strategy", [tf.distribute.get_strategy, two_replicas])
def test_metrics_of_other_numbers_of_replicas(state, strategy):
    with strategy().scope():
        model = Small()
        model.compile("sgd", "mse")
        model.evaluate(X[:2], Y[:2], verbose=0)
        _restore_metrics(model, state)
        assert float(model.metrics[0].result()) == 2
        # Of twice as much the mean is 2, too.
        assert [np.sum(parts) for parts in metrics_state(model)] == [6, 3]


def test_a_second_signal_ends_at_once(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", Raises(signal.SIGINT, signal.SIGINT, step=8))
    assert os.listdir(tmp_path / "run" / "checkpoints") == ["step-00000006.keras"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_does_what_it_would_have_done(number, tmp_path):
    received = []
    previous = signal.signal(number, lambda number, _: received.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):  # The model is not trained.
            train(tmp_path / "run", Raises(number, step=3))
        assert received == [number]
        assert signal.getsignal(number) is not previous
    finally:
        signal.signal(number, previous)
    assert os.listdir(tmp_path / "run" / "checkpoints") == ["step-00000003.keras"]


def test_signals_that_are_ignored_stay_so():
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with HeldSignals() as signals:
            signal.raise_signal(signal.SIGINT)
        assert signals.received is None
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)


def test_the_first_signal_says_that_it_waits(capfd):
    """Who sees nothing happen sends a second one, which saves nothing."""
    with pytest.raises(KeyboardInterrupt), HeldSignals():
        signal.raise_signal(signal.SIGINT)
        assert capfd.readouterr().err == (
            "SIGINT: waits for the work at hand. A second one does not.\n"
        )
        signal.raise_signal(signal.SIGINT)
    assert not capfd.readouterr().err


def test_an_error_is_not_hidden_by_a_signal():
    with pytest.raises(ZeroDivisionError), HeldSignals():
        signal.raise_signal(signal.SIGINT)
        raise ZeroDivisionError


def test_epochs_of_another_length_are_refused(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", Raises(signal.SIGINT, step=4))
    with pytest.raises(ValueError, match="steps_per_epoch=3, a checkpoint of step 4"):
        RunDirectory(tmp_path / "run", {}).fit(
            None, None, total_steps=18, steps_per_epoch=3, tokens_per_step=1
        )
    # Of epochs of 2 steps there would be no row of the steps before the fourth.
    with pytest.raises(ValueError, match="steps_per_epoch=2, a checkpoint of step 4"):
        RunDirectory(tmp_path / "run", {}).fit(
            None, None, total_steps=18, steps_per_epoch=2, tokens_per_step=1
        )


def test_a_checkpoint_within_an_epoch_is_one_of_none_that_are_kept(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile()
    checkpoints = Checkpoints(str(tmp_path), steps_per_epoch=2, keep=2)
    checkpoints.set_model(model)
    for step in (1, 2, 4, 5):
        checkpoints.save(step)
    checkpoints.wait()
    assert sorted(os.listdir(tmp_path)) == [f"step-0000000{n}.keras" for n in (2, 4, 5)]
    checkpoints.save(6)
    checkpoints.wait()
    assert sorted(os.listdir(tmp_path)) == [f"step-0000000{n}.keras" for n in (4, 6)]


@pytest.mark.parametrize("first", [0, 10])
def test_of_checkpoints_within_an_epoch_the_newest_two_are_kept(first, tmp_path):
    """Before the first whole checkpoint, and after one."""
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile()
    checkpoints = Checkpoints(str(tmp_path), steps_per_epoch=10, keep=1)
    checkpoints.set_model(model)
    for step in (*([first] if first else []), *range(first + 1, first + 6)):
        checkpoints.save(step)
    checkpoints.wait()
    whole = [first] if first else []
    assert checkpoint_steps(str(tmp_path)) == [*whole, first + 4, first + 5]
