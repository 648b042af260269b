"""RunDirectory directories of the scripts beside this file."""

import atexit
import os
import shutil
import sys

import tfeff
from tfeff.training.held_signals import HeldSignals
from tfeff.utils.digests import FILE_NAME, check_digests
from tfeff.utils.files import atomic_file


def open_run(directory, configuration):
    """The run of a directory; if it cannot be had, a line says why and all ends."""
    try:
        with HeldSignals():  # A signal between the two would leave the folder.
            run = tfeff.training.RunDirectory(directory, configuration)
            atexit.register(run.close)
    except (OSError, ValueError) as error:
        sys.exit(f"--run_dir: {error}")
    return run


def make_once(path, write):
    """Calls `write(path)` to make a folder; checks the one of an earlier start."""
    if not os.path.exists(path):
        write(path)
    elif os.path.exists(os.path.join(path, FILE_NAME)):
        check_digests(path)


def copy(source, path):
    """Copies a file, whole or not at all."""
    with atomic_file(path) as new:
        shutil.copyfile(source, new)
