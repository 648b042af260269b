"""The tutorials: notebooks without outputs, whose names exist and whose code runs."""

import ast
import importlib.util
import json
import operator
import re
from pathlib import Path

import pytest

import tfeff
from tests.checks.pages import NOTEBOOKS, REPOSITORY, printed_by, text_of


def cells(notebook, kind):
    found = json.loads(text_of(notebook))["cells"]
    return [cell for cell in found if cell["cell_type"] == kind]


def code(notebook):
    return ["".join(cell["source"]) for cell in cells(notebook, "code")]


def test_there_are_six():
    assert len(NOTEBOOKS) == 6


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_notebooks_are_stored_without_outputs(notebook):
    for cell in cells(notebook, "code"):
        assert cell["outputs"] == [] and cell["execution_count"] is None


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_notebooks_write_into_folders_of_their_own(notebook):
    """Jupyter runs all of them in one folder."""
    writers = ("build_cache", "convert", "save_pretrained", "save_version")
    writers += ("to_huggingface", "save", "makedirs")
    own = f"{Path(notebook).stem}/"
    for node in ast.walk(ast.parse("\n".join(code(notebook)))):
        is_call = isinstance(node, ast.Call)
        if is_call and ast.unparse(node.func).rpartition(".")[2] in writers:
            for argument in node.args:
                text = ast.unparse(argument).lstrip("f")
                inside = f"{text[1:-1]}/".startswith(own)
                assert text[0] not in "'\"" or inside, text


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_names_of_notebooks_exist(notebook):
    tree = ast.parse("\n".join(code(notebook)))
    names = {ast.unparse(node) for node in ast.walk(tree) if is_name(node)}
    assert names
    for name in names:
        operator.attrgetter(name.removeprefix("tfeff."))(tfeff)


def is_name(node):
    """Whether a node is `tfeff.package.name`."""
    return isinstance(node, ast.Attribute) and bool(
        re.fullmatch(r"tfeff\.\w+\.\w+", ast.unparse(node))
    )


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_links_of_notebooks_lead_somewhere(notebook):
    text = "\n".join("".join(cell["source"]) for cell in cells(notebook, "markdown"))
    assert text.startswith("# ")
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        assert ((REPOSITORY / notebook).parent / target).exists(), target


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None,
    reason="matplotlib is not installed (extra plots)",
)
@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_code_of_notebooks_runs(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    printing = [block for block in code(notebook) if "print(" in block]
    printed = printed_by(code(notebook), tmp_path)
    assert len(printed.splitlines()) >= len(printing)
