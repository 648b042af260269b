import json

import numpy as np
import pytest
import tensorflow as tf

from tfeff.recipes.versions import note_versions
from tfeff.training import RunDirectory


def noted(run):
    with open(run.path("versions.json")) as file:
        return json.load(file)


def test_versions_are_noted_once(tmp_path, capsys):
    with RunDirectory(tmp_path / "run", {}) as run:
        note_versions(run)
        found = noted(run)
        note_versions(run)
        assert noted(run) == found
    assert found["tensorflow"] == [tf.__version__]
    assert set(found) == {
        *("python", "tfeff", "tensorflow", "tensorflow_text", "keras", "keras_hub"),
        "numpy",
    }
    assert capsys.readouterr().out == ""


def test_new_versions_are_noted_behind_the_earlier_ones(tmp_path, capsys, monkeypatch):
    with RunDirectory(tmp_path / "run", {}) as run:
        note_versions(run)
        first = np.__version__
        for version in ("9.0", first):
            monkeypatch.setattr(np, "__version__", version)
            note_versions(run)
        assert noted(run)["numpy"] == [first, "9.0", first]
        assert noted(run)["tensorflow"] == [tf.__version__]
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"numpy 9.0 goes on with what {first} began",
        f"numpy {first} goes on with what 9.0 began",
    ]


@pytest.mark.parametrize("content", ["", "[]", '{"numpy": 3}', '{"numpy": []}'])
def test_damaged_notes_are_named(tmp_path, content):
    with RunDirectory(tmp_path / "run", {}) as run:
        (tmp_path / "run" / "versions.json").write_text(content)
        with pytest.raises(ValueError, match=r"versions\.json"):
            note_versions(run)
