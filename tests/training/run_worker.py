"""A worker of a run, which a signal ends where the tests tell it to."""

import ctypes
import os
import pathlib
import signal
import threading
import time

import keras
import numpy as np
import tensorflow as tf

import tfeff
from tests.subjects.clusters import cluster, run_workers
from tfeff.data.dataset_options import finalize
from tfeff.utils.files import atomic_file
from tfeff.utils.parallel import end_with_parent

STEPS, STEPS_PER_EPOCH = 8, 2


def make_model(dropout):
    keras.utils.set_random_seed(0)
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=30,
        num_layers=1,
        hidden_dim=8,
        num_heads=2,
        intermediate_dim=16,
        max_sequence_length=12,
        dropout=dropout,
    )
    model = tfeff.objectives.MaskedLM(encoder)
    model.compile(tfeff.training.adamw(1e-2, 2, STEPS))
    return model


def batches(skip, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(5, 30, (60, 12)).astype("int32")
    inputs = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
        "mask_positions": np.tile(np.arange(3, dtype="int32"), (60, 1)),
    }
    weights = rng.integers(0, 2, (60, 3)).astype("float32")
    dataset = tf.data.Dataset.from_tensor_slices((inputs, ids[:, :3], weights))
    return finalize(dataset.batch(12).repeat().skip(skip))


class DieAt(keras.callbacks.Callback):
    """Kills the process in a phase of training, or tells it to end there."""

    def __init__(self, phase, run):
        super().__init__()
        self._phase = phase
        self._run = run
        self._step = None

    def on_train_begin(self, logs=None):
        self._die_in("before the first step")
        self._save = self.model.save
        if self._run.is_chief:
            self.model.save = self._watched_save

    def on_train_batch_end(self, batch, logs=None):
        self._step = int(self.model.optimizer.iterations.numpy())
        self._die_in(f"after step {self._step}")

    def on_test_batch_end(self, batch, logs=None):
        if self._step:
            self._die_in(f"in the validation after step {self._step}")

    def on_epoch_end(self, epoch, logs=None):
        folder = pathlib.Path(self._run.path("checkpoints"))
        name = f"step-{self._step:08d}.keras"
        path = {
            f"in the save of step {self._step}": f".partial-*/{name}",
            f"when step {self._step} is saved": name,
        }.get(self._phase)
        if path and not self._run.is_chief:
            while not any(map(list, (folder.glob(path), folder.glob(name)))):
                time.sleep(0.01)
            die()

    def _watched_save(self, path, **kwargs):
        step = int(pathlib.Path(path).stem.partition("-")[2])
        if self._phase.endswith(f"busy in the save of step {step}"):
            ctypes.PyDLL(None).sleep(20)  # No thread of Python's runs meanwhile.
        self._save(path, **kwargs)
        if self._phase == f"in the save of step {step}":
            os.truncate(path, os.path.getsize(path) // 2)
            die()
        if self._phase == f"told in the save of step {step}":
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)  # The signal would end the process by now.
        if self._phase == f"when step {step} is saved":
            threading.Thread(target=self._die_when_there_is, args=(step,)).start()

    def _die_when_there_is(self, step):
        name = f"step-{step:08d}.keras"
        while not os.path.exists(self._run.path("checkpoints", name)):
            time.sleep(0.01)
        die()

    def _die_in(self, phase):
        if self._phase == phase:
            die()
        if self._phase == f"told {phase}":
            self._phase = ""  # A second signal would act at once.
            os.kill(os.getpid(), signal.SIGTERM)
        if self._phase == f"frozen {phase}":
            os.kill(os.getpid(), signal.SIGSTOP)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


@tfeff.training.lost_workers_named()
def main(config, directory, phase, log, dropout):
    """Trains in `directory`, which is that of all workers."""
    end_with_parent()
    with open(log, "wb") as errors:
        os.dup2(errors.fileno(), 2)
    os.environ["TF_CONFIG"] = config
    tf.config.set_visible_devices([], "GPU")
    strategy = tfeff.training.make_strategy("multi_worker")
    if phase == "before the run":
        die()
    settings = dict(pair.split("=") for pair in phase.split() if "=" in pair)
    with strategy.scope():
        run = tfeff.training.RunDirectory(
            settings.get("directory", directory), {"seed": settings.get("seed", 0)}
        )
        model = run.fit(
            lambda: make_model(dropout),
            lambda skip: batches(skip, int(settings.get("data", 0))),
            total_steps=STEPS,
            steps_per_epoch=STEPS_PER_EPOCH,
            tokens_per_step=144,
            validation_data=batches(0, 1).take(2),
            keep_checkpoints=int(settings.get("keep", 1)),
            callbacks=[DieAt(phase, run)],
        )
        loss, _ = model.evaluate(batches(0, 1).take(2), verbose=0)
    if phase == "in the export" and not run.is_chief:
        die()

    def export():
        with atomic_file(run.path("export.npz")) as path:
            np.savez(path, *model.get_weights(), loss=loss)
            if phase == "in the export":
                os.truncate(path, os.path.getsize(path) // 2)
                die()

    run.by_chief(export, lambda: None, files=())
    run.close()


def train(run, num_workers, phases=(), dropout=0.1):
    """Starts workers, each of which does what `phases` tells it; waits for all.

    Returns:
        The exit statuses, and what the workers wrote to standard error.
    """
    phases = dict.fromkeys(range(num_workers), "") | dict(phases)
    run.parent.mkdir(parents=True, exist_ok=True)
    logs = [run.with_name(f"errors{index}.txt") for index in range(num_workers)]
    calls = [
        (config, run, phases[index], logs[index], dropout)
        for index, config in enumerate(cluster(num_workers))
    ]
    frozen = [index for index in phases if phases[index].startswith("frozen")]
    statuses = run_workers(main, calls, frozen)
    return statuses, [log.read_text(encoding="utf-8") for log in logs]
