"""What recipes export, over several starts, and after those of earlier versions."""

import pytest

import tfeff
from tests.subjects.files import flip_bit
from tests.subjects.sentences import tokenizer
from tests.subjects.serving import make_encoder
from tfeff.recipes.run_exports import export_once, make_once, newest_export


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


@pytest.mark.slow
def test_the_export_of_a_run_of_before_there_were_versions_stays(run):
    flat = run.path("export")
    tfeff.export.save_for_serving(make_encoder(), tokenizer(), flat)
    assert export_once(run, make_encoder(), tokenizer()) == flat == newest_export(run)
    tfeff.export.check_export(flat)
    assert tfeff.export.versions(flat) == [flat]


def test_a_folder_is_made_once_and_checked(tmp_path):
    made = []

    def write(path):
        made.append(path)
        tmp_path.joinpath("folder").mkdir()

    for _ in range(2):
        make_once(str(tmp_path / "folder"), write)
    assert made == [str(tmp_path / "folder")]
