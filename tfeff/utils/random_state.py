"""The random state of the process, which a job seeds and gives back."""

import contextlib
import random
from collections.abc import Iterator

import keras
import numpy as np


@contextlib.contextmanager
def own_random_state() -> Iterator[None]:
    """Context in which code may seed Python, NumPy, TensorFlow and Keras.

    What is drawn after it does not repeat what was drawn after an earlier one. It still
    follows from the seed that there was before: NumPy goes on as if nothing had been
    drawn, Python one number later, from which Keras and TensorFlow are seeded: their
    own state cannot be put back.
    """
    seed = random.getrandbits(31)
    with kept_random_state():
        try:
            yield
        finally:
            keras.utils.set_random_seed(seed)


@contextlib.contextmanager
def kept_random_state() -> Iterator[None]:
    """Context after which Python and NumPy go on as if nothing had been drawn."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
