"""The examples in the documentation run."""

import doctest
import re
import sys
import textwrap

import pytest

from tfeff import datasets


@pytest.mark.parametrize("name", datasets.__all__)
def test_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # What an example registers is gone after the test.
    registry = sys.modules[datasets.register.__module__]
    monkeypatch.setattr(registry, "_REGISTRY", dict(registry._REGISTRY))
    function = getattr(datasets, name)
    if name.startswith("squad"):
        pytest.importorskip("official", reason="needs Model Garden's scripts")
    text = textwrap.dedent(function.__doc__)
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    for example in examples:
        exec(compile(textwrap.dedent(example), name, "exec"), {})
    (test,) = doctest.DocTestFinder(recurse=False).find(function, name, globs={})
    assert examples or test.examples or "Example: see" in text
    assert doctest.DocTestRunner().run(test).failed == 0
