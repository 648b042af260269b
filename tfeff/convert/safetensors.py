"""The tensors of one safetensors file, or of the files that an index names."""

import contextlib
import dataclasses
import os

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from tfeff.convert.reading import check_fetched, read_json
from tfeff.utils.paths import is_name

# safetensors asks NumPy for the name "bfloat16", which ml_dtypes registers.
_DTYPES = {
    "F64": np.dtype("float64"),
    "F32": np.dtype("float32"),
    "F16": np.dtype("float16"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype("int64"),
    "I32": np.dtype("int32"),
    "I16": np.dtype("int16"),
    "I8": np.dtype("int8"),
    "U8": np.dtype("uint8"),
    "BOOL": np.dtype("bool"),
}
_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One tensor of a safetensors file, read on demand."""

    path: str
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype

    def read(self) -> np.ndarray:
        """The tensor's values, in its own dtype and shape."""
        # The file is mapped into memory for one tensor at a time: pages read through a
        # lasting mapping would count as this process's memory.
        with _opened(self.path) as file:
            return file.get_tensor(self.name)


def read_safetensors(directory: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint in one safetensors file or in several.

    Of several candidates, it reads the one that Hugging Face's transformers load.

    Args:
        directory: a folder with `model.safetensors`, or else
            `model.safetensors.index.json` and the files that it names, or else one
            `.safetensors` file.

    Returns:
        Dict from the tensors' names to the tensors, not yet read.

    Raises:
        ValueError: if a file is missing, cut short or damaged, several files come
            without an index, or a dtype is unknown.
    """
    files = sorted(f for f in os.listdir(directory) if f.endswith(".safetensors"))
    if _FILE in files:
        files = [_FILE]
    elif os.path.exists(os.path.join(directory, INDEX)):
        return _read_shards(directory)
    if len(files) != 1:
        raise ValueError(
            f"`source` with several safetensors files must have {INDEX!r}. "
            f"Received: {files}"
        )
    return _read_file(os.path.join(directory, files[0]))


def _read_shards(directory):
    path = os.path.join(directory, INDEX)
    index = read_json(path)
    try:
        shard_of = index["weight_map"]
        shards = sorted(set(shard_of.values()))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path!r} must be JSON with a 'weight_map'. It is damaged: {error!r}"
        ) from error
    tensors = {}
    for shard in shards:
        # An index must not lead out of its folder.
        if not is_name(shard):
            raise ValueError(f"{path!r} must name files beside it. It names {shard!r}")
        found = _read_file(os.path.join(directory, shard))
        expected = {name for name, place in shard_of.items() if place == shard}
        if expected != set(found):
            raise ValueError(
                f"{shard!r} must hold what {INDEX!r} says. "
                f"Missing: {sorted(expected - set(found))}. "
                f"Unknown: {sorted(set(found) - expected)}"
            )
        tensors |= found
    return tensors


def _read_file(path):
    check_fetched(path)
    with _opened(path) as file:
        views = {name: file.get_slice(name) for name in file.offset_keys()}
        unknown = sorted({view.get_dtype() for view in views.values()} - set(_DTYPES))
        if unknown:
            raise ValueError(
                f"{path!r} must hold tensors of dtypes among {list(_DTYPES)}. It also "
                f"holds tensors of {unknown}"
            )
        return {
            name: Tensor(path, name, tuple(view.get_shape()), _DTYPES[view.get_dtype()])
            for name, view in views.items()
        }


@contextlib.contextmanager
def _opened(path):
    """Opens the file; errors of the library become errors that name it."""
    try:
        with safe_open(path, framework="np") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path!r} must be a whole safetensors file. It is cut short or damaged: "
            f"{error}"
        ) from error
