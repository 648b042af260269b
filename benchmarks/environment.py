"""The environment in which every contender computes on a CPU at its best.

What docs/PRETRAINING.md advises for CPUs, and the same for everyone:

- TensorFlow uses oneDNN's matrix products, which are the default on some CPUs only.
- Freed memory is kept: the C library otherwise gives blocks of 32 MB back to the
  system, and getting them again costs more than what is computed in them.
- PyTorch's threads sleep while they wait, and are not in the way of what else runs.
"""

import os
import sys

VARIABLES = {
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "17179869184",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "OMP_WAIT_POLICY": "PASSIVE",
}


def ensure() -> None:
    """Restarts the program if a variable is not set: libraries read them on import."""
    if not VARIABLES.keys() <= os.environ.keys():
        sys.stdout.flush()
        os.execve(sys.executable, sys.orig_argv, {**VARIABLES, **os.environ})


def description() -> str:
    """The variables as a shell takes them."""
    values = {name: os.environ.get(name, value) for name, value in VARIABLES.items()}
    return " ".join(f"{name}={value}" for name, value in values.items())
