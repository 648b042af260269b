"""Work that a thread does while the training goes on."""

import concurrent.futures
from collections.abc import Callable


class Background:
    """Does one piece of work at a time in a thread; no error of it is lost.

    A process that ends waits for the work.

    Example:

    >>> background = Background()
    >>> background.start(lambda: 1 / 0)
    >>> background.wait()
    Traceback (most recent call last):
        ...
    ZeroDivisionError: division by zero
    """

    def __init__(self):
        self._work: concurrent.futures.Future | None = None

    def start(self, work: Callable[[], object]) -> None:
        """Waits for the work before, then starts this one."""
        self.wait()
        executor = concurrent.futures.ThreadPoolExecutor(1)
        self._work = executor.submit(work)
        executor.shutdown(wait=False)  # The thread ends with the work.

    def check(self) -> None:
        """Raises the error of work that has ended; waits for none."""
        if self._work and self._work.done():
            self.wait()

    def wait(self) -> None:
        """Waits for the end of the work, and raises its error.

        An interruption is raised when the work has ended, too: until then nothing else
        may be done with what it writes. Only a second one leaves it at work.
        """
        if (work := self._work) is None:
            return
        try:
            concurrent.futures.wait([work])
        except BaseException as interruption:
            concurrent.futures.wait([work])
            self._work = None
            raise interruption from work.exception()
        self._work = None
        work.result()
