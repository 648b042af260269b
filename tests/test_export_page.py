"""The code of the page on exports runs as it stands, in an empty folder."""

import importlib.util

import pytest

from tests.checks.pages import printed_by, python_blocks


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None,
    reason="onnxruntime is not installed (extra onnx)",
)
def test_code_of_the_page(tmp_path):
    blocks = python_blocks("docs/EXPORT.md")
    assert blocks
    again = [block for block in blocks for _ in range(2)]  # As cells of a notebook.
    printed = printed_by(again, tmp_path)
    assert printed.count("(2, 9, 128)") == 4, printed
