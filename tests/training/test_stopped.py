"""Callbacks that stop a run within an epoch, which another start goes on from."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.subjects.small_runs import Small, Stops, X, Y, contents, train
from tfeff.training import Checkpoints, Diverged, load_checkpoint
from tfeff.training.checkpoint_folder import checkpoint_path, checkpoint_steps


def checkpoints(directory):
    return checkpoint_steps(str(directory / "run" / "checkpoints"))


CALLED = {
    2: ["end"],
    8: ["epoch 0", "end"],
    10: ["end"],
    12: ["epoch 1", "end"],
}


@pytest.mark.quick("steps0")
@pytest.mark.parametrize("steps", [[8], [2, 8, 10, 12]])
def test_a_run_goes_on_from_the_step_at_which_it_was_stopped(tmp_path, steps, capsys):
    """Within an epoch, twice in an epoch, and in its last step."""
    whole = train(tmp_path / "whole")
    for step in steps:
        stops = Stops(step)
        _, model = train(tmp_path / "run", stops)
        assert model.optimizer.iterations == step == checkpoints(tmp_path)[-1]
        ended = f"the training ended at step {step}: a callback stopped it\n"
        assert (ended in capsys.readouterr().err) == (step != 12)
        assert stops.called == CALLED[step]  # A part of an epoch is not one's end.
    resumed = train(tmp_path / "run")
    assert contents(resumed[0]) == contents(whole[0])
    for one, two in zip(whole[1].variables, resumed[1].variables, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.slow
def test_a_run_of_several_steps_at_once_goes_on(tmp_path):
    """What is skipped of the epoch are executions, not steps."""
    whole = train(tmp_path / "whole", steps_per_execution=2)
    train(tmp_path / "run", Stops(8), steps_per_execution=2)
    assert checkpoints(tmp_path)[-1] == 8
    resumed = train(tmp_path / "run", steps_per_execution=2)
    assert contents(resumed[0]) == contents(whole[0])
    for one, two in zip(whole[1].variables, resumed[1].variables, strict=True):
        np.testing.assert_array_equal(one, two)


def test_callbacks_are_ended_as_keras_ends_them(tmp_path):
    ends = []
    lambdas = keras.callbacks.LambdaCallback(
        on_train_end=lambda logs: ends.append(logs)
    )
    train(tmp_path / "run", lambdas, Stops(2))
    assert [set(logs) for logs in ends] == [{"loss", "mae"}]


def test_a_stop_in_the_steps_that_are_done_trains_nothing(tmp_path):
    class StopsAtOnce(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = True

    train(tmp_path / "run", Stops(8))
    _, model = train(tmp_path / "run", StopsAtOnce())
    assert model.optimizer.iterations == 8 and checkpoints(tmp_path) == [6, 8]
    model.fit(X, Y, batch_size=4, verbose=0)  # Now all steps train.
    assert model.optimizer.iterations == 13


class Ruins(keras.callbacks.Callback):
    """Makes the weights infinite after a step."""

    def on_train_batch_end(self, batch, logs=None):
        if self.model.optimizer.iterations == 8:
            self.model.trainable_variables[-1].assign([np.inf])


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        ([Ruins(), Stops(8)], "epoch 2: weights are not finite"),
        ([Ruins(), keras.callbacks.TerminateOnNaN()], "epoch 2: loss is inf"),
    ],
)
def test_weights_that_are_not_finite_are_not_saved(tmp_path, callbacks, message):
    with pytest.raises(Diverged, match=message):
        train(tmp_path / "run", *callbacks, keep_checkpoints=1)
    assert checkpoints(tmp_path) == [6]


def test_checkpoints_of_a_training_without_a_run_count_its_steps(tmp_path):
    model = Small()
    model.compile("adam", "mse")
    saves = Checkpoints(str(tmp_path), steps_per_epoch=5)
    model.fit(X, Y, batch_size=4, epochs=3, verbose=0, callbacks=[Stops(7), saves])
    assert checkpoint_steps(str(tmp_path)) == [5, 7]
    loaded = load_checkpoint(checkpoint_path(str(tmp_path), 7))
    assert loaded.optimizer.iterations == 7
    saves = Checkpoints(str(tmp_path), steps_per_epoch=5)
    arguments = {"batch_size": 4, "epochs": 3, "verbose": 0}
    with pytest.raises(ValueError, match="initial_epoch=1` and .*first_step=7`"):
        loaded.fit(X, Y, initial_epoch=1, callbacks=[saves], **arguments)
    saves = Checkpoints(str(tmp_path), steps_per_epoch=5, first_step=7)
    loaded.fit(X, Y, initial_epoch=1, callbacks=[saves], **arguments)
    assert checkpoint_steps(str(tmp_path))[-1] == 15


def unknown(number):
    """Batches whose number Keras does not know."""
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(1).take(number)
    return data.filter(lambda *_: True)


@pytest.mark.parametrize(
    ("data", "steps", "saved"),
    [
        ({"x": X, "y": Y, "batch_size": 5}, 4, []),
        ({"x": unknown(4)}, 4, []),
        ({"x": unknown(8)}, 8, []),
        ({"x": unknown(16), "steps_per_epoch": 6}, 4, [6, 12]),
    ],
)
def test_epochs_of_another_number_of_steps_are_refused(tmp_path, data, steps, saved):
    model = Small()
    model.compile("adam", "mse")
    saves = Checkpoints(str(tmp_path), steps_per_epoch=6)
    message = f"`steps_per_epoch` must be .*, an epoch of {steps} steps"
    with pytest.raises(ValueError, match=message):
        model.fit(**data, epochs=3, verbose=0, callbacks=[saves])
    saves.wait()
    assert checkpoint_steps(str(tmp_path)) == saved


@pytest.mark.parametrize("per_execution", [1, 4])
def test_an_epoch_may_end_within_an_execution(tmp_path, per_execution):
    model = Small()
    model.compile("adam", "mse", steps_per_execution=per_execution)
    saves = Checkpoints(str(tmp_path), steps_per_epoch=6)
    model.fit(unknown(6), epochs=2, verbose=0, callbacks=[saves])
    assert checkpoint_steps(str(tmp_path)) == [6, 12]
