"""The models that are frozen because they are teachers."""

import weakref

import keras

_encoders: "weakref.WeakSet[keras.Model]" = weakref.WeakSet()


def freeze_teacher(teacher: keras.Model, encoder: keras.Model) -> None:
    """Freezes a teacher, and remembers that nobody else has frozen its encoder."""
    # It is set to True first: TensorFlow ignores the assignment of False to False, and
    # layers that were made trainable since would stay so.
    teacher.trainable = True
    teacher.trainable = False
    _encoders.add(encoder)


def was_teacher(encoder: keras.Model) -> bool:
    """Whether an encoder was frozen as one of a teacher."""
    return encoder in _encoders
