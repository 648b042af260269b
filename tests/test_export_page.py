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
    printed = printed_by(blocks, tmp_path)
    assert printed.count("(2, 9, 128)") == 2, printed
