"""What benchmarks take from tfeff is there, also where their libraries are missing."""

import ast
import importlib

import pytest

from tests.benchmarks.scripts import FOLDER


@pytest.mark.parametrize("path", sorted(FOLDER.glob("**/*.py")), ids=lambda p: p.stem)
def test_names_of_tfeff_exist(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("tfeff"):
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), node.module
