"""The default corpus: documentation strings of installed Python packages."""

import ast
import gc
import hashlib
import inspect
import itertools
import os
import pkgutil
import sys
import sysconfig
import warnings
from collections.abc import Iterable, Iterator, Sequence
from importlib.machinery import PathFinder
from typing import Any

from tfeff.utils.checks import check_integer, check_iterable

_SKIPPED_FOLDERS = {"__pycache__", "test", "tests", "testing"}


def docstrings(
    packages: Sequence[str] | None = None,
    *,
    max_characters: int | None = None,
) -> list[str]:
    """Documentation strings of installed packages: English text on every machine.

    The sources are parsed, never imported. A module gives one document: its own
    triple-quoted documentation string and those of its classes and functions, cleaned
    of indentation and joined by line breaks; a string that an earlier module has is
    ignored, as are tests and files that do not parse. Modules come in the order of the
    hashes of their names, so that every prefix of the corpus is a random sample of it.

    Args:
        packages: top-level import names, as in `["numpy", "keras"]`; by default
            every package in the installation's `site-packages`.
        max_characters: the corpus ends with the document that reaches this total
            length.

    Returns:
        A list of `str`.

    Raises:
        ValueError: if a package is not installed, or no documentation is found.
        TypeError: if `packages` is a single string, or holds another thing.

    Example:
    ```python
    import tfeff

    documents = tfeff.data.docstrings(["absl"])
    assert any("flag" in document for document in documents)
    ```
    """
    if isinstance(packages, str):
        raise TypeError(
            f"`packages` must be a list of names. Received: {packages=!r:.80}. Pass "
            f"[{packages!r}]"
        )
    if packages is not None:
        check_iterable("packages", packages, "a list of names")
    if max_characters is not None:
        max_characters = check_integer("max_characters", max_characters, 1)
    if packages is None:
        roots = _installed()
    else:
        names = [_checked(name) for name in packages]
        roots = [root for name in names for root in _locate(name)]
    files = dict(itertools.chain.from_iterable(map(_sources, roots)))
    order = sorted(files, key=lambda name: hashlib.sha256(name.encode()).digest())
    documents, length = [], 0
    # A syntax tree has many small objects and no cycles: collection only costs time,
    # as much as parsing.
    collects = gc.isenabled()
    gc.disable()
    try:
        modules = (_parse_file(files[name]) for name in order)
        for document in _without_repetition(modules):
            documents.append(document)
            length += len(document)
            if max_characters is not None and length >= max_characters:
                break
    finally:
        if collects:
            gc.enable()
    if not documents:
        raise ValueError(
            "`packages` must have documentation strings. Received: "
            f"{packages=!r:.80}, in which none was found"
        )
    return documents


def _installed() -> list[str]:
    """Files and folders of every top-level package outside the standard library."""
    folders = {sysconfig.get_paths()[key] for key in ("purelib", "platlib")}
    folders |= {
        path
        for path in sys.path
        if os.path.basename(path) in ("site-packages", "dist-packages")
    }
    found = pkgutil.iter_modules(sorted(folders))
    # Compiled modules may have names that no program can import, as mypyc's do.
    names = sorted({module.name for module in found if module.name.isidentifier()})
    return [root for name in names for root in _locate(name, sorted(folders))]


def _checked(name: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"`packages` must be a list of names. It holds {name!r:.80}")
    return name


def _locate(name: str, path: list[str] | None = None) -> list[str]:
    # A top-level name is found on the path without importing anything.
    spec = PathFinder.find_spec(name, path) if name.isidentifier() else None
    if spec is None:
        raise ValueError(
            "`packages` must hold import names of installed top-level packages. "
            f"Received: {name!r}"
        )
    if spec.submodule_search_locations:
        return [os.path.normpath(p) for p in spec.submodule_search_locations]
    return [spec.origin] if spec.origin and spec.origin.endswith(".py") else []


def _sources(root: str) -> Iterator[tuple[str, str]]:
    """Yields (name relative to the folder that holds the package, path)."""
    base = os.path.dirname(root)
    if os.path.isfile(root):
        yield os.path.relpath(root, base), root
    for folder, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in _SKIPPED_FOLDERS]
        for file in files:
            is_test = file.startswith("test_") or file.endswith("_test.py")
            if file.endswith(".py") and not is_test:
                path = os.path.join(folder, file)
                yield os.path.relpath(path, base), path


def _without_repetition(modules: Iterable[list[str]]) -> Iterator[str]:
    """Joins each module's strings, without those of earlier modules."""
    seen: set[int] = set()
    for strings in modules:
        fresh = [s for s in dict.fromkeys(strings) if hash(s) not in seen]
        seen.update(map(hash, fresh))
        if fresh:
            yield "\n".join(fresh)


def _parse_file(path: str) -> list[str]:
    try:
        with open(path, "rb") as file:
            source = file.read()
        if b'"""' not in source and b"'''" not in source:
            return []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an invalid escape sequence
            tree = ast.parse(source)
        return list(_strings(tree))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []


def _strings(node: Any) -> Iterator[str]:
    """Documentation strings of a module, class or function and its definitions."""
    if isinstance(
        node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    ):
        text = ast.get_docstring(node, clean=False)
        if text:
            # A lone surrogate, written as an escape, has no UTF-8 form.
            text = inspect.cleandoc(text).encode("utf-8", "replace").decode("utf-8")
        if text and not text.isspace():
            yield text
    # Only bodies of statements contain definitions; expressions are skipped.
    for statement in node.body:
        if isinstance(getattr(statement, "body", None), list):
            yield from _strings(statement)
