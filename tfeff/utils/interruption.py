"""Ctrl-C and SIGTERM end the command with one line, no traceback.

It takes effect when it is imported, before what takes long to import. The exit status
is the shell's: 130 after Ctrl-C, 143 after SIGTERM. A second signal ends at once.
"""

import os
import signal

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _end(number, _):
    end_at_once()
    name = signal.Signals(number).name
    text = f"Ended by {name}. To go on, start it again with the same flags.\n"
    os.write(2, text.encode())
    raise SystemExit(128 + number)


def end_at_once():
    """Has the signals end the process without a line, wherever it is."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)


for _number in _SIGNALS:
    if signal.getsignal(_number) is not signal.SIG_IGN:
        signal.signal(_number, _end)
