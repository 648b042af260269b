"""Reading of TensorFlow checkpoints, by variable names alone."""

import contextlib
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf

_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"
# Entries that `tf.train.Checkpoint` adds to the variables of the model.
_BOOKKEEPING = ("_CHECKPOINTABLE_OBJECT_GRAPH", "save_counter")


@dataclasses.dataclass(frozen=True)
class Variable:
    """One variable of a checkpoint, read on demand."""

    prefix: str
    reader: Any  # A `tf.train.CheckpointReader`, whose class has no name.
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype

    def read(self) -> np.ndarray:
        """The variable's value."""
        with _damage_named(self.prefix):
            return self.reader.get_tensor(self.key)


def read_tf_checkpoint(prefix: str) -> dict[str, Variable]:
    """The variables of a TensorFlow 1 or 2 checkpoint.

    Args:
        prefix: the path of the checkpoint's files without `.index` and
            `.data-00000-of-00001`.

    Returns:
        Dict from the variables' names, without the suffix of TensorFlow 2, to the
        variables, not yet read.

    Raises:
        ValueError: if a file is missing or damaged; for data, when a variable is read.
    """
    with _damage_named(prefix):
        reader = tf.train.load_checkpoint(prefix)
        shapes = reader.get_variable_to_shape_map()
        dtypes = reader.get_variable_to_dtype_map()
    return {
        key.removesuffix(_SUFFIX): Variable(
            prefix, reader, key, tuple(shape), np.dtype(dtypes[key].as_numpy_dtype)
        )
        for key, shape in shapes.items()
        if key.removesuffix(_SUFFIX) not in _BOOKKEEPING
    }


@contextlib.contextmanager
def _damage_named(prefix):
    try:
        yield
    except (tf.errors.OpError, LookupError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{prefix!r} must be a whole TensorFlow checkpoint. It is damaged, or "
            f"its data is missing: {error}"
        ) from error
