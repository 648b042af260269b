"""Ctrl-C, SIGTERM and SIGHUP wait until the work at hand is saved."""

import contextlib
import os
import signal
import threading

from tfeff.utils.interruption import SIGNALS


class HeldSignals:
    """Holds SIGINT, SIGTERM and SIGHUP back within a `with` block, then lets them act.

    A signal sets `received`, for the block to end itself soon, and a line on the
    standard error says so. When the block ends, the signal does what it would have
    done without the block. A second signal acts at once. Signals that are ignored stay
    ignored. Outside of the main thread, where Python handles no signals, none is held.

    Attributes:
        received: the number of the signal that came, or None.

    Example:

    >>> with HeldSignals() as signals:
    ...     for step in range(3):
    ...         if signals.received is not None:
    ...             break  # Save the work.
    """

    def __init__(self):
        self.received = None
        self._handlers = {}

    def __enter__(self) -> "HeldSignals":
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._handlers[number] = signal.signal(number, self._hold)
        return self

    def __exit__(self, kind, *_):
        self._restore()
        # Another error ends the program by itself, and is to be seen.
        if self.received is not None and kind in (None, KeyboardInterrupt):
            signal.raise_signal(self.received)

    def _hold(self, number, frame):
        if self.received is None:
            self.received = number
            name = signal.Signals(number).name
            text = f"{name}: waits for the work at hand. A second one does not.\n"
            with contextlib.suppress(OSError):  # Nobody may read it any more.
                os.write(2, text.encode())
            return
        self.received = None
        self._restore()
        signal.raise_signal(number)

    def _restore(self):
        while self._handlers:
            signal.signal(*self._handlers.popitem())
