import math
import os
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from tfeff.training.averages import check_no_averages
from tfeff.training.divergence import is_finite
from tfeff.training.metrics_file import write_rows
from tfeff.training.scores import worst_if_nan
from tfeff.utils.checks import (
    check_best_metric,
    check_callable,
    check_integer,
    check_scores,
)
from tfeff.utils.paths import check_path
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import DEV_METRICS_TABLE

# The attributes that a training resumes with, beside the best weights.
_STATE = (
    *("best", "best_step", "last_step", "diverged_step", "stopped_step"),
    *("_since_best", "_rows", "_newest", "_evaluated"),
)


class KeepBest(keras.callbacks.Callback):
    """Evaluates every few steps and ends the training with the best weights.

    After every `every_steps` steps, and at the end, `evaluate(model)` is called. The
    weights with the highest `metric` are kept in memory and put back into the model
    when the training ends. The training ends early if weights are not finite, since
    these are never better than others, and with `patience` if nothing better comes.
    Undefined metrics (NaN) count as worst of all; of equal ones the earlier is kept.
    But as long as none was defined, the newest weights that are finite are kept.

    Each adds a row to `directory/dev_metrics.csv`: the step, all metrics, the best
    value of `metric` so far, as `best_...`, and with `patience` how many evaluations
    ago that was, as `evaluations_since_best`, or the first one, as long as none was
    defined. The metrics of the training itself are left as they are, whatever
    `evaluate` does with the model. Callbacks after this one find the newest metrics of
    `evaluate` in their `logs`, with names that begin with `dev_`.

    Args:
        evaluate: takes the model, returns its metrics by name, always the same names.
        metric: the name of the one to choose by; greater is better.
        every_steps: integer, steps between evaluations. Where an execution of several
            steps passes a multiple of it, the evaluation is at the execution's end.
        directory: folder of `dev_metrics.csv`; made if missing.
        patience: integer, evaluations in a row that are no better than the best, after
            which the training ends; `None` disables this.

    Attributes:
        best: the metrics of the kept weights; None before the first evaluation.
        best_step: the step of the kept weights.
        last_step: the newest step of the training.
        diverged_step: the step at which weights were found not to be finite, or None.
        stopped_step: the step at which `patience` ended the training, or None.

    Raises:
        ValueError: if `metric` is that of an error or a loss, whose lowest value is the
            best, the file is there already, `every_steps` or `patience` is below 1,
            `evaluate` returns no `metric`, or the model's optimizer keeps moving
            averages of weights (`use_ema`): the last evaluation alone would be of them.
        TypeError: if `evaluate` cannot be called, or a number is no integer.

    Example:

    >>> import tempfile
    >>> import numpy as np
    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((8, 1)), np.zeros((8, 1))
    >>> def evaluate(model):
    ...     return {"negative_loss": -model.evaluate(x, y, verbose=0)}
    >>> best = KeepBest(evaluate, "negative_loss", 2, tempfile.mkdtemp())
    >>> history = model.fit(x, y, batch_size=2, verbose=0, callbacks=[best])
    >>> best.best_step
    4

    Reference:
        Tian et al., "Shatter", section 5.2: evaluated every 1000 steps, the best on
        the development set kept.
    """

    def __init__(
        self,
        evaluate: Callable[[keras.Model], dict[str, float]],
        metric: str,
        every_steps: int,
        directory: str | os.PathLike,
        patience: int | None = None,
    ):
        super().__init__()
        self._evaluate = check_callable("evaluate", evaluate)
        self._metric = check_best_metric("metric", metric)
        self._every_steps = check_integer("every_steps", every_steps)
        self._patience = None
        if patience is not None:
            self._patience = check_integer("patience", patience)
        directory = check_path("directory", directory)
        self._path = os.path.join(os.path.abspath(directory), DEV_METRICS_TABLE)
        if is_there(self._path):
            raise ValueError(
                f"`directory` must not hold {DEV_METRICS_TABLE} of another training. "
                f"Received: {directory=}"
            )
        self.best: Any = None
        self.best_step = 0
        self.diverged_step: int | None = None
        self.stopped_step: int | None = None
        self._since_best = 0
        self._best_weights: list[np.ndarray] | None = None
        self._rows: list[dict] = []
        self._newest: dict[str, Any] = {}
        self.last_step = self._before_epoch = self._evaluated = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        check_no_averages("optimizer", self.model.optimizer)

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        # If an execution has several steps, `batch` is the last of them.
        self.last_step = self._before_epoch + batch + 1
        if self.last_step // self._every_steps > self._evaluated // self._every_steps:
            self._evaluate_now()
        self._add_newest(logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._before_epoch = self.last_step
        epochs = (self.params or {}).get("epochs", math.inf)
        if epoch + 1 >= epochs or self.model.stop_training:
            self._evaluate_last()
        self._add_newest(logs)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._evaluate_last()  # Another callback may have ended the training.
        if self._best_weights is not None:
            self.model.set_weights(self._best_weights)

    def state(self) -> tuple[dict[str, Any], list[np.ndarray]]:
        """The numbers so far, for JSON, and the best weights, to go on with later."""
        return {name: getattr(self, name) for name in _STATE}, self._best_weights or []

    def restore(self, state: dict[str, Any], weights: list[np.ndarray]) -> None:
        """Goes on from what `state` returned, and writes the rows of it again."""
        for name, value in state.items():
            setattr(self, name, value)
        self._best_weights = weights or None
        if self._rows:
            write_rows(self._rows, self._path)

    def _add_newest(self, logs):
        if logs is not None:
            for name, value in self._newest.items():
                logs[f"dev_{name.removeprefix('dev_')}"] = value

    def _evaluate_last(self):
        if self.last_step > self._evaluated:
            self._evaluate_now()

    def _evaluate_now(self):
        # `model.evaluate` would leave its own sums in the metrics of the training.
        variables = [v for m in self.model.metrics for v in m.variables]
        values = [variable.numpy() for variable in variables]
        found = self._evaluate(self.model)
        metrics = check_scores(
            "evaluate", found, "`model.evaluate(data, return_dict=True)`"
        )
        for variable, value in zip(variables, values):
            variable.assign(value)
        if self._metric not in metrics:
            raise ValueError(
                f"`evaluate` must return {self._metric!r}. Received: {list(metrics)}"
            )
        self._newest = metrics
        value = metrics[self._metric]
        self._evaluated = self.last_step
        finite = is_finite(self.model)
        is_first = self.best is None
        so_far = math.nan if is_first else self.best[self._metric]
        better = finite and worst_if_nan(value) > worst_if_nan(so_far)
        self._since_best = 0 if is_first or better else self._since_best + 1
        if is_first or better or (finite and math.isnan(so_far)):
            self.best, self.best_step = metrics, self.last_step
            self._best_weights = self.model.get_weights()
        self._append({"step": self.last_step, **metrics})
        if not finite:
            self.diverged_step = self.last_step
            self.model.stop_training = True  # Nothing better comes any more.
        elif self._patience is not None and self._since_best >= self._patience:
            self.stopped_step = self.last_step
            self.model.stop_training = True

    def _append(self, row):
        row[f"best_{self._metric}"] = self.best[self._metric]
        if self._patience is not None:
            row["evaluations_since_best"] = self._since_best
        self._rows.append(row)
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        write_rows(self._rows, self._path)
