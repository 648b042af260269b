"""Files of arrays are as readable as other new files."""

import os
import stat

import numpy as np
import pytest
import safetensors

from tfeff.utils.safetensors import write_safetensors


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_the_mode_is_that_of_a_new_file(umask, tmp_path):
    path, before = tmp_path / "x.safetensors", os.umask(umask)
    try:
        write_safetensors(str(path), {"x": np.arange(3.0)}, {"format": "pt"})
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "pt"}
        np.testing.assert_array_equal(file.get_tensor("x"), [0, 1, 2])
    assert list(tmp_path.iterdir()) == [path]
