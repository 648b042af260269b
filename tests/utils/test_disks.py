"""A full disk is named before or when it is met."""

import errno
import os
import resource
import tempfile

import pytest

from tfeff.utils.disks import reserve, system_folder

needs_fallocate = pytest.mark.skipif(
    not hasattr(os, "posix_fallocate"), reason="the system cannot reserve room"
)


def test_a_full_disk_of_temporary_files_is_named(monkeypatch):
    for error in (OSError(errno.ENOSPC, "No space left"), OSError(errno.EIO, "bad")):
        with pytest.raises(OSError) as raised, system_folder() as folder:
            assert os.path.isdir(folder)
            raise error
        is_full = error.errno == errno.ENOSPC
        named = tempfile.gettempdir() if is_full else None
        assert (raised.value.filename, raised.value.errno) == (named, error.errno)
        assert ("TMPDIR" in str(raised.value)) == is_full


@needs_fallocate
def test_room_on_a_disk(tmp_path):
    reserve(tmp_path, 1000)
    reserve(tmp_path, -1)
    reserve(tmp_path / "missing", 1)  # What comes next tells it.
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limit[1]))
    try:
        reserve(tmp_path, 10_000)
        with pytest.raises(OSError, match="File too large"):
            reserve(tmp_path, 10_001)
        reserve(tmp_path, 25_000, largest=10_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert os.listdir(tmp_path) == []
