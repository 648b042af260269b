"""The corpus of documentation strings."""

import gc
import sys

import pytest

import tfeff

MODULE = '''"""The module.

    Indented.
"""
def function():
    """A function."""
    if True:
        def inner():
            """Inside a condition."""
class Class:
    """A class."""
    async def method(self):
        """A function."""
    value = 1
    """Not a documentation string."""
    def empty(self):
        """ """
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder on the path with a package, and a trap that importing would set off."""
    files = {
        "pack/__init__.py": "raise SystemExit('imported')\n" + '"""No docstring."""',
        "pack/module.py": MODULE,
        "pack/sub/repeats.py": '"""The module.\n\nIndented."""\ndef f(): """New."""',
        "pack/sub/surrogate.py": '"""Half \\ud800 of a pair."""',
        "pack/broken.py": '"""A text."""\ndef (:',
        "pack/latin.py": b'"""caf\xe9"""',
        "pack/test_it.py": '"""A test."""',
        "pack/tests/helper.py": '"""A helper of tests."""',
        "single.py": '"""One file."""',
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_documents_of_a_package(folder):
    documents = tfeff.data.docstrings(["pack", "single"])
    module = "The module.\n\nIndented.\nA function.\nInside a condition.\nA class."
    # Which of two equal strings is the earlier depends on the hashes of the names.
    assert sorted(documents) in (
        sorted([module, "New.", "Half ? of a pair.", "One file."]),
        sorted(
            [
                module.removeprefix("The module.\n\nIndented.\n"),
                "The module.\n\nIndented.\nNew.",
                "Half ? of a pair.",
                "One file.",
            ]
        ),
    )
    assert "pack" not in sys.modules


def test_the_order_of_the_packages_changes_nothing(folder):
    one = tfeff.data.docstrings(["pack", "single"])
    assert tfeff.data.docstrings(["single", "pack"]) == one


@pytest.mark.parametrize("collects", [True, False])
def test_garbage_is_collected_afterwards_as_before(folder, collects):
    if not collects:
        gc.disable()
    try:
        tfeff.data.docstrings(["pack"])
        assert gc.isenabled() == collects
        (folder / "bare.py").write_text("x = 1")
        with pytest.raises(ValueError, match="none was found"):
            tfeff.data.docstrings(["bare"])
        assert gc.isenabled() == collects
    finally:
        gc.enable()


def test_a_cap_gives_a_prefix(folder):
    every = tfeff.data.docstrings(["pack", "single"])
    size = len(every[0]) + 1
    capped = tfeff.data.docstrings(["pack", "single"], max_characters=size)
    assert capped == every[:2]


def test_installed_packages():
    documents = tfeff.data.docstrings(max_characters=200_000)
    assert 200_000 <= sum(map(len, documents)) < 1_000_000
    assert len(set(documents)) == len(documents)
    words = " ".join(documents).split()
    assert words.count("the") > 0.02 * len(words)  # it is English


@pytest.mark.parametrize("name", ["no_such_package", "os.path", "../x", ""])
def test_unknown_package(name):
    with pytest.raises(ValueError, match="`packages`"):
        tfeff.data.docstrings([name])


def test_bad_arguments(folder):
    with pytest.raises(TypeError, match=r"Pass \['numpy'\]"):
        tfeff.data.docstrings("numpy")
    for wrong in (1, None, b"numpy"):
        with pytest.raises(TypeError, match="`packages` must be a list of names. It h"):
            tfeff.data.docstrings([wrong])
    with pytest.raises(ValueError, match="`max_characters`"):
        tfeff.data.docstrings(max_characters=0)
    (folder / "bare.py").write_text("x = 1")
    with pytest.raises(ValueError, match="none was found"):
        tfeff.data.docstrings(["bare"])
