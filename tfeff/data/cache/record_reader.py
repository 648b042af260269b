"""Reading of a cache's records by their numbers, wherever they are in its files."""

import functools
import mmap
import os
import struct

import google_crc32c
import numpy as np

from tfeff.data.cache.manifest import FILE_NAME, Manifest, damaged
from tfeff.utils.reading import raise_unreadable

_HEADER = struct.Struct("<QI")  # A TFRecord begins with its length and a checksum.
_FOOTER = struct.Struct("<I")  # The checksum of the record.
_AROUND = _HEADER.size + _FOOTER.size
_INVERTED = bytes(range(255, -1, -1))
_OPEN_SHARDS = 64


class RecordReader:
    """Reads single records of a cache, and compares each with its checksum.

    Args:
        directory: the folder of the cache.
        manifest: its manifest, as the cache was opened with.

    Raises:
        ValueError: if another cache is there by now, or a file is damaged.
    """

    def __init__(self, directory: str, manifest: Manifest):
        manifest.check_unchanged(directory)
        self._directory = directory
        self._manifest = manifest
        # What the file was when a shard was last opened; it may change from here on.
        self._stamp: tuple | None = None
        self._shards = manifest.shards
        self._starts = np.cumsum([0, *(s.num_records for s in manifest.shards)])
        self._lengths = manifest.lengths(directory)
        self._opened = functools.lru_cache(_OPEN_SHARDS)(self._open)

    def read(self, numbers: np.ndarray) -> list[bytes]:
        """The records of these numbers, counted from 0 shard by shard.

        A record begins with the number of its document, an int32. The number is
        inverted where the record before is of the same document. A shard has whole
        documents.

        Raises:
            ValueError: if a record is damaged; the message names the file.
        """
        shards = np.searchsorted(self._starts, numbers, side="right") - 1
        inside = numbers - self._starts[shards]
        return [self._record(*place) for place in zip(shards.tolist(), inside.tolist())]

    def _record(self, shard, index):
        content, offsets = self._opened(shard)
        start, end = offsets[index], offsets[index + 1]
        record = content[start + _HEADER.size : end - _FOOTER.size]
        length, _ = _HEADER.unpack_from(content, start)
        (checksum,) = _FOOTER.unpack_from(content, end - _FOOTER.size)
        if length != len(record) or checksum != _masked(google_crc32c.value(record)):
            path = os.path.join(self._directory, self._shards[shard].file)
            raise ValueError(damaged(path, f"its record {index} is not as written"))
        if index > 0:  # In this shard.
            before = offsets[index - 1] + _HEADER.size
            if content[before : before + 4] == record[:4]:
                return record[:4].translate(_INVERTED) + record[4:]
        return record

    def _open(self, index):
        """The bytes of a shard, and the offsets of its records and of its end."""
        shard = self._shards[index]
        path = os.path.join(self._directory, shard.file)
        try:
            with open(path, "rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            stamp = self._stamp_now()
        except (OSError, ValueError) as error:  # An empty file cannot be mapped.
            raise_unreadable(error, path)
            raise ValueError(damaged(path, str(error))) from error
        if stamp != self._stamp:
            self._manifest.check_unchanged(self._directory)
            self._stamp = stamp
        part = slice(self._starts[index], self._starts[index + 1])
        sizes = 4 * self._lengths[part].astype(np.int64) + _AROUND
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        if len(offsets) != shard.num_records + 1 or offsets[-1] != len(content):
            raise ValueError(damaged(path, "it does not have the records it should"))
        return content, offsets.tolist()

    def _stamp_now(self):
        """A value that changes when the manifest is written anew."""
        found = os.stat(os.path.join(self._directory, FILE_NAME))
        return found.st_ino, found.st_size, found.st_mtime_ns


def _masked(checksum: int) -> int:
    """A CRC-32C as TFRecord files have it: rotated, and with a constant added."""
    rotated = (checksum >> 15 | checksum << 17) & 0xFFFFFFFF
    return (rotated + 0xA282EAD8) & 0xFFFFFFFF
