"""`python -m tfeff` is the command `tfeff`."""

import io
import os
import sys

from tfeff.command.main import main as run_command
from tfeff.utils.interruption import end_with_a_line
from tfeff.utils.native_messages import set_log_level


def main() -> int:
    """Runs the command of the process's command line; returns its exit status."""
    end_with_a_line()  # Before what takes long to import.
    set_log_level()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # Terminals lack some characters.
    try:
        status = run_command()
        sys.stdout.flush()
    except BrokenPipeError:  # The reader of the output, such as `head`, has ended.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
