"""Refuses Keras' backends other than TensorFlow, before any work."""

import keras


def check_tensorflow(what: str) -> None:
    """Raises if Keras runs on another backend than TensorFlow.

    Args:
        what: the subject of the message, which needs TensorFlow.

    Raises:
        ValueError: on every other backend.
    """
    backend = keras.backend.backend()
    if backend != "tensorflow":
        raise ValueError(
            f"{what} must have TensorFlow as Keras' backend: unset KERAS_BACKEND, or "
            f'set it to "tensorflow". Received: backend={backend!r}'
        )
