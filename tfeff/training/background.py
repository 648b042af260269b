"""Work that a thread does while the training goes on."""

import concurrent.futures
import contextlib
from collections.abc import Callable

from tfeff.training.held_signals import HeldSignals


class Background:
    """Does one piece of work at a time in a thread; no error of it is lost.

    A process that ends waits for the work.

    Args:
        hold_signals: boolean; whether SIGINT and SIGTERM wait for the end of the work.

    Example:

    >>> background = Background()
    >>> background.start(lambda: 1 / 0)
    >>> background.wait()
    Traceback (most recent call last):
        ...
    ZeroDivisionError: division by zero
    """

    def __init__(self, hold_signals: bool = False):
        self._hold_signals = hold_signals
        self._held = HeldSignals()
        self._work: concurrent.futures.Future | None = None

    def start(self, work: Callable[[], object]) -> None:
        """Waits for the work before, then starts this one."""
        self.wait()
        self._held = HeldSignals()
        if self._hold_signals:
            self._held.__enter__()
        executor = concurrent.futures.ThreadPoolExecutor(1)
        self._work = executor.submit(work)
        executor.shutdown(wait=False)  # The thread ends with the work.

    def check(self) -> None:
        """Raises the error of work that has ended; waits only where a signal came."""
        if self._work and (self._work.done() or self._held.received is not None):
            self.wait()

    def wait(self) -> None:
        """Waits for the end of the work, and raises its error."""
        work, self._work = self._work, None
        if work is not None:
            with contextlib.ExitStack() as stack:
                stack.push(self._held)
                work.result()
