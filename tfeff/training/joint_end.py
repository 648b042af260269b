"""Ends all workers after the same step, when one of them is told to end."""

import contextlib
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import tensorflow as tf

from tfeff.training.coordination import coordination_service
from tfeff.training.held_signals import HeldSignals
from tfeff.training.lost_workers import LostWorker
from tfeff.training.workers import (
    from_chief,
    gather,
    several_workers,
    worker_name,
    worker_names,
)

_SECONDS = 20  # Clusters often kill a process 30 seconds after they told it to end.


@contextlib.contextmanager
def joint_end(signals: HeldSignals) -> Iterator[Callable[[], bool]]:
    """Lets a signal to any worker end the training of all after the same step.

    Every step needs all workers: one that ended by itself would leave the others in a
    step that cannot end, and the chief could not save.

    Args:
        signals: those that this worker holds back.

    Returns:
        The context manager of a function that tells whether the training ends now. All
        workers call it at the same moments, such as the ends of steps. A process that
        is alone ends as soon as a signal has come.

    Raises:
        LostWorker: at the end of the block, when all workers have reached it, in those
            that have received no signal; out of the function, if another worker gives
            no answer for twenty seconds.
    """
    if not several_workers():
        yield lambda: signals.received is not None
        return
    agreement = _Agreement(signals)
    try:
        yield agreement.is_over
    except KeyboardInterrupt:
        agreement.close(is_whole=False)
        raise
    else:
        agreement.close(is_whole=True)


class _Agreement:
    """Finds the moment after which all workers end.

    The worker that has received a signal says so in TensorFlow's coordination service.
    A thread in each worker waits for that, and then says which moment its worker has
    reached. All workers go on to the moment after the latest of these, and end there.
    None is beyond it already, since each waits until all have said theirs.
    """

    def __init__(self, signals):
        self._signals = signals
        self._key = f"tfeff/{from_chief(lambda: uuid.uuid4().hex)}"
        self._cause = ""  # Which worker was told to end, and how.
        self._has_told = False
        self._error: Exception | None = None
        self._moment = 0
        self._last: int | None = None
        self._lock = threading.Lock()  # Held while the moment may not change.
        self._names = worker_names()
        self._name = worker_name()
        self._thread = threading.Thread(target=self._agree, daemon=True)
        self._thread.start()

    def is_over(self) -> bool:
        received = self._signals.received
        if received is not None and not self._has_told:
            self._tell(
                f"{self._name} was told to end by {signal.Signals(received).name}"
            )
        with self._lock:
            if self._error is not None:
                raise self._error
            self._moment += 1
            return self._moment == self._last

    def close(self, is_whole):
        self._tell("")  # The threads end, unless a worker has been told to end.
        self._thread.join()
        if self._error is not None:
            raise self._error
        if is_whole or self._cause:
            gather(None)  # The chief has saved, and all know.
        if self._cause and self._signals.received is None:
            raise LostWorker(
                f"{self._cause}, and all workers have ended. Start all workers again: "
                "they go on from the newest checkpoint."
            ) from None

    def _tell(self, cause):
        self._has_told = True
        with contextlib.suppress(tf.errors.AlreadyExistsError):
            coordination_service().set_config_key_value(f"{self._key}/cause", cause)

    def _agree(self):
        service = coordination_service()
        try:
            self._cause = service.get_config_key_value(f"{self._key}/cause")
        except tf.errors.OpError:  # A worker is lost: the next step ends by that.
            return
        if not self._cause:
            return
        with self._lock:
            try:
                service.set_config_key_value(
                    f"{self._key}/{self._name}", str(self._moment)
                )
                end = time.monotonic() + _SECONDS
                self._last = 1 + max(
                    int(
                        service.get_config_key_value(
                            f"{self._key}/{name}",
                            max(1, int(1000 * (end - time.monotonic()))),
                        )
                    )
                    for name in self._names
                )
            except tf.errors.OpError as error:
                self._error = LostWorker(
                    f"{self._cause}, and another worker does not answer "
                    f"({error.message}). Start all workers again: they go on from the "
                    "newest checkpoint."
                )
