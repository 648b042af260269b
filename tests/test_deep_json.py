"""JSON that is nested without end is refused as any other that is damaged."""

import pytest

import tfeff
from tfeff.datasets import files
from tfeff.plots import score_curves
from tfeff.recipes import ReportSettings, report, runs
from tfeff.storage.manifest import Manifest
from tfeff.training import RunDirectory
from tfeff.training.scores import read_metrics

NESTED = '{"a":' * 100_000
READERS = {
    "a.jsonl": [
        lambda path: list(tfeff.data.json_lines([str(path)], "text")),
        lambda path: list(files.json_lines(path)),
        lambda path: tfeff.datasets.read_sentences(str(path)),
    ],
    "dev-v2.0.json": [files.json_file, tfeff.data.load_tokenizer],
    "config.json": [
        lambda path: runs.read_config(str(path.parent)),
        lambda path: RunDirectory(path.parent, {"seed": 0}),
        lambda path: report(ReportSettings(runs=(str(path.parent),))),
    ],
    "metrics.json": [read_metrics, lambda path: score_curves({"a": path}, "a.png")],
    "manifest.json": [
        lambda path: tfeff.data.open_cache(path.parent),
        lambda path: Manifest.parse(path.read_bytes()),
    ],
    "tokenizer.json": [tfeff.convert.load_tokenizer],
}


@pytest.mark.parametrize(
    ("name", "read"), [(name, read) for name in READERS for read in READERS[name]]
)
def test_it_is_refused(tmp_path, name, read):
    (tmp_path / "metrics.json").write_text("{}")
    (tmp_path / name).write_text(NESTED)
    with pytest.raises(ValueError, match=f"{name}|RecursionError"):
        read(tmp_path / name)
