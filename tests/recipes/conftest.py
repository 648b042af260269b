import re

import pytest

import tfeff


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A text file of some documentation, documents separated by blank lines."""
    documents = tfeff.data.docstrings(["keras"], max_characters=60_000)
    path = tmp_path_factory.mktemp("corpus") / "text.txt"
    paragraphs = (re.sub(r"\n\s*\n", "\n", text) for text in documents)
    path.write_text("\n\n".join(paragraphs), encoding="utf-8")
    return str(path)
