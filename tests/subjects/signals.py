"""A callback that sends this process a signal."""

import signal

import keras


class Signal(keras.callbacks.Callback):
    """Sends this process a signal after a step."""

    def __init__(self, step, number=signal.SIGINT):
        super().__init__()
        self.step, self.number = step, number

    def on_train_batch_end(self, batch, logs=None):
        if batch + 1 == self.step:
            signal.raise_signal(self.number)
