"""Numbered versions of an export, one of which is not touched by another."""

import shutil

import pytest

import tfeff
from tests.export.tensorflow_serving import Server
from tests.subjects.sentences import tokenizer
from tests.subjects.serving import make_encoder, serve


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A folder with two versions, of encoders of different widths."""
    base = tmp_path_factory.mktemp("model") / "export"
    for number, width in ((1, 16), (2, 32)):
        encoder = make_encoder(hidden_dim=width)
        path = tfeff.export.save_version(encoder, tokenizer(), base, sequence_length=8)
        assert path == str(base / str(number))
    return base


@pytest.mark.slow
def test_the_newest_is_the_last(base):
    versions = tfeff.export.versions(base)
    assert versions == [str(base / "1"), str(base / "2")]
    assert tfeff.export.versions(base / "1") == [str(base / "1")]
    for path, width in zip(versions, (16, 32)):
        outputs = serve(path, "serving_default", ["zebras"])
        assert outputs["embeddings"].shape == (1, width)
    assert tfeff.export.versions(base / "none") == []
    with pytest.raises(TypeError, match="`path` must be a path"):
        tfeff.export.versions(7)


def test_of_a_base_folder_the_newest_is_checked(base):
    damaged = base / "2" / "saved_model.pb"
    content = damaged.read_bytes()
    damaged.write_bytes(content[:-1])
    for path in (base, base / "2"):
        with pytest.raises(ValueError, match="damaged.*saved_model.pb"):
            tfeff.export.check_export(path)
    tfeff.export.check_export(base / "1")
    damaged.unlink()  # It is the newest also without its graph.
    with pytest.raises(ValueError, match="damaged.*saved_model.pb"):
        tfeff.export.check_export(base)
    damaged.write_bytes(content)
    tfeff.export.check_export(base)


@pytest.mark.slow
def test_versions_with_zeros_are_served(base, tmp_path):
    """As TensorFlow's own exporters once named them."""
    shutil.copytree(base / "1", tmp_path / "00000007")
    assert tfeff.export.versions(tmp_path) == [str(tmp_path / "00000007")]
    assert Server(tmp_path).version == 7
    encoder = make_encoder(hidden_dim=32)
    path = tfeff.export.save_version(encoder, tokenizer(), tmp_path, sequence_length=8)
    assert path == str(tmp_path / "8")
    assert tfeff.export.versions(tmp_path)[-1] == path
    assert Server(tmp_path).version == 8


@pytest.mark.parametrize("save", ["save_for_serving", "save_version"])
@pytest.mark.parametrize("path", ["file/1", "file/a/1", "a\udcff", 300 * "x"])
def test_paths_that_cannot_be_written_are_named(path, save, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ValueError, match="`path` must be .*Received: path="):
        getattr(tfeff.export, save)(make_encoder(), tokenizer(), path)
    assert [x.name for x in tmp_path.iterdir()] == ["file"]


def test_what_is_no_folder_of_versions_is_refused_before_anything_is_written(
    base, tmp_path
):
    file = tmp_path / "file"
    file.write_text("precious")
    for path, message in ((base / "1", "an export itself"), (file, "a file")):
        with pytest.raises(ValueError, match=f"`path` must be a folder.*{message}"):
            tfeff.export.save_version(make_encoder(), tokenizer(), path)
    tfeff.export.check_export(base / "1")
    assert file.read_text() == "precious"
    new = tmp_path / "new"
    with pytest.raises(TypeError, match="`top_k` must be an option of Encoder"):
        tfeff.export.save_version(make_encoder(), tokenizer(), new, top_k=3)
    assert not new.exists()
