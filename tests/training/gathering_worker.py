"""A worker that gathers, and may be late to where all wait for each other."""

import json
import os
import time

import tensorflow as tf
from tensorflow.python.eager import context

import tfeff
from tfeff.training.workers import gather
from tfeff.utils.parallel import end_with_parent


def main(config, seconds_late, path):
    """Writes to `path` what it has gathered, and how many seconds that took."""
    end_with_parent()
    os.environ["TF_CONFIG"] = config
    tf.config.set_visible_devices([], "GPU")
    with tfeff.training.make_strategy("multi_worker").scope():
        gather("all are there")
        service = context.context()
        wait = service.wait_at_barrier
        service.wait_at_barrier = lambda *arguments: (
            time.sleep(seconds_late),
            wait(*arguments),
        )
        start = time.monotonic()
        everyone = gather(seconds_late)
        seconds = time.monotonic() - start
    path.write_text(json.dumps([everyone, seconds]))
