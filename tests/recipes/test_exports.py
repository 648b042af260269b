"""What recipes export, over several starts, and after those of earlier versions."""

import os
import shutil

import pytest

import tfeff
from tests.subjects.files import flip_bit
from tests.subjects.sentences import tokenizer
from tests.subjects.serving import make_encoder
from tfeff.recipes.run_exports import (
    export_once,
    make_once,
    newest_export,
    same_weights,
    write_encoder,
)
from tfeff.utils.files import write_text


@pytest.fixture
def run(tmp_path):
    with tfeff.training.RunDirectory(tmp_path / "run", {}) as run:
        yield run


@pytest.mark.slow
def test_a_run_exports_once(run):
    assert newest_export(run) == run.path("export")
    first = export_once(run, make_encoder(), tokenizer(), sequence_length=8)
    assert first == newest_export(run) == run.path("export", "1")
    assert export_once(run, make_encoder(), tokenizer()) == first
    flip_bit(run.path("export", "1", "saved_model.pb"), 3, 0)
    with pytest.raises(ValueError, match="damaged.*saved_model.pb"):
        export_once(run, make_encoder(), tokenizer())
    assert tfeff.export.versions(run.path("export")) == [first]


def test_a_preset_and_an_export_are_of_one_training(run, monkeypatch, capsys):
    exported = []

    def save_version(model, tokenizer, path):
        exported.append(model)
        folder = f"{path}/{len(exported)}"
        os.makedirs(folder)
        write_text(f"{folder}/saved_model.pb", "")
        return folder

    def write(model):
        folder = write_encoder(run, model, tokenizer(), model)
        kept, _ = tfeff.tasks.load_pretrained(run.path("preset"))
        assert same_weights(kept, model)
        return folder

    monkeypatch.setattr(tfeff.export, "save_version", save_version)
    first, second = make_encoder(), make_encoder()
    second.set_weights([weight + 1 for weight in first.get_weights()])
    assert write(first) == write(first) == run.path("export", "1")
    assert not capsys.readouterr().out
    assert write(second) == write(second) == run.path("export", "2")
    printed = capsys.readouterr().out
    assert "preset was of another training, or deleted: " in printed
    assert f"{run.path('preset')} has the encoder of this one now" in printed
    shutil.rmtree(run.path("preset"))
    assert write(first) == run.path("export", "3")
    shutil.rmtree(run.path("export"))
    write(first)
    assert exported == [first, second, first, first]


def test_a_folder_is_made_once_and_checked(tmp_path):
    made = []

    def write(path):
        made.append(path)
        tmp_path.joinpath("folder").mkdir()
        tmp_path.joinpath("folder", "config.json").touch()

    for _ in range(2):
        make_once(str(tmp_path / "folder"), write)
    assert made == [str(tmp_path / "folder")]
    tmp_path.joinpath("folder", "config.json").unlink()
    for _ in range(2):
        with pytest.raises(ValueError, match="Delete .*folder to have it made again"):
            make_once(str(tmp_path / "folder"), write)
        if tmp_path.joinpath("folder").is_dir():
            tmp_path.joinpath("folder").rmdir()
            tmp_path.joinpath("folder").touch()
