"""Paths that the system cannot name, and paths that have characters of globs."""

import pathlib

import pytest
import tensorflow as tf

import tfeff
from tfeff.utils.paths import check_model_path, check_path, matches


def test_a_path_is_one_that_the_system_can_name():
    for name, call in (
        ("path", tfeff.tasks.load_pretrained),
        ("path", lambda path: tfeff.training.write_metrics({"f1": 1.0}, path)),
        ("directory", tfeff.data.open_cache),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must be a path that the"):
            call("\ud800")


@pytest.mark.parametrize("path", ["~", "~/a", pathlib.Path("~/a")])
def test_paths_have_no_home(path):
    with pytest.raises(ValueError, match="`path` must be a path without ~, "):
        check_path("path", path)
    assert check_path("path", "~a/b") == "~a/b"  # As editors name copies.
    assert check_path("path", "a/~/b") == "a/~/b"


def test_a_path_comes_before_a_glob(tmp_path):
    for name in ("rate[1]", "rate1", "rate2"):
        (tmp_path / name).touch()
    assert matches(str(tmp_path / "rate[1]")) == [str(tmp_path / "rate[1]")]
    expected = [str(tmp_path / name) for name in ("rate1", "rate2")]
    assert matches(str(tmp_path / "rate[12]")) == expected
    assert matches(str(tmp_path / "none*")) == []


def test_folders_come_before_globs(tmp_path, monkeypatch):
    for name in ("x[1]/a", "x[1]/deep/b", "x1/a", "x1/c"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert matches(f"{tmp_path}/x[1]/*") == [
        str(tmp_path / "x[1]" / name) for name in ("a", "deep")
    ]
    assert matches(f"{tmp_path}/x[1]/d*/b") == [str(tmp_path / "x[1]" / "deep" / "b")]
    assert matches(f"{tmp_path}/x[12]/*") == [
        str(tmp_path / "x1" / name) for name in ("a", "c")
    ]
    assert matches(f"{tmp_path}/**/c") == [str(tmp_path / "x1" / "c")]
    monkeypatch.chdir(tmp_path)
    assert matches("x[1]/a*") == ["x[1]/a"]
    assert matches("x*/a") == ["x1/a", "x[1]/a"]
    assert matches("x*") == ["x1", "x[1]"]


@pytest.mark.parametrize("name", ["a[1]", "a\\b"])
def test_paths_of_which_tensorflow_reads_no_model(name, tmp_path):
    """It reads the variables of others: the test fails once it reads these."""
    model = tf.Module()
    model.weight = tf.Variable([1.0])
    path = str(tmp_path / name / "x")
    tf.saved_model.save(model, path)
    with pytest.raises((OSError, tf.errors.OpError)):
        tf.saved_model.load(path)
    with pytest.raises(ValueError, match="`path` must have no"):
        check_model_path("path", path)
    other = str(tmp_path / "b]*?{1} %$")
    check_model_path("path", other)
    tf.saved_model.save(model, other)
    assert tf.saved_model.load(other).weight.numpy().tolist() == [1.0]
