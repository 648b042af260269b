"""The examples in the documentation run."""

import doctest
import re
import textwrap

import pytest

import tfeff
import tfeff.tasks


@pytest.mark.parametrize("name", tfeff.tasks.__all__)
def test_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = getattr(tfeff.tasks, name)
    if name.startswith("squad"):
        pytest.importorskip("official", reason="needs Model Garden's scripts")
    examples = re.findall(r"```python\n(.*?)```", function.__doc__, flags=re.DOTALL)
    for example in examples:
        exec(compile(textwrap.dedent(example), name, "exec"), {})
    tests = doctest.DocTestFinder(recurse=False).find(
        function, name, globs={name: function}
    )
    assert examples or tests[0].examples or "Example: see" in function.__doc__
    for test in tests:
        assert doctest.DocTestRunner().run(test).failed == 0


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="'tfeff.tasks' has no attribute 'x'"):
        _ = tfeff.tasks.x
