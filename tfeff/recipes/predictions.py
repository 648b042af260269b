"""Predictions of a part of a data set, as the last step of fine-tuning writes them."""

import contextlib
import os
import tempfile
from collections.abc import Mapping
from typing import Any

import tfeff
from tfeff.recipes.baselines import scores_line
from tfeff.recipes.data_record import examples_digest
from tfeff.utils.files import copy_file, remove_folder
from tfeff.utils.run_files import METRICS, PREDICTIONS


def remove_predictions(run: tfeff.training.RunDirectory) -> None:
    """Removes what an earlier start predicted, of all parts; a line says so.

    To be called where another model is the run's, before that one is written.
    """
    folder = run.path(PREDICTIONS)
    if os.path.isdir(folder):
        remove_folder(folder)
        print(f"{run.shown(folder)} was of another model, or unfinished: it is removed")


def write_predictions(
    run: tfeff.training.RunDirectory,
    dataset: tfeff.datasets.Dataset,
    split: str,
    examples: Any,
    predictions: Any,
) -> list[str]:
    """Writes predictions in the benchmark's layout, in place of an earlier start's.

    Metrics of an earlier start's predictions are removed.

    Args:
        run: the run directory.
        dataset: the data set, which has the layout.
        split: the name of the part.
        examples: its examples.
        predictions: one for each of them.

    Returns:
        The files.
    """
    folder = run.path(PREDICTIONS, split)
    os.makedirs(folder, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(folder, METRICS))
    return replace_predictions(dataset, split, examples, predictions, folder)


def replace_predictions(
    dataset: tfeff.datasets.Dataset,
    split: str,
    examples: Any,
    predictions: Any,
    folder: str,
) -> list[str]:
    """Writes predictions to a folder, in place of files of the same names.

    Args:
        dataset, split, examples, predictions: as of `write_predictions`.
        folder: a folder that is there.

    Returns:
        The files.
    """
    written = []
    with tempfile.TemporaryDirectory() as new:
        for path in dataset.write_predictions(split, examples, predictions, new):
            written.append(os.path.join(folder, os.path.basename(path)))
            copy_file(path, written[-1])
    return written


def write_scores(
    run: tfeff.training.RunDirectory,
    split: str,
    examples: Any,
    scores: Mapping[str, float],
    baseline: Mapping,
) -> None:
    """Writes and prints the metrics of predictions, with those of the baseline.

    Args:
        run: the run directory.
        split: the name of the part.
        examples: its examples, whose digest is written, too.
        scores: the metrics.
        baseline: as of `make_baseline`.
    """
    tfeff.training.write_metrics(
        {**scores, "baseline": baseline, "examples": examples_digest(examples)},
        run.path(PREDICTIONS, split, METRICS),
    )
    print(f"{split}: {scores_line(scores, baseline)}")
