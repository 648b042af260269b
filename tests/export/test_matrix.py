"""The page's table of presets and formats says what is so."""

import importlib.util

import pytest

from tests.export import matrix
from tests.subjects.versions import needs_litert


def cells():
    return matrix.read_table(matrix.PAGE.read_text(encoding="utf-8"))


def first_names():
    return [names[0] for names in matrix.kinds()]


def needs(package):
    return pytest.mark.skipif(
        importlib.util.find_spec(package) is None, reason=f"{package} is not installed"
    )


NEEDS = {"ONNX": needs("onnxruntime"), "LiteRT": needs_litert}


def test_every_preset_is_in_the_table():
    assert set(cells()) == set(first_names())


def format_cases():
    """Each kind of preset with each format."""
    for name in first_names():
        for column in matrix.FORMATS:
            yield pytest.param(name, column, marks=NEEDS.get(column, ()))


@pytest.mark.slow
@pytest.mark.parametrize("name, column", format_cases())
def test_formats(name, column, tmp_path):
    written = cells()[name][column]
    assert matrix.format_cell(name, column, tmp_path) == (written or matrix.YES)


@pytest.mark.slow
@needs("onnxruntime")
@pytest.mark.parametrize("name", first_names())
def test_int8(name, tmp_path):
    found, written = matrix.int8_cell(name, tmp_path), cells()[name]["int8"]
    assert found != "–"
    assert found == written or not written


@pytest.mark.slow
@pytest.mark.parametrize(
    "column",
    [pytest.param(x, marks=needs(package)) for x, package in matrix.BACKENDS.items()],
)
def test_backends(column, tmp_path):
    found = matrix.backend_cells(column, tmp_path)
    assert found == {name: row[column] or matrix.YES for name, row in cells().items()}
