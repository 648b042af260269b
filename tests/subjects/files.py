"""Files of folders: what they hold, and damage."""

import os
import shutil
from pathlib import Path

import h5py


def contents(folder) -> dict[str, bytes]:
    """The files in and below a folder by their names in it."""
    paths = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def copy_of(path) -> str:
    """A copy beside the file, such as a text to validate by that is trained on."""
    return shutil.copyfile(path, os.path.join(os.path.dirname(path), "copy.txt"))


def flip_bit(path, index, bit=0):
    """Flips a bit of the byte at `index`; a second call restores the file."""
    with open(path, "r+b") as file:
        file.seek(index)
        (byte,) = file.read(1)
        file.seek(index)
        file.write(bytes([byte ^ 1 << bit]))


def weights(file) -> dict[str, bytes]:
    """The numbers of a file of weights, without the names of layers beside them."""
    found = {}
    with h5py.File(file) as archive:
        archive.visititems(
            lambda name, item: found.update(
                {name: item[()].tobytes()} if isinstance(item, h5py.Dataset) else {}
            )
        )
    return found
