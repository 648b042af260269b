"""One line that tells how a training run is doing."""

import time
from typing import Any

import keras
from rich.progress import BarColumn, Progress, TextColumn

from tfeff.utils.checks import check_integer, check_string
from tfeff.utils.progress import ErrorConsole, live_bar

_SECONDS_BETWEEN_LINES = 60.0


class TrainingProgress(keras.callbacks.Callback):
    """Shows step, loss, tokens per second and time left of a whole run.

    On a terminal it is a live bar. After a minute elsewhere, after every epoch, and
    where the metric has a new value, it is a line of text on standard error. Use it
    with `fit(..., verbose=0)`.

    Args:
        total_steps: integer, steps of the whole run.
        steps_per_epoch: integer, steps of an epoch.
        tokens_per_step: integer, tokens in a step, padding included.
        first_step: integer, the number of steps that earlier starts have done.
        metric: name of what is shown beside the loss, if the logs have it.

    Raises:
        TypeError: if a number is no integer, or `metric` no string.
        ValueError: if one is below 1, or `first_step` below 0.

    Example:

    >>> callback = TrainingProgress(10_000, steps_per_epoch=500, tokens_per_step=4096)
    >>> isinstance(callback, keras.callbacks.Callback)
    True
    """

    def __init__(
        self,
        total_steps: int,
        steps_per_epoch: int,
        tokens_per_step: int,
        first_step: int = 0,
        metric: str = "val_loss",
    ):
        super().__init__()
        self._first_step = check_integer("first_step", first_step, 0)
        self._total = check_integer("total_steps", total_steps)
        self._steps_per_epoch = check_integer("steps_per_epoch", steps_per_epoch)
        self._tokens_per_step = check_integer("tokens_per_step", tokens_per_step)
        self._metric = check_string("metric", metric)
        self._bar: Progress | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._console = ErrorConsole()
        self._last_line = time.monotonic()
        self._shown = self._first_step, ""
        self._seconds = 0.0
        self._steps = 0
        columns = TextColumn("{task.description}"), BarColumn()
        self._bar = live_bar(self._console, *columns)
        if self._bar is not None:
            self._task = self._bar.add_task("compiling", total=self._total)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._first = self._done = epoch * self._steps_per_epoch
        self._began: float | None = None

    def on_train_batch_end(
        self, batch: int, logs: dict[str, Any] | None = None
    ) -> None:
        done = self._first + batch + 1
        if done <= self._first_step:
            return
        now = time.monotonic()
        # The first step of a run compiles: it says nothing about the speed.
        if self._began is not None:
            self._seconds += now - self._began
            self._steps += done - self._done
        self._began, self._done = now, done
        if self._bar is not None:
            self._bar.update(
                self._task, completed=done, description=self._line(done, logs)
            )
        is_due = now - self._last_line >= _SECONDS_BETWEEN_LINES
        is_new = self._values(logs, self._metric) not in ("", self._shown[1])
        if is_new or (is_due and self._bar is None):
            self._tell(logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._tell(logs)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self.close()

    def close(self) -> None:
        """Gives the terminal back, also after an error."""
        if self._bar is not None:
            self._bar.stop()

    @property
    def tokens_per_second(self) -> float:
        """Mean speed so far, validation and the first step left out."""
        return self._steps * self._tokens_per_step / max(self._seconds, 1e-9)

    def _tell(self, logs):
        self._last_line = time.monotonic()
        shown = self._done, self._values(logs, self._metric)
        if shown != self._shown:
            self._console.tell(self._line(self._done, logs))
        self._shown = shown

    def _values(self, logs, *names):
        """Those of the metrics that there are, as text."""
        logs = logs or {}
        return " ".join(f"{x} {float(logs[x]):.4f}" for x in names if x in logs)

    def _line(self, step, logs):
        values = self._values(logs, "loss", self._metric)
        if not self._steps:
            return f"step {step:,}/{self._total:,} {values}"
        left = (self._total - step) * self._seconds / self._steps
        minutes, seconds = divmod(round(left), 60)
        time_left = f"{minutes}:{seconds:02d}"
        if minutes >= 60:
            time_left = f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
        return (
            f"step {step:,}/{self._total:,} {values} "
            f"{self.tokens_per_second:,.0f} tokens/s {time_left} left"
        )
