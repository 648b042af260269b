"""Every file of a finished run is compared with its digest by whatever reads it."""

import json
import os
import random

import pytest

import tfeff
from tests.subjects.files import flip_bit
from tests.subjects.sentences import tokenizer
from tfeff.plots import learning_curves, score_curves
from tfeff.recipes import ReportSettings, report, runs
from tfeff.recipes.heads import PretrainedHeads
from tfeff.recipes.unseen_segments import has_unseen_segments
from tfeff.tasks.run_tokenizer import load_run_tokenizer
from tfeff.training import RunDirectory


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run with what a run of each recipe leaves."""
    row = {"setting": {"pretrained_step": 1}, "mean": {"dev_f1": 0.5}, "deviation": {}}
    files = {
        "metrics.json": json.dumps({"metric": "dev_f1", "rows": [row], "best": row}),
        "metrics.csv": "step,loss,val_loss\n1,2.5,2.75\n",
        "checkpoints/step-00000001.keras": "PK\5\6" + 18 * "\0",  # An empty archive.
    }
    config = {"command": "finetune", "task": "RTE", "pretrained": "mlm"}
    config["objective"] = "masked_lm"
    path = tmp_path_factory.mktemp("runs") / "run"
    with RunDirectory(path, config) as run:
        tfeff.data.save_tokenizer(tokenizer(), run.path("tokenizer.spm"))
        run.seal("tokenizer.spm")
        for name, content in files.items():
            os.makedirs(os.path.dirname(run.path(name)), exist_ok=True)
            (path / name).write_text(content)
        run.finish()
    return path


READERS = {
    "config.json": [
        lambda path: runs.read_config(str(path)),
        lambda path: has_unseen_segments(str(path)),
        lambda path: PretrainedHeads(str(path), "replaced_token"),
        lambda path: report(ReportSettings(runs=(str(path),))),
        lambda path: RunDirectory(path, {"another": 1}),
    ],
    "metrics.json": [
        lambda path: report(ReportSettings(runs=(str(path),))),
        lambda path: score_curves({"a": path / "metrics.json"}, path / "a.png"),
    ],
    "metrics.csv": [
        lambda path: learning_curves({"a": path / "metrics.csv"}, path / "a.png"),
    ],
    "tokenizer.spm": [
        lambda path: load_run_tokenizer(str(path)),
        lambda path: tfeff.convert.load_tokenizer(path),
        lambda path: tfeff.convert.load_tokenizer(f"{path}@1"),
        lambda path: tfeff.data.load_tokenizer(path / "tokenizer.spm"),
    ],
}


@pytest.mark.parametrize(
    ("name", "read"), [(name, read) for name in READERS for read in READERS[name]]
)
def test_every_reader_finds_a_flipped_bit(folder, name, read):
    if name != "config.json":  # The last one of it is refused in any case.
        read(folder)
    size, rng = os.path.getsize(folder / name), random.Random(0)
    for place in rng.sample(range(size), min(size, 40)):
        bit = rng.randrange(8)
        flip_bit(folder / name, place, bit)
        with pytest.raises(ValueError, match=f"Damaged since .*run/{name}"):
            read(folder)
        flip_bit(folder / name, place, bit)


def test_the_digest_beside_a_tokenizer_alone_is_enough(folder, tmp_path):
    for name in ("tokenizer.spm", "tokenizer.spm.sha256"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    load_run_tokenizer(str(tmp_path))
    flip_bit(tmp_path / "tokenizer.spm", 40)
    with pytest.raises(ValueError, match="tokenizer.spm.sha256 has it"):
        load_run_tokenizer(str(tmp_path))


def test_digests_of_other_files_and_programs_are_no_damage(folder, tmp_path):
    (tmp_path / "spiece.model").write_bytes((folder / "tokenizer.spm").read_bytes())
    (tmp_path / "SHA256SUMS").write_text(f"# a comment\n{'0' * 64}  weights\n")
    (tmp_path / "spiece.model.sha256").write_text("0" * 64)
    tfeff.data.load_tokenizer(tmp_path / "spiece.model")


def test_metrics_of_predictions_are_compared(folder, tmp_path):
    config = {"command": "answer", "task": "SQuAD1.1", "pretrained": "a"}
    with RunDirectory(tmp_path / "run", config) as run:
        metrics = {"f1": 0.5, "exact_match": 0.25, "examples": "a"}
        metrics |= {"dev_split": "dev", "grid": {"best": {"mean": dict(metrics)}}}
        tfeff.training.write_metrics(metrics, run.path("metrics.json"))
        os.makedirs(run.path("predictions", "test"))
        path = run.path("predictions", "test", "metrics.json")
        tfeff.training.write_metrics(metrics, path)
        run.finish()
    settings = ReportSettings(runs=(run.directory,))
    report(settings)
    flip_bit(path, 12)
    with pytest.raises(ValueError, match="Damaged since .*predictions/test/metrics"):
        report(settings)


def test_names_in_any_encoding_are_compared(tmp_path):
    names = [b"\xff.txt", "\u2028\u0085.txt".encode(), b"a\rb", b"two\nlines"]
    with RunDirectory(tmp_path / ".partial-a" / "run", {}) as run:
        for name in names:
            with open(os.path.join(os.fsencode(run.directory), name), "wb") as file:
                file.write(name)
        os.symlink("nowhere", run.path("link"))
        run.finish()
    RunDirectory(run.directory, {}).close()
    for name in names[:3]:
        with RunDirectory(run.directory, {}) as again:
            again.finish()
        flip_bit(os.path.join(os.fsencode(run.directory), name), 0)
        with pytest.raises(ValueError, match="Damaged since"):
            RunDirectory(run.directory, {})
        flip_bit(os.path.join(os.fsencode(run.directory), name), 0)
