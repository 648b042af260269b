"""Rows of measurements: what they come from is recorded with them."""

import csv
import re
from types import SimpleNamespace

import pytest

from tests.benchmarks.scripts import FOLDER

FILES = sorted((FOLDER / "results").glob("*.csv"))
ORIGIN = {"machine", "versions", "command", "commit"}


@pytest.fixture(scope="module")
def rows(load):
    return SimpleNamespace(**load("rows.py"))


def test_every_row_is_recorded_with_its_origin(rows, tmp_path):
    path = str(tmp_path / "some.csv")
    rows.record(path, ("what", "machine", "value"), [{"what": "a", "value": 1}])
    rows.record(
        path,
        ("what", "machine", "value"),
        [{"what": "b", "value": 2, "machine": "that of the row"}],
    )
    first, second = rows.read(path)
    assert set(first) == {"what", "value"} | ORIGIN
    assert all(first.values())
    assert second["machine"] == "that of the row"
    assert second["commit"] == first["commit"]
    line = rows.origins([first, second])
    assert f"Machine: {first['machine']}; that of the row." in line
    assert line.count(first["commit"]) == 1


def test_new_columns_are_added_to_earlier_rows(rows, tmp_path):
    path = str(tmp_path / "some.csv")
    rows.append(path, ("what", "value"), [{"what": "a", "value": 1}])
    rows.append(path, ("what", "cost", "value"), [{"what": "b", "cost": 2, "value": 3}])
    assert rows.read(path) == [
        {"what": "a", "value": "1", "cost": ""},
        {"what": "b", "value": "3", "cost": "2"},
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["some.csv"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_recorded_rows_name_a_commit(path):
    # A curve is that of a row of the file beside it.
    path = path.with_stem(path.stem.removesuffix("_curves"))
    with open(path, encoding="utf-8", newline="") as file:
        recorded = list(csv.DictReader(file))
    assert recorded
    for row in recorded:
        assert "--results=" not in row["command"], row  # A folder of one machine.
        assert re.fullmatch("[0-9a-f]{8,12}(-dirty)?", row["commit"]), row
