"""The documentation site: its reference, its navigation, its links, and its build."""

import importlib
import importlib.util
import os
import re
import runpy
import subprocess
import sys

import pytest

import tfeff
from tests.checks.pages import NOTEBOOKS, PAGES, REPOSITORY, text_of

NAVIGATION = text_of("mkdocs.yml").split("\nnav:")[1].split("\ntheme:")[0]


def hook(name):
    return runpy.run_path(str(REPOSITORY / "docs" / "hooks" / f"{name}.py"))


def test_every_public_name_is_in_the_reference():
    pages = hook("reference")["pages"]()
    packages = [name for name in tfeff.__all__ if name != "__version__"]
    for package in packages:
        page = pages[f"reference/{package}.md"]
        for name in getattr(tfeff, package).__all__:
            told = re.search(rf"^\[\]\(\){{#tfeff.{package}.{name}}}$", page, re.M)
            same = re.search(rf"^## {name}\n\nThe same as \[`tfeff", page, re.M)
            assert told or same, f"tfeff.{package}.{name}"
        for path in re.findall(r"^::: (.*)$", page, re.M):
            module, _, name = path.rpartition(".")
            assert hasattr(importlib.import_module(module), name), path
    assert {f"reference/{package}.md" for package in packages} < set(pages)


def test_every_page_is_in_the_navigation():
    place = hook("pages")["in_site"]
    # That of PyPI is none of the site.
    pages = [place(page) for page in PAGES if page != "docs/PYPI.md"]
    pages += [
        place(path.relative_to(REPOSITORY).as_posix())
        for path in (*RESULTS, *REPOSITORY.glob("benchmarks/results/*/README.md"))
    ]
    pages += [place(page).replace(".ipynb", ".md") for page in NOTEBOOKS]
    pages += hook("reference")["pages"]()
    missing = [page for page in pages if f" {page}\n" not in NAVIGATION]
    assert not missing, f"mkdocs.yml: `nav` lacks {missing}"


def test_docstrings_have_no_links_to_pages():
    """The reference is a folder below, and an editor has no link at all."""
    for path in (REPOSITORY / "tfeff").rglob("*.py"):
        assert not re.search(r"\]\([^)\s]*\.md", path.read_text("utf-8")), path


def test_what_lies_outside_of_docs_is_files():
    found = hook("pages")["outside"]()
    assert REPOSITORY / "benchmarks" / "results" / "claims" / "one-head.md" in found
    assert all(path.is_file() for path in found)


RESULTS = sorted(REPOSITORY.glob("benchmarks/results/*.md"))


@pytest.mark.parametrize(
    ("source", "place", "link", "mended"),
    [
        ("README.md", "index.md", "[a](docs/EXPORT.md#b)", "[a](EXPORT.md#b)"),
        ("docs/A.md", "A.md", "[`a`](../CONTRIBUTING.md)", "[`a`](CONTRIBUTING.md)"),
        (
            "docs/tutorials/x.ipynb",
            "tutorials/x.md",
            "[r](../../benchmarks/results/README.md)",
            "[r](../results/index.md)",
        ),
        ("docs/tutorials/x.ipynb", "tutorials/x.md", "[y](y.ipynb)", "[y](y.md)"),
        ("docs/A.md", "A.md", "[tests](../tests/reference)", "tests"),
        ("docs/A.md", "A.md", "[a](#b) [c](https://d)", "[a](#b) [c](https://d)"),
        ("docs/A.md", "A.md", "```\n[a](b.md)\n```", "```\n[a](b.md)\n```"),
    ],
)
def test_links_are_mended(source, place, link, mended):
    known = {"index.md", "EXPORT.md", "CONTRIBUTING.md", "results/index.md"}
    known |= {"tutorials/y.md"}
    assert hook("pages")["mended"](link, source, place, known) == mended


def test_links_to_files_that_are_no_pages_lead_to_the_repository():
    mend = hook("pages")["mended"]
    found = mend("[t](../tests/a.py#L1)", "docs/A.md", "A.md", set(), "https://x/y/")
    assert found == "[t](https://x/y/blob/main/tests/a.py#L1)"


def test_names_in_pages_become_links():
    name = "tfeff.data.build_cache"
    text = (
        f"# `{name}`\n`{name}(x)`, `tfeff.data.no`\n```\n`{name}`\n```\n[`{name}`](a)"
    )
    expected = text.replace(f"`{name}(x)`", f"[`{name}(x)`][{name}]")
    assert hook("reference")["linked"](text, {name}) == expected


def test_docstrings_become_markdown():
    pytest.importorskip("griffe", reason="griffe is not installed (extra docs)")
    text = """Adds.

Call arguments:
    x: float tensor `[B, T]`,
        of any kind.
    y: another.

Example:

>>> add(1, 2)
3

Reference:
    A paper."""
    assert (
        hook("docstrings")["in_markdown"](text)
        == """Adds.

**Call arguments**

- **`x`** – float tensor `[B, T]`,
    of any kind.
- **`y`** – another.

**Example**

```pycon
>>> add(1, 2)
3
```

**Reference**

A paper.

"""
    )


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None,
    reason="mkdocs is not installed (extra docs)",
)
def test_the_site_is_built_without_a_warning(tmp_path):
    """As `make docs`; `test_tutorials.py` runs the notebooks."""
    result = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(tmp_path)],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "EXECUTE_NOTEBOOKS": "false",
            "PYTHONPATH": str(REPOSITORY),
        },
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    reference = (tmp_path / "reference" / "layers" / "index.html").read_text("utf-8")
    assert 'id="tfeff.layers.SelfAttention"' in reference
