"""`python -m tfeff` is the command `tfeff`."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tfeff.utils.interruption  # noqa: F401  Before what takes long to import.

# isort: split
from tfeff.command.main import main

if __name__ == "__main__":
    sys.exit(main())
