"""A training on a URL, as a process of its own: `python -m tests.subjects.s3_run`.

Arguments: the URL, the step after which the process sends itself a signal, or 0, and
the signal.
"""

import os
import signal
import sys
import time

import keras
import numpy as np
import tensorflow as tf

import tfeff
from tfeff.storage import lease, publishing, remote_run


class Kill(keras.callbacks.Callback):
    """Sends a signal in an epoch, when the checkpoint before it is published."""

    def __init__(self, step, number, run):
        super().__init__()
        self._step, self._number, self._run = step, number, run

    def _is_published(self):
        published = self._run._remote._published
        name = f"checkpoints/step-{(self._step - 1) // 2 * 2:08d}.keras"
        return published is not None and name in published.files

    def on_train_batch_end(self, batch, logs=None):
        if int(self.model.optimizer.iterations) == self._step:
            while not self._is_published():
                time.sleep(0.1)
            os.kill(os.getpid(), self._number)


def main(url, step, number):
    """Trains; prints the weights."""
    with tfeff.training.RunDirectory(url, {"a": 1}) as run:
        model = run.fit(
            make_model,
            make_dataset,
            total_steps=8,
            steps_per_epoch=2,
            tokens_per_step=1,
            callbacks=[Kill(step, number, run)] if step else [],
        )
        run.finish()
    for weights in model.get_weights():
        print(weights.tobytes().hex())


def make_model():
    """A compiled model, the same each time."""
    keras.utils.set_random_seed(0)
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    model.compile(tfeff.training.adamw(0.1, 0, 100), "mse")
    return model


def make_dataset(skipped):
    """The same batches each time."""
    x = np.random.default_rng(0).normal(size=(32, 3)).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1]))
    return data.repeat().batch(4).skip(skipped)


def publish(folder, url, killed_before):
    """Publishes a folder; the process is killed before it writes a file."""
    write, put = publishing.Place.write, publishing.Place.put

    def check(name):
        if name == killed_before:
            os.kill(os.getpid(), signal.SIGKILL)

    def killing_write(place, name, content, create=False):
        check(name)
        write(place, name, content, create)

    def killing_put(place, path, name):
        check(name)
        put(place, path, name)

    publishing.Place.write, publishing.Place.put = killing_write, killing_put
    tfeff.storage.publish(folder, url)


if __name__ == "__main__":
    lease.SECONDS = 3.0
    remote_run.WATCH_SECONDS = 0.1
    if sys.argv[1] == "publish":
        publish(*sys.argv[2:])
    else:
        main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
