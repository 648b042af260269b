"""Callbacks of a run directory alone."""

import os

import keras

from tfeff.utils.partial import writing
from tfeff.utils.run_files import METRICS_TABLE


class AddRates(keras.callbacks.Callback):
    """Adds the number of steps and the learning rate to the metrics.

    Args:
        steps_per_epoch: integer, steps of an epoch.
    """

    def __init__(self, steps_per_epoch: int):
        super().__init__()
        self._steps_per_epoch = steps_per_epoch

    def on_epoch_end(self, epoch, logs=None):
        logs["step"] = (epoch + 1) * self._steps_per_epoch
        logs["learning_rate"] = float(
            keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)
        )


class WriteBoard(keras.callbacks.TensorBoard):
    """Keras' TensorBoard, whose errors name the folder, as on a full disk.

    Args:
        folder: the folder of TensorBoard's files.
    """

    def __init__(self, folder: str):
        super().__init__(folder, write_graph=False)
        self._writing = lambda: writing(folder, folder)

    def on_train_begin(self, logs=None):
        with self._writing():
            super().on_train_begin(logs)

    def on_epoch_end(self, epoch, logs=None):
        with self._writing():
            super().on_epoch_end(epoch, logs)

    def on_test_begin(self, logs=None):
        with self._writing():
            super().on_test_begin(logs)

    def on_test_end(self, logs=None):
        with self._writing():
            super().on_test_end(logs)

    def on_train_end(self, logs=None):
        with self._writing():
            super().on_train_end(logs)


class DrawCurve(keras.callbacks.Callback):
    """Draws the learning curve after every epoch.

    Args:
        directory: the run's directory, with `metrics.csv`.
    """

    def __init__(self, directory: str):
        super().__init__()
        self._directory = directory

    def on_epoch_end(self, epoch, logs=None):
        from tfeff import plots

        table = os.path.join(self._directory, METRICS_TABLE)
        picture = os.path.join(self._directory, "learning_curve.png")
        plots.learning_curves({os.path.basename(self._directory): table}, picture)
