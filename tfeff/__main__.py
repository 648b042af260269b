"""`python -m tfeff` is the command `tfeff`."""

import io
import os
import sys

from tfeff.command.main import main as run_command
from tfeff.utils.interruption import end_with_a_line
from tfeff.utils.job_output import drop_unwritten
from tfeff.utils.native_messages import set_log_level


def main() -> int:
    """Runs the command of the process's command line; returns its exit status."""
    end_with_a_line()  # Imports may take long from here on.
    # A file that is opened next would get the number of a stream that is closed.
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    set_log_level()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # Terminals lack some characters.
    try:
        status = run_command()
    except BrokenPipeError:  # The reader of the output, such as `head`, has ended.
        status = 1
    try:
        sys.stdout.flush()
    except OSError as error:
        drop_unwritten(sys.stdout)
        if not isinstance(error, BrokenPipeError):
            print(f"error: {error}, while writing the output", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
