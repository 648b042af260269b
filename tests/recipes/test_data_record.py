import json
import os
import time
import zipfile

import numpy as np
import pytest

from tfeff import data, datasets
from tfeff.recipes.data_record import file_digest, keep_data
from tfeff.training import RunDirectory
from tfeff.utils.digests import write_digests


def texts(*first, labels=(0, 1)):
    return data.TextExamples(first, None, np.array(labels), ("dry", "wet"), skipped=())


def weather(**changes):
    arguments = dict(texts=("report",), label="sky", label_names=("dry", "wet"))
    return datasets.tsv_dataset("Weather", **arguments | changes)


def questions(*answers):
    found = [data.Question(a, "Who?", "Ada wrote.", (a,), ((0, 3),)) for a in answers]
    return data.SpanExamples(found)


def words(*labels):
    return data.TokenExamples((("a", "b"),), (list(labels),), ("O", "B-A"), ("0",))


def train(run, cell="a", file="metrics.json"):
    """Leaves a file of a cell: a finished one has its metrics."""
    os.makedirs(run.path("cells", cell), exist_ok=True)
    open(run.path("cells", cell, file), "w").close()


@pytest.mark.parametrize(
    "first, second, other",
    [
        (texts("a", "b"), texts("a", "b"), texts("a", "c")),
        (texts("a", "b"), texts("a", "b"), texts("a", "b", labels=(1, 1))),
        (questions("Ada"), questions("Ada"), questions("ada")),
        (words(0, 1), words(0, 1), words(1, 1)),
    ],
)
def test_examples_stay_the_same(tmp_path, first, second, other):
    with RunDirectory(tmp_path / "run", {}) as run:
        keep_data(run, weather(), {"train": other, "dev": first})  # Nothing is trained.
        keep_data(run, weather(), {"train": first, "dev": first})
        train(run)
        path = tmp_path / "run" / "read_data.json"
        before, text = path.stat().st_mtime_ns, path.read_text()
        keep_data(run, weather(), {"train": second, "dev": second})
        assert path.stat().st_mtime_ns == before
        for part in ("dev", "train"):
            parts = {"train": first, "dev": first, part: other}
            message = rf"has read other examples \({part}\) than there are now for We"
            with pytest.raises(ValueError, match=message):
                keep_data(run, weather(), parts)
        assert path.read_text() == text


def test_long_arrays_count_to_the_end(tmp_path):
    many = np.zeros(5000, int)
    other = many.copy()
    other[2500] = 1
    first, second = (texts(*["a"] * 5000, labels=labels) for labels in (many, other))
    with RunDirectory(tmp_path / "run", {}) as run:
        keep_data(run, weather(), {"train": first})
        train(run)
        with pytest.raises(ValueError, match="other examples"):
            keep_data(run, weather(), {"train": second})


def test_names_stay_the_same(tmp_path):
    parts = {"train": texts("a", "b")}
    with RunDirectory(tmp_path / "run", {}) as run:
        keep_data(run, weather(), parts)
        train(run)
        changed = weather(label_names=("wet", "dry"), metric_names=("f1",))
        with pytest.raises(ValueError, match="other label_names, metric_names than"):
            keep_data(run, changed, parts)
        record = json.loads((tmp_path / "run" / "read_data.json").read_text())
    assert record["label_names"] == ["dry", "wet"]


def write_preset(folder, seed):
    """Files like those of a preset; a seed stands for a training."""
    folder.mkdir(parents=True, exist_ok=True)
    now = time.time_ns()
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_text(json.dumps({"config": {"name": f"encoder_{now}"}}))
    (folder / "metadata.json").write_text(json.dumps({"date_saved": now}))
    (folder / "model.weights.h5").write_text(str(seed))
    write_digests(str(folder))


@pytest.mark.parametrize("is_run", [False, True])
def test_the_encoder_stays_the_same(tmp_path, is_run):
    pretrained = tmp_path / "pretrained"
    preset = pretrained / "preset" if is_run else pretrained
    parts = {"train": texts("a", "b")}
    with RunDirectory(tmp_path / "run", {"pretrained": str(pretrained)}) as run:
        for seed in (0, 1, 1):
            write_preset(preset, seed)
            keep_data(run, weather(), parts)  # Nothing is trained.
        train(run)
        write_preset(preset, 1)
        keep_data(run, weather(), parts)
        write_preset(preset, 2)
        message = "begun with another pretrained='.*pretrained' than there is now"
        with pytest.raises(ValueError, match=message):
            keep_data(run, weather(), parts)
        # Runs of earlier versions have not noted it.
        record = json.loads((tmp_path / "run" / "read_data.json").read_text())
        del record["pretrained"]
        (tmp_path / "run" / "read_data.json").write_text(json.dumps(record))
        keep_data(run, weather(), parts)
        keep_data(run, weather(), parts)


def test_what_else_is_read_stays_the_same(tmp_path):
    path, parts = tmp_path / "vectors.txt", {"train": texts("a", "b")}
    with RunDirectory(tmp_path / "run", {"word_vectors": str(path)}) as run:

        def keep():
            others = {"word_vectors": file_digest(path)}
            keep_data(run, weather(), parts, models=(), others=others)

        path.write_text("cat 1")
        keep()
        train(run)
        keep()
        path.write_text("cat 2")
        with pytest.raises(ValueError, match="what `word_vectors` names has changed"):
            keep()
        keep_data(run, weather(), parts, models=())  # It reads none any more.
        # Runs of earlier versions have not noted it.
        record = json.loads((tmp_path / "run" / "read_data.json").read_text())
        del record["word_vectors"]
        (tmp_path / "run" / "read_data.json").write_text(json.dumps(record))
        keep()


@pytest.mark.parametrize("by_flag", [False, True])
def test_the_checkpoints_stay_the_same(tmp_path, by_flag):
    checkpoints = tmp_path / "pretrained" / "checkpoints"
    checkpoints.mkdir(parents=True)

    def write(step, weights, date="today"):
        with zipfile.ZipFile(checkpoints / f"step-{step:08d}.keras", "w") as archive:
            archive.writestr("model.weights.h5", weights)
            archive.writestr("metadata.json", date)

    for step in (1, 2):
        write(step, "first")
    pretrained = str(tmp_path / "pretrained")
    config = {"pretrained": f"{pretrained}@2", "pretrained_steps": []}
    if by_flag:
        config = {"pretrained": pretrained, "pretrained_steps": [2]}
    parts = {"train": texts("a", "b")}
    with RunDirectory(tmp_path / "run", config) as run:
        keep_data(run, weather(), parts)
        train(run)
        write(1, "second")
        write(2, "first", "tomorrow")
        keep_data(run, weather(), parts)
        write(2, "second")
        with pytest.raises(ValueError, match="the encoder of `pretrained` has changed"):
            keep_data(run, weather(), parts)


def test_a_cell_without_metrics_is_trained_again(tmp_path):
    with RunDirectory(tmp_path / "run", {}) as run:
        keep_data(run, weather(), {"train": texts("a", "b")})
        train(run, file="model.keras")
        keep_data(run, weather(), {"train": texts("a", "c")})
