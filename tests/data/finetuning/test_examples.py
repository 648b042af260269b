"""The examples in the documentation run."""

import operator
import re
import textwrap

import pytest

import tfeff

NAMES = sorted(name for name in tfeff.data.__all__ if name != "tfds")  # it downloads
NAMES.append("Cache.batches")


@pytest.mark.parametrize("name", NAMES)
def test_example(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = textwrap.dedent(operator.attrgetter(name)(tfeff.data).__doc__)
    examples = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    if not examples:
        assert re.search(r"Example: see `\w+`|made by|hexadecimal|>>> ", text)
    for example in examples:
        exec(compile(textwrap.dedent(example), name, "exec"), {})
