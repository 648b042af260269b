"""Writing of safetensors."""

import os
import stat
from collections.abc import Mapping

import numpy as np
from safetensors.numpy import save_file


def write_safetensors(
    path: str, arrays: Mapping[str, np.ndarray], notes: Mapping[str, str]
) -> None:
    """Writes arrays to a file with the mode of a new one.

    The library lets the user alone read its files, whatever the umask is.

    Args:
        path: the file to write; an existing file is replaced.
        arrays: by name.
        notes: the texts beside them, by name.
    """
    with open(path, "wb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
    # The library writes the memory as it lies.
    contiguous = {name: np.asarray(x, order="C") for name, x in arrays.items()}
    save_file(contiguous, path, dict(notes))
    os.chmod(path, mode)
