"""A training of one epoch that a signal saves, and that the next start goes on with."""

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

from tfeff.training.epochs import ResumeEpoch, metrics_state
from tfeff.training.held_signals import HeldSignals
from tfeff.training.keep_best import KeepBest
from tfeff.utils.digests import check_digests, write_digests
from tfeff.utils.files import atomic_folder, put_back
from tfeff.utils.json_files import read_object
from tfeff.utils.naming import advised
from tfeff.utils.reading import is_there
from tfeff.utils.safetensors import write_safetensors

_STATE, _WEIGHTS = "state.json", "weights.safetensors"


def interrupted_step(folder: str) -> int:
    """The steps after which a signal ended a training; 0 if none has.

    Args:
        folder: where `fit` of this module has saved it.

    Raises:
        ValueError: if a file is damaged.
    """
    put_back(folder)
    if not is_there(folder):
        return 0
    with _with_remedy(folder):
        check_digests(folder)
        return int(read_object(os.path.join(folder, _STATE))["step"])


def fit(
    model: keras.Model,
    batches: tf.data.Dataset,
    steps: int,
    folder: str,
    signals: HeldSignals,
    callbacks: Sequence[keras.callbacks.Callback],
    best: KeepBest | None = None,
) -> keras.callbacks.History:
    """Trains for so many steps, from the one at which a signal ended an earlier start.

    After the step in which a signal came, and the evaluation behind it, weights,
    optimizer, metrics and the best weights so far are saved. The training then has the
    numbers of one that no signal has ended. Of the last step nothing is saved: the
    training comes to its end. A kill saves nothing: the next start begins with what an
    earlier signal has saved, or anew. A line tells where it goes on.

    Args:
        model: the compiled model, made as in the earlier start.
        batches: the endless training data from its first batch on, which are the same
            in each start.
        steps: integer, steps of the training.
        folder: where a signal saves it; its parent must exist.
        signals: those that are held back, until what is made of the model is saved.
        callbacks: those of the training beside `best`, which is called before them. Of
            the steps that are done they are told, too.
        best: keeps the best weights, if given.

    Returns:
        What Keras' `fit` returns.

    Raises:
        ValueError: if the folder is damaged, or of another model.
        KeyboardInterrupt: after a signal.
    """
    step = interrupted_step(folder)
    metrics = None
    if step:
        print(f"  it goes on from step {step:,} of {steps:,}")
        metrics = _restore(model, folder, best)
        batches = batches.skip(step)
    return model.fit(
        batches,
        steps_per_epoch=steps,
        shuffle=False,  # The data set does it.
        verbose=0,
        callbacks=[
            ResumeEpoch(step, metrics, batches.element_spec),
            *([best] if best else []),
            *callbacks,
            _SaveAfterSignal(signals, step, steps, folder, best),
        ],
    )


def _with_remedy(folder):
    advice = f"Delete {folder} to begin this training anew"
    return advised(advice, (FileNotFoundError, ValueError))


class _SaveAfterSignal(keras.callbacks.Callback):
    """Saves the training after the step in which a signal came, and ends it."""

    def __init__(self, signals, first_step, steps, folder, best):
        super().__init__()
        self._signals = signals
        self._first_step = first_step
        self._steps = steps
        self._folder = folder
        self._best = best

    def on_train_batch_end(self, batch, logs=None):
        is_last = batch + 1 >= self._steps or self.model.stop_training
        if self._signals.received is None or is_last:
            return
        if batch + 1 > self._first_step:  # Else it is saved as it is.
            _save(self.model, self._folder, batch + 1, self._best)
        raise KeyboardInterrupt


def _save(model, folder, step, best):
    state: dict[str, Any] = {"step": step, "metrics": metrics_state(model)}
    arrays = {
        f"variables/{index}": keras.ops.convert_to_numpy(variable)
        for index, variable in enumerate(_variables(model))
    }
    if best is not None:
        state["best"], weights = best.state()
        arrays |= {f"best/{index}": weight for index, weight in enumerate(weights)}
    with atomic_folder(folder, replace=True) as unfinished:
        os.mkdir(unfinished)
        with open(os.path.join(unfinished, _STATE), "w", encoding="utf-8") as file:
            json.dump(state, file)
        write_safetensors(os.path.join(unfinished, _WEIGHTS), arrays, {})
        write_digests(unfinished)


def _restore(model, folder, best):
    """Puts everything back; returns the state of the metrics."""
    with _with_remedy(folder):
        state = read_object(os.path.join(folder, _STATE))
    arrays = load_file(os.path.join(folder, _WEIGHTS))
    if not model.optimizer.built:
        model.optimizer.build(model.trainable_variables)
    variables = _variables(model)
    values = list(_numbered(arrays, "variables"))
    if [v.shape for v in variables] != [x.shape for x in values]:
        raise ValueError(
            f"{folder} must be of this model and optimizer. It is of others: delete "
            "it, for the training to begin anew"
        )
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)
    if best is not None:
        best.restore(state["best"], list(_numbered(arrays, "best")))
    return state["metrics"]


def _variables(model) -> list[keras.Variable]:
    """Weights, seeds of dropout, and the optimizer's variables."""
    return [*model.variables, *model.optimizer.variables]


def _numbered(arrays, kind) -> Iterator[np.ndarray]:
    index = 0
    while (name := f"{kind}/{index}") in arrays:
        yield arrays[name]
        index += 1
