"""Stops a training within an epoch, and resumes it there."""

from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfeff.compat.models import build_metrics
from tfeff.training.checkpoints import Checkpoints
from tfeff.training.workers import (
    gather,
    is_chief,
    several_workers,
    worker_name,
    worker_names,
)


class StoppedWithinEpoch(Exception):
    """Ends Keras' `fit` where a callback stops the training within an epoch.

    Args:
        step: integer, the steps that are done.
        logs: what callbacks are given at the end of the training.
    """

    def __init__(self, step: int, logs: Mapping[str, Any] | None):
        super().__init__(step)
        self.step = step
        self.logs = dict(logs or {})


class StopWithinEpoch(keras.callbacks.Callback):
    """Saves a checkpoint and ends the training after a step.

    It is the step in which a signal came, or after which another callback has set
    `stop_training` of the model. Within an epoch the state of the metrics goes into the
    checkpoint, for `ResumeEpoch`. Where the epoch's last step is done, validation and
    checkpoint of the epoch come first. Place it after all other callbacks.

    Args:
        is_over: called after each step and each epoch, by all of several workers at
            the same moments: whether a signal ends the training now. See `joint_end`.
        check_finite: called with an epoch and its logs so far before a checkpoint
            within the epoch; it raises where the model is not to be saved.
        checkpoints: the callback that saves; of several workers the chief's.
        steps_per_epoch: integer, steps of an epoch.
        first_step: integer, steps that are done when the training begins.

    Raises:
        KeyboardInterrupt: out of `fit`, when the checkpoint is saved after a signal.
        StoppedWithinEpoch: out of `fit`, when it is saved after a callback's stop.
    """

    def __init__(
        self,
        is_over: Callable[[], bool],
        check_finite: Callable[[int, Any], object],
        checkpoints: Checkpoints,
        steps_per_epoch: int,
        first_step: int,
    ):
        super().__init__()
        self._is_over = is_over
        self._check_finite = check_finite
        self._checkpoints = checkpoints
        self._steps_per_epoch = steps_per_epoch
        self._first_step = first_step

    def on_epoch_begin(self, epoch, logs=None):
        self._epoch = epoch
        self._ends = False

    def on_train_batch_end(self, batch, logs=None):
        self._ends = self._is_over()
        is_last = batch + 1 >= self._steps_per_epoch
        if is_last or not (self._ends or self.model.stop_training):
            return
        self._check_finite(self._epoch, logs)
        step = self._epoch * self._steps_per_epoch + batch + 1
        if step > self._first_step:
            state = metrics_state(self.model)
            if is_chief():
                self._checkpoints.save(step, metrics=state)
        if self._ends:
            raise KeyboardInterrupt
        raise StoppedWithinEpoch(max(step, self._first_step), logs)

    def on_epoch_end(self, epoch, logs=None):
        if self._ends or self._is_over():
            raise KeyboardInterrupt


class ResumeEpoch(keras.callbacks.Callback):
    """Makes `fit` begin within an epoch: its first steps do nothing.

    Args:
        num_steps: integer, steps of the first epoch that are done.
        state: the metrics after them, from `metrics_state`.
        batch: what a batch of the training data is made of, its `element_spec`.

    Attributes:
        steps_before: `num_steps`, by which `fit` makes fewer updates.
    """

    def __init__(self, num_steps: int, state: Any, batch: Any):
        super().__init__()
        self._num_steps = self.steps_before = num_steps
        self._state = state
        self._batch = batch
        self._train = None

    def on_epoch_begin(self, epoch, logs=None):
        if not self._num_steps:
            return
        # On one device Keras makes the metrics' variables with the first step only.
        # Functions that `prepare_batch` calls are not traced by it for later steps.
        as_before = tf.config.functions_run_eagerly()
        tf.config.run_functions_eagerly(True)
        try:
            build_metrics(self.model, self._batch)
        finally:
            tf.config.run_functions_eagerly(as_before)
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

    def on_train_end(self, logs=None):
        if self._train is not None:
            self.model.train_function, self._train = self._train, None


def metrics_state(model: keras.Model) -> list:
    """The variables of a model's metrics, of each replica, as lists of numbers.

    All of several workers call it: the replicas are those of all.
    """
    state = [[part.numpy().tolist() for part in parts] for parts in _parts(model)]
    if not several_workers():
        return state
    return [sum(parts, []) for parts in zip(*gather(state).values())]


def _restore_metrics(model, state):
    parts = _parts(model)
    if len(parts) != len(state):
        raise ValueError(
            "The checkpoint within an epoch must be of as many metrics as the model. "
            f"Received: {len(state)} variables, while there are {len(parts)}"
        )
    for variables, values in zip(parts, state, strict=True):
        local = _local_values(values, model)
        for variable, value in zip(variables, local, strict=False):
            variable.assign(tf.constant(value, variable.dtype, variable.shape))


def _local_values(values, model):
    """The values for this worker's replicas, taken from those of all.

    If the values are of another number of replicas, the first of all replicas gets
    their sum and the others get zeros.
    """
    number = model.distribute_strategy.num_replicas_in_sync
    if len(values) != number:
        total = np.sum(values, axis=0)
        values = [total, *[np.zeros_like(total)] * (number - 1)]
    if not several_workers():
        return values
    names = worker_names()
    return values[names.index(worker_name()) * number // len(names) :]


def _parts(model):
    """Each variable of the metrics, as one for every replica of this worker."""
    local = model.distribute_strategy.experimental_local_results
    return [local(v.value) for m in model.metrics for v in m.variables]
