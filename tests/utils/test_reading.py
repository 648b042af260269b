"""A failing disk is not taken for a missing file."""

import errno
import os

import pytest

from tfeff.utils.reading import is_there


def test_what_a_failing_disk_hides_is_not_taken_for_missing(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    assert is_there(tmp_path / "file")
    for missing in ("other", "file/below"):
        assert not is_there(tmp_path / missing)

    def failing(path, *args, **kwargs):
        raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    monkeypatch.setattr(os, "stat", failing)
    with pytest.raises(OSError, match="Input/output error.*file"):
        is_there(tmp_path / "file")
