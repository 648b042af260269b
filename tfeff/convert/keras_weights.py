"""The tensors of Keras' weights, in one HDF5 file or in the files of an index."""

import contextlib
import dataclasses
import os

import h5py
import keras
import ml_dtypes
import numpy as np

from tfeff.convert.reading import check_fetched, read_json
from tfeff.utils.paths import is_name


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One tensor of an HDF5 file, read on demand."""

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    def read(self) -> np.ndarray:
        """The tensor's values, in its own dtype and shape."""
        with _opened(self.path) as file:
            return np.asarray(file[self.name], self.dtype)


def read_keras_weights(directory: str, name: str) -> dict[str, Tensor]:
    """The tensors that a Keras model has saved by `save_weights`.

    Args:
        directory: a folder with `NAME.weights.h5`, or else `NAME.weights.json` and the
            files that it names.
        name: such as `"model"`.

    Returns:
        Dict from the tensors' paths, such as `layers/dense/vars/0`, to the tensors, not
        yet read.

    Raises:
        ValueError: if a file is missing, cut short or damaged, has the values of a
            tensor in another file, or things other than numbers.
    """
    path = os.path.join(directory, f"{name}.weights.h5")
    index = os.path.join(directory, f"{name}.weights.json")
    if os.path.exists(path) or not os.path.exists(index):
        return _read_file(path)
    tensors: dict[str, Tensor] = {}
    for shard in _shards(index):
        found = _read_file(os.path.join(directory, shard))
        if twice := sorted(found.keys() & tensors.keys()):
            raise ValueError(
                f"{index!r} must name files that hold each tensor once. {shard!r} "
                f"holds {twice} once more"
            )
        tensors |= found
    return tensors


def _shards(path):
    """The names of the files in an index, each once."""
    places = read_json(path).get("weight_map")
    if not isinstance(places, dict):
        raise ValueError(f"{path!r} must have a 'weight_map'. It is damaged")
    shards = list(dict.fromkeys(map(str, keras.tree.flatten(list(places.values())))))
    # An index must not lead out of its folder.
    if wrong := [shard for shard in shards if not is_name(shard)]:
        raise ValueError(f"{path!r} must name files beside it. It names {wrong}")
    return shards


def _read_file(path):
    check_fetched(path)
    tensors, foreign = {}, []

    # Links, which may lead to other files, are not visited.
    def visit(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        is_half = item.attrs.get("dtype") == "bfloat16"
        dtype = np.dtype(ml_dtypes.bfloat16) if is_half else item.dtype
        is_here = not item.is_virtual and item.external is None
        if not is_here or item.shape is None or not (is_half or dtype.kind in "biuf"):
            foreign.append(name)
        tensors[name] = Tensor(path, name, item.shape, dtype)

    with _opened(path) as file:
        file.visititems(visit)
    if foreign:
        raise ValueError(
            f"{path!r} must hold numbers alone, all of them itself. It does not for "
            f"{sorted(foreign)}"
        )
    return tensors


@contextlib.contextmanager
def _opened(path):
    """Opens the file; errors of the library become errors that name it."""
    try:
        with h5py.File(path, "r") as file:
            yield file
    except (OSError, RuntimeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path!r} must be a whole HDF5 file of Keras' weights. It is cut short or "
            f"damaged: {error}"
        ) from error
