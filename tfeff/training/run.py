"""A run directory: everything that one training run needs and leaves behind."""

import contextlib
import csv
import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence

import keras

from tfeff.checks import check_integer
from tfeff.training.checkpoints import (
    Checkpoints,
    latest_checkpoint,
    load_checkpoint,
)
from tfeff.training.progress import TrainingProgress


class Run:
    """The directory of a training run, which a killed run goes on from.

    | file | what |
    |---|---|
    | `config.json` | the settings the run was started with |
    | `checkpoints/step-*.keras` | whole models, the newest few |
    | `metrics.csv` | a row after every epoch |
    | `tensorboard/` | the same for TensorBoard |
    | `learning_curve.png` | the losses, drawn when matplotlib is installed |

    Callers put further files beside them, by `run.path(...)`.

    Args:
        directory: the folder; made if missing.
        config: what determines the run's numbers, JSON values by name.

    Raises:
        ValueError: if the folder holds a run of another configuration (the message
            lists the differences), or files that are not a run's.

    Example:

    >>> import tempfile
    >>> run = Run(tempfile.mkdtemp() + "/run", {"preset": "bert_tiny", "seed": 0})
    >>> os.path.basename(run.path("config.json"))
    'config.json'
    """

    def __init__(self, directory: str | os.PathLike, config: Mapping):
        self.directory = os.fspath(directory)
        self.config = json.loads(json.dumps(dict(config)))
        path = self.path("config.json")
        found = []
        if os.path.isdir(self.directory):
            found = os.listdir(self.directory)
        if "config.json" in found and len(found) > 1:
            self._compare(path)
            return
        # A configuration alone is of a start that failed before it made anything.
        if found not in ([], ["config.json"]) or os.path.isfile(self.directory):
            raise ValueError(
                "`directory` must be a run's, empty, or not there yet. Received: "
                f"{self.directory}, which has other content and no config.json"
            )
        os.makedirs(self.directory, exist_ok=True)
        with _replacing(path) as file:
            json.dump(self.config, file, indent=2)

    def _compare(self, path):
        try:
            with open(path, encoding="utf-8") as file:
                saved = json.load(file)
        except ValueError as error:
            raise ValueError(f"{path} is not valid JSON: {error}") from error
        differences = [
            f"{name}: there {saved.get(name)!r}, now {self.config.get(name)!r}"
            for name in sorted({*saved, *self.config})
            if saved.get(name) != self.config.get(name)
        ]
        if differences:
            raise ValueError(
                f"`directory` {self.directory} belongs to a run of another "
                f"configuration. Differences: {'; '.join(differences)}. Use another "
                "directory, or the same settings to go on with that run."
            )

    def path(self, *parts: str) -> str:
        """The name of a file in the directory."""
        return os.path.join(self.directory, *parts)

    def fit(
        self,
        make_model: Callable[[], keras.Model],
        make_dataset: Callable,
        *,
        total_steps: int,
        steps_per_epoch: int,
        tokens_per_step: int,
        validation_data=None,
        keep_checkpoints: int = 2,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> keras.Model:
        """Trains to the end, from the newest checkpoint if there is one.

        The data position counts: a run that was killed and started again has the
        metrics of one that was not. At most an epoch of work is lost.

        Call it in the scope of the distribution strategy.

        Args:
            make_model: makes the compiled model; not called on resuming.
            make_dataset: called with a number of batches, returns the endless
                training `tf.data.Dataset` from there on.
            total_steps: integer, a multiple of `steps_per_epoch`.
            steps_per_epoch: integer, steps between validations, rows of metrics and
                checkpoints; a multiple of the model's `steps_per_execution`.
            tokens_per_step: integer, tokens in a batch, for the progress line.
            validation_data: `tf.data.Dataset` for `val_` metrics, or `None`.
            keep_checkpoints: integer, how many checkpoints to keep.
            callbacks: more callbacks. They come before those that write files: what
                they add to the metrics of an epoch is written too.

        Returns:
            The trained model.

        Raises:
            ValueError: if the steps do not fit each other, or the newest checkpoint
                is truncated or corrupted.
        """
        check_integer("steps_per_epoch", steps_per_epoch)
        check_integer("keep_checkpoints", keep_checkpoints)
        if check_integer("total_steps", total_steps) % steps_per_epoch:
            raise ValueError(
                "`total_steps` must be a multiple of `steps_per_epoch`. Received: "
                f"total_steps={total_steps}, steps_per_epoch={steps_per_epoch}"
            )
        checkpoint, step = latest_checkpoint(self.path("checkpoints"))
        model = load_checkpoint(checkpoint) if checkpoint else make_model()
        if steps_per_epoch % model.steps_per_execution:
            raise ValueError(
                "`steps_per_epoch` must be a multiple of the model's "
                f"`steps_per_execution`. Received: steps_per_epoch={steps_per_epoch}, "
                f"steps_per_execution={model.steps_per_execution}"
            )
        self._forget_metrics_after(step)
        if step == total_steps:
            return model
        model.fit(
            make_dataset(step),
            initial_epoch=step // steps_per_epoch,
            epochs=total_steps // steps_per_epoch,
            steps_per_epoch=steps_per_epoch,
            validation_data=validation_data,
            shuffle=False,
            verbose=0,
            callbacks=[
                _Rates(steps_per_epoch),
                *callbacks,
                TrainingProgress(total_steps, steps_per_epoch, tokens_per_step),
                keras.callbacks.CSVLogger(self.path("metrics.csv"), append=True),
                keras.callbacks.TensorBoard(
                    self.path("tensorboard"), write_graph=False
                ),
                *([_Curve(self)] if importlib.util.find_spec("matplotlib") else []),
                # Last: a checkpoint promises that its row of metrics is there.
                Checkpoints(
                    self.path("checkpoints"), steps_per_epoch, keep_checkpoints
                ),
            ],
        )
        return model

    def _forget_metrics_after(self, step):
        """Drops rows of an epoch that was finished, but not saved, before a kill."""
        path = self.path("metrics.csv")
        if not os.path.exists(path):
            return
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        if not rows or "step" not in rows[0]:
            os.remove(path)  # Killed before its first row was whole.
            return
        column = rows[0].index("step")
        kept = [
            row
            for row in rows[1:]
            if len(row) == len(rows[0]) and int(row[column]) <= step
        ]
        with _replacing(path) as file:
            csv.writer(file, lineterminator="\n").writerows([rows[0], *kept])


@contextlib.contextmanager
def _replacing(path):
    """A text file to write, which takes the place of `path` once it is whole."""
    with open(path + ".partial", "w", encoding="utf-8", newline="") as file:
        yield file
    os.replace(path + ".partial", path)


class _Rates(keras.callbacks.Callback):
    """Adds the number of steps and the learning rate to the metrics."""

    def __init__(self, steps_per_epoch):
        super().__init__()
        self._steps_per_epoch = steps_per_epoch

    def on_epoch_end(self, epoch, logs=None):
        logs["step"] = (epoch + 1) * self._steps_per_epoch
        logs["learning_rate"] = float(
            keras.ops.convert_to_numpy(self.model.optimizer.learning_rate)
        )


class _Curve(keras.callbacks.Callback):
    """Draws the learning curve anew after every epoch."""

    def __init__(self, run):
        super().__init__()
        self._run = run

    def on_epoch_end(self, epoch, logs=None):
        from tfeff import plots

        plots.learning_curves(
            {os.path.basename(self._run.directory): self._run.path("metrics.csv")},
            self._run.path("learning_curve.png"),
        )
