"""Reading of safetensors files: a JSON header, then the bytes of the tensors."""

import dataclasses
import json
import math
import os

import ml_dtypes
import numpy as np

from tfeff.convert.reading import check_fetched, read_json

_DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"


@dataclasses.dataclass(frozen=True)
class Tensor:
    """One tensor of a safetensors file, read when it is asked for."""

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype
    offset: int

    def read(self) -> np.ndarray:
        """The tensor's values, in its own dtype and shape."""
        count = math.prod(self.shape)
        values = np.fromfile(self.path, self.dtype, count, offset=self.offset)
        return values.reshape(self.shape)


def read_safetensors(directory: str) -> dict[str, Tensor]:
    """The tensors of a checkpoint in one safetensors file or in several.

    Of several candidates it takes the one that Hugging Face's transformers load.

    Args:
        directory: holds `model.safetensors`, or else `model.safetensors.index.json`
            and the files that it names, or else one `.safetensors` file.

    Returns:
        Dict from the tensors' names to the tensors, unread.

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
        if not isinstance(shard, str) or os.path.basename(shard) != shard:
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
    unknown, tensors = [], {}
    try:
        header, start = _header(path)
        unknown = sorted({entry["dtype"] for entry in header.values()} - set(_DTYPES))
        if not unknown:
            tensors = {n: _tensor(path, n, entry, start) for n, entry in header.items()}
            _check_tiled(tensors.values(), start, os.path.getsize(path))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{path!r} must be a whole safetensors file. It is cut short or damaged: "
            f"{error}"
        ) from error
    if unknown:
        raise ValueError(
            f"{path!r} must hold tensors of dtypes among {list(_DTYPES)}. It also "
            f"holds tensors of {unknown}"
        )
    return tensors


def _header(path):
    """What the file says of its tensors, and where their bytes start."""
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        if size < 8 or start > size:
            raise ValueError(f"its header ends at byte {start} of {size}")
        header = json.loads(file.read(start - 8))
    header.pop("__metadata__", None)
    return header, start


def _tensor(path, name, entry, start):
    dtype, shape = _DTYPES[entry["dtype"]], tuple(entry["shape"])
    begin, end = entry["data_offsets"]
    numbers = (begin, end, *shape)
    whole = all(type(number) is int and number >= 0 for number in numbers)
    if not whole or end - begin != dtype.itemsize * math.prod(shape):
        raise ValueError(
            f"tensor {name!r} of shape {shape} has {end - begin} bytes at {begin}"
        )
    return Tensor(path, shape, dtype, start + begin)


def _check_tiled(tensors, start, size):
    """Raises unless the tensors' bytes follow each other up to the file's end."""
    end = start
    sizes = [(t.offset, t.dtype.itemsize * math.prod(t.shape)) for t in tensors]
    for offset, tensor_size in sorted(sizes):
        if offset != end:
            raise ValueError(f"a tensor begins at byte {offset}, not at {end}")
        end += tensor_size
    if end != size:
        raise ValueError(f"its tensors end at byte {end}, the file has {size}")
