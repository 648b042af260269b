"""`python -m tfeff` is the command `tfeff`."""

import os
import sys

from tfeff.command.main import main as run_command
from tfeff.utils.interruption import end_with_a_line


def main() -> int:
    """Runs the command of the process's command line; returns its exit status."""
    end_with_a_line()  # Before what takes long to import.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    return run_command()


if __name__ == "__main__":
    sys.exit(main())
