"""Ctrl-C, SIGTERM and SIGHUP end the command with one line instead of a traceback.

The exit status is the shell's: 130 after Ctrl-C, 143 after SIGTERM, 129 after SIGHUP,
which comes when a terminal or a connection is closed. A second signal ends it at once.
"""

import contextlib
import os
import signal

# Windows has no SIGHUP.
SIGNALS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(signal, name)
)


def end_with_a_line() -> None:
    """Makes each signal that is not ignored end the process with a line."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def end_at_once() -> None:
    """Restores the default handlers where `end_with_a_line` replaced them."""
    for number in SIGNALS:
        if signal.getsignal(number) is _end:
            signal.signal(number, signal.SIG_DFL)


def _end(number, _):
    end_at_once()
    name = signal.Signals(number).name
    advice = "To go on with a run, start it again with the same flags."
    text = f"Ended by {name}. {advice}\n"
    with contextlib.suppress(OSError):  # Ctrl-C ends `tee`, too.
        os.write(2, text.encode())
    raise SystemExit(128 + number)
