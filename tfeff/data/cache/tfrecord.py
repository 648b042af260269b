"""The TFRecord format, written by NumPy for many records at once.

TensorFlow's own writer would do, but importing TensorFlow takes each worker process
longer than tokenizing a few million words. Readers are TensorFlow's.
"""

import functools

import numpy as np

_POLYNOMIAL = 0x82F63B78  # CRC-32C (Castagnoli), bits reversed
_MASK_DELTA = np.uint32(0xA282EAD8)


@functools.cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Two tables [65536] of CRCs of each two bytes: at a word's end, at its start."""
    end = np.arange(1 << 16, dtype=np.uint32)
    for _ in range(16):
        odd = (end & 1).astype(bool)
        end = (end >> 1) ^ np.where(odd, np.uint32(_POLYNOMIAL), np.uint32(0))
    return end, (end >> 16) ^ end[end & 0xFFFF]


def crc32c(words: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """CRC-32C of many rows of 32-bit words, a word a step.

    Args:
        words: [R, W] uint32; row r is the little-endian bytes of its first
            `lengths[r]` words.
        lengths: [R] int, at most W.

    Returns:
        [R] uint32.
    """
    end, start = _tables()
    order = np.argsort(-lengths, kind="stable")
    # Longest rows first: the rows that still have a word at step i are a prefix.
    columns = np.ascontiguousarray(words[order].T)
    steps = np.arange(columns.shape[0])
    active = np.searchsorted(-lengths[order], -steps, side="left")
    crc = np.full(len(lengths), 0xFFFFFFFF, np.uint32)
    for column, count in zip(columns, active, strict=True):
        if count == 0:
            break
        x = crc[:count] ^ column[:count]
        crc[:count] = start[x & 0xFFFF] ^ end[x >> 16]
    result = np.empty_like(crc)
    result[order] = crc ^ np.uint32(0xFFFFFFFF)
    return result


def _masked(crc: np.ndarray) -> np.ndarray:
    return ((crc >> 15) | (crc << 17)) + _MASK_DELTA


def tfrecords(words: np.ndarray, lengths: np.ndarray) -> bytes:
    """The bytes of a TFRecord file that holds the given rows as its records.

    A record is the length of its data in bytes (uint64), the masked CRC of that,
    the data, the masked CRC of the data; all little-endian.

    Args:
        words: [R, W] 32-bit integers; the data of record r is its first
            `lengths[r]` words.
        lengths: [R] int, at most W.

    Returns:
        The concatenated records.
    """
    words = words.astype("<u4", copy=False)
    rows, width = words.shape
    frame = np.zeros((rows, width + 4), "<u4")
    frame[:, 0] = 4 * lengths  # the upper half of the uint64, column 1, stays zero
    frame[:, 2] = _masked(crc32c(frame[:, :2], np.full(rows, 2)))
    frame[:, 3:-1] = words
    frame[np.arange(rows), 3 + lengths] = _masked(crc32c(words, lengths))
    return frame[np.arange(width + 4) < lengths[:, None] + 4].tobytes()
