"""What a run of fine-tuning reads, so that one that goes on reads the same."""

import dataclasses
import glob
import hashlib
import json
import os
from collections.abc import Mapping

import numpy as np

import tfeff
from tfeff.storage.remote_run import READ_DATA
from tfeff.utils.files import atomic_file
from tfeff.utils.json_files import read_object


def keep_data(
    run: tfeff.training.RunDirectory,
    dataset: tfeff.datasets.Dataset,
    parts: Mapping[str, object],
) -> None:
    """Notes what a run reads; raises if it is not what the run has read before.

    What is trained is not trained again, so that all must be of one data set.

    Args:
        run: its directory, which has `read_data.json` from now on.
        dataset: its labels and metrics.
        parts: the examples by the names of their parts.

    Raises:
        ValueError: if labels, metrics or examples are others; it names them.
    """
    labels = dataset.label_names
    found = {
        "label_names": None if labels is None else list(labels),
        "metric_names": list(dataset.metric_names),
        "examples": {part: _digest(examples) for part, examples in parts.items()},
    }
    path = run.path(READ_DATA)
    models = os.path.join(glob.escape(run.path("cells")), "**", "model.keras")
    trained = glob.glob(models, recursive=True)
    there = {}
    if trained and os.path.exists(path):
        there = read_object(path, run.directory)
    elif trained:  # By an earlier version, which kept no more than the labels.
        model = tfeff.training.load_checkpoint(trained[0], compile=False)
        if names := getattr(model, "label_names", None):
            there = {"label_names": list(names)}
    if changes := [name for name in there if there[name] != found.get(name)]:
        raise ValueError(
            "`run_dir` must be a new folder where the data have changed. Received: "
            f"run_dir={run.shown(run.directory)!r}, which has read other "
            f"{', '.join(changes)} than {dataset.name} has now"
        )
    if run.is_chief:
        with atomic_file(path) as new, open(new, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)


def _digest(examples):
    """That of all that is read, but of what tells of the files."""
    digest = hashlib.sha256()
    for field in dataclasses.fields(examples):
        if field.name == "skipped":
            continue
        values = getattr(examples, field.name)
        for value in values if isinstance(values, tuple) else (values,):
            digest.update(json.dumps(value, default=_plain).encode() + b"\n")
    return digest.hexdigest()


def _plain(value):
    if dataclasses.is_dataclass(value):
        return dataclasses.astuple(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
