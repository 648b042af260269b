"""What a job seeds is not what is drawn after it."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfeff.utils.random_state import own_random_state


def drawn():
    return [
        random.random(),
        np.random.rand(),
        float(keras.random.uniform((), seed=keras.random.SeedGenerator())),
        float(tf.random.uniform(())),
    ]


def after_jobs():
    found = []
    for _ in range(3):
        with own_random_state():
            keras.utils.set_random_seed(0)
            drawn()
        found.append(drawn())
    return found


def test_what_is_drawn_after_jobs():
    keras.utils.set_random_seed(7)
    found = after_jobs()
    assert all(len(set(values)) == 3 for values in zip(*found))
    # It follows from the seed before: NumPy goes on as if there was no job.
    keras.utils.set_random_seed(7)
    assert after_jobs() == found
    np.random.seed(7)
    assert list(np.random.rand(3)) == [values[1] for values in found]


def test_a_job_that_fails_gives_it_back():
    keras.utils.set_random_seed(7)
    expected = np.random.rand()
    keras.utils.set_random_seed(7)
    with pytest.raises(ZeroDivisionError), own_random_state():
        keras.utils.set_random_seed(0)
        raise ZeroDivisionError
    assert np.random.rand() == expected
