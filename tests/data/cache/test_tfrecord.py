"""The TFRecord writer against published checksums and TensorFlow's reader."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tfeff.data.cache.tfrecord import crc32c, tfrecords


def literal_crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def test_crc32c_of_the_vectors_in_rfc_3720():
    data = [bytes(32), b"\xff" * 32, bytes(range(32)), bytes(range(31, -1, -1))]
    words = np.stack([np.frombuffer(d, "<u4") for d in data])
    expected = [0x8A9136AA, 0x62A8AB43, 0x46DD794E, 0x113FDB5C]
    assert crc32c(words, np.full(4, 8)).tolist() == expected


@given(st.lists(st.binary(max_size=40).map(lambda b: b[: len(b) // 4 * 4]), min_size=1))
def test_crc32c_of_rows_of_different_lengths(data):
    lengths = np.array([len(d) // 4 for d in data])
    rows = np.stack([np.frombuffer(d.ljust(40, b"\x55"), "<u4") for d in data])
    assert crc32c(rows, lengths).tolist() == [literal_crc32c(d) for d in data]


def test_tensorflow_writes_the_same_bytes_and_reads_them(tmp_path):
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 20, 50)
    rows = generator.integers(-(2**31), 2**31, (50, 19)).astype(np.int32)
    records = [row[:n].astype("<i4").tobytes() for row, n in zip(rows, lengths)]
    with tf.io.TFRecordWriter(str(tmp_path / "theirs")) as writer:
        for record in records:
            writer.write(record)
    ours = tfrecords(rows, lengths)
    assert ours == (tmp_path / "theirs").read_bytes()
    (tmp_path / "ours").write_bytes(ours)
    read = tf.data.TFRecordDataset(str(tmp_path / "ours")).as_numpy_iterator()
    assert list(read) == records
