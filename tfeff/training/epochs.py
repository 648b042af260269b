"""Epochs that a signal ends, and that another start goes on with."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfeff.training.checkpoints import Checkpoints
from tfeff.training.held_signals import HeldSignals
from tfeff.training.workers import is_chief, several_workers


class StopAtSignal(keras.callbacks.Callback):
    """Saves a checkpoint and ends the training after the step in which a signal came.

    Within an epoch the state of the metrics goes into the checkpoint, for
    `ResumeEpoch`. Where the epoch's last step is done, validation and checkpoint of
    the epoch come first. Place it after all callbacks that write at an epoch's end.

    Args:
        signals: where signals arrive.
        checkpoints: the callback that saves.
        steps_per_epoch: integer, steps of an epoch.
        first_step: integer, steps that are done when the training begins.

    Raises:
        KeyboardInterrupt: out of `fit`, when the checkpoint is saved.
    """

    def __init__(
        self,
        signals: HeldSignals,
        checkpoints: Checkpoints,
        steps_per_epoch: int,
        first_step: int,
    ):
        super().__init__()
        self._signals = signals
        self._checkpoints = checkpoints
        self._steps_per_epoch = steps_per_epoch
        self._first_step = first_step

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        step = self._epoch * self._steps_per_epoch + batch + 1
        if self._signals.received is None or batch + 1 >= self._steps_per_epoch:
            return
        if step > self._first_step:
            self._checkpoints.save(step, metrics=metrics_state(self.model))
        raise KeyboardInterrupt

    def on_epoch_end(self, epoch, logs=None):
        if self._signals.received is not None:
            raise KeyboardInterrupt


class ResumeEpoch(keras.callbacks.Callback):
    """Makes `fit` begin within an epoch: its first steps do nothing.

    Args:
        num_steps: integer, steps of the first epoch that are done.
        state: the metrics after them, from `metrics_state`.
        batch: what a batch of the training data is made of, its `element_spec`.
    """

    def __init__(self, num_steps: int, state: Any, batch: Any):
        super().__init__()
        self._num_steps = num_steps
        self._state = state
        self._batch = batch
        self._train = None

    def on_epoch_begin(self, epoch, logs=None):
        if not self._num_steps:
            return
        # On one device Keras makes the metrics' variables with the first step only.
        self.model._symbolic_build(data_batch=self._batch)
        _restore_metrics(self.model, self._state)
        train = self._train = self.model.train_function
        logs = self.model.get_metrics_result()
        calls = self._num_steps // self.model.steps_per_execution
        self._num_steps = 0

        def train_or_skip(iterator):
            nonlocal calls
            if calls == 0:
                return train(iterator)
            calls -= 1
            return logs

        self.model.train_function = train_or_skip

    def on_epoch_end(self, epoch, logs=None):
        if self._train is not None:
            self.model.train_function, self._train = self._train, None


def metrics_state(model: keras.Model) -> list:
    """The variables of a model's metrics, of each replica, as lists of numbers."""
    return [[part.numpy().tolist() for part in parts] for parts in _parts(model)]


def _restore_metrics(model, state):
    parts = _parts(model)
    if len(parts) != len(state):
        raise ValueError(
            "The checkpoint within an epoch must be of as many metrics as the model. "
            f"Received: {len(state)} variables, while there are {len(parts)}"
        )
    for variables, values in zip(parts, state, strict=True):
        if len(variables) != len(values) or several_workers():
            values = _in_the_first(values, len(variables))
        for variable, value in zip(variables, values, strict=True):
            variable.assign(tf.constant(value, variable.dtype, variable.shape))


def _in_the_first(values, number):
    """The sum of the replicas' values in the first of all replicas, zeros elsewhere."""
    total = np.sum(values, axis=0)
    first = [total if is_chief() else np.zeros_like(total)]
    return [*first, *[np.zeros_like(total)] * (number - 1)]


def _parts(model):
    """Each variable of the metrics, as one for every replica."""
    local = model.distribute_strategy.experimental_local_results
    return [local(v.value) for m in model.metrics for v in m.variables]
