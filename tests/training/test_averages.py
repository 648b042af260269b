"""Moving averages of weights: in the end, whatever happened on the way."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.subjects.batches import Killed, masked_lm_batches
from tests.subjects.objectives import make_encoder
from tests.subjects.small_runs import Small, X, Y
from tfeff.objectives import MaskedLM
from tfeff.training import (
    AdamW,
    KeepBest,
    RunDirectory,
    latest_checkpoint,
    load_checkpoint,
    train_by_stacking,
)
from tfeff.training.loss_scale import LossScaleOptimizer


def averaging():
    return AdamW(0.05, use_ema=True, ema_momentum=0.9)


class Dies(keras.callbacks.Callback):
    """Ends a training as a kill behind its last checkpoint would."""

    def on_train_end(self, logs=None):
        raise Killed


def train(directory, *callbacks, patience=None):
    def make_model():
        keras.utils.set_random_seed(1)
        model = Small()
        model.compile(averaging(), "mse")
        return model

    data = tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(4)
    with RunDirectory(directory, {}) as run:
        return run.fit(
            make_model,
            data.skip,
            total_steps=8,
            steps_per_epoch=2,
            tokens_per_step=1,
            validation_data=data.take(1),
            patience=patience,
            callbacks=callbacks,
        )


class Flat(keras.callbacks.Callback):
    """Has the validation losses rise, so that `patience` ends the training."""

    def on_epoch_end(self, epoch, logs=None):
        logs["val_loss"] = float(epoch)


@pytest.mark.slow
@pytest.mark.parametrize("patience", [None, 1])
def test_a_run_ends_with_averages_wherever_it_was_killed(tmp_path, patience):
    callbacks = [] if patience is None else [Flat()]
    whole = train(tmp_path / "whole", *callbacks, patience=patience)
    with pytest.raises(Killed):
        train(tmp_path / "killed", *callbacks, Dies(), patience=patience)
    path, step = latest_checkpoint(str(tmp_path / "killed" / "checkpoints"))
    assert step == (8 if patience is None else 4)
    again = train(tmp_path / "killed", *callbacks, patience=patience)
    for one, two in zip(whole.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(one, two)
    saved = load_checkpoint(path)  # Training goes on from the weights themselves.
    assert not np.array_equal(saved.get_weights()[0], whole.get_weights()[0])
    saved.optimizer.finalize_variable_values(saved.trainable_weights)
    np.testing.assert_array_equal(saved.get_weights()[0], whole.get_weights()[0])


@pytest.mark.parametrize(
    ("optimizer", "epochs"),
    [
        (averaging(), 0),
        (LossScaleOptimizer(averaging(), 2.0**120), 1),
        (LossScaleOptimizer(keras.optimizers.SGD(use_ema=True), 2.0**120), 1),
    ],
)
def test_without_an_update_weights_stay(optimizer, epochs):
    """The averages are zeros until then, where all steps overflow, too."""
    model = Small()
    model.compile(optimizer, "mse")
    model.build(X.shape)
    before = model.get_weights()
    assert any(weight.any() for weight in before)
    model.fit(X, 1e30 * Y, batch_size=4, epochs=epochs, verbose=0)
    if not epochs:
        optimizer.build(model.trainable_variables)
        optimizer.finalize_variable_values(model.trainable_weights)
    assert int(optimizer.iterations.numpy()) == 0
    for one, two in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("wrap", [lambda x: x, LossScaleOptimizer])
def test_what_would_mix_averages_with_weights_is_refused(tmp_path, wrap):
    def make_model():
        model = MaskedLM(make_encoder())
        model.compile(wrap(averaging()))
        return model

    with (
        RunDirectory(tmp_path / "run", {}) as run,
        pytest.raises(ValueError, match="`make_model` must have no moving averages"),
    ):
        train_by_stacking(
            run,
            make_model,
            lambda skip: masked_lm_batches().repeat().skip(skip),
            num_layers=2,
            switch_steps=[1],
            total_steps=2,
            steps_per_epoch=1,
            tokens_per_step=1,
        )
    model = Small()
    model.compile(wrap(averaging()), "mse")
    best = KeepBest(lambda model: {"score": 0.0}, "score", 1, tmp_path / "best")
    with pytest.raises(ValueError, match="`optimizer` must have no moving averages"):
        model.fit(X, Y, verbose=0, callbacks=[best])
    assert not (tmp_path / "best").exists()
