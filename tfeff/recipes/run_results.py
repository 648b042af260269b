"""The results of finished runs, as `tfeff report` shows them."""

import glob
import math
import os
from typing import NamedTuple

from tfeff.datasets.aliases import ALIASES
from tfeff.datasets.glue import SCORED_TASKS
from tfeff.recipes.answer_settings import AnswerSettings
from tfeff.recipes.finetune_settings import FinetuneSettings
from tfeff.recipes.settings import of_command
from tfeff.storage.arguments import READ_RESULTS, paths
from tfeff.storage.fetching import matching_folders
from tfeff.utils.job_output import say
from tfeff.utils.json_files import read_object
from tfeff.utils.paths import is_url, matches
from tfeff.utils.run_files import CONFIG, METRICS, PREDICTIONS, READ_DATA

_EXPECTED = (
    "`runs` must be folders of finished runs of `tfeff finetune` or `tfeff answer`"
)


class Column(NamedTuple):
    """A column of the table: a task by one metric, of questions on one part.

    Attributes:
        task: the name of the data set.
        scored_by: the metric with its part, of texts; the part alone, of questions.
        of_questions: whether it is a task of questions.
        digests: those of the examples that are scored, but of GLUE, whose files are
            the same everywhere. WikiANN has others for each language, and questions of
            one's own may be given as SQuAD's.
    """

    task: str
    scored_by: str
    of_questions: bool
    digests: tuple[str, ...] = ()


class Result(NamedTuple):
    """What a run tells.

    Attributes:
        encoder: its name, as the run was given it.
        column: what was scored.
        data: the folder of the data set; empty of fixed benchmarks.
        scores: metrics by name, that which the run chose by first.
        baseline: a baseline's name and metrics; `None` if the run has none.
    """

    encoder: str
    column: Column
    data: str
    scores: dict[str, float]
    baseline: dict | None


class _NoScores(Exception):
    """A folder is not one of a finished run of `finetune` or `answer`."""


def matching_runs(patterns):
    """Pairs of a pattern and a folder that it matches, or that it is."""
    return [
        (pattern, folder)
        for pattern in patterns
        for folder in (
            matching_folders("runs", pattern)
            if is_url(pattern)
            else matches(pattern) or [pattern]
        )
    ]


def read_results(patterns, matching):
    """The `Result` of each run, by its folder.

    Args:
        patterns: as `matching_runs` takes them.
        matching: what it gave. Folders that a glob matches beside runs are left out.

    Raises:
        ValueError: if there is no run; if a folder that is named alone is none, or a
            file is damaged.
    """
    found = {}
    for pattern, folder in matching:
        try:
            found[folder.rstrip("/")] = _read(folder)
        except _NoScores as error:
            if folder == pattern:
                raise ValueError(
                    f"{_EXPECTED}. Received: {folder!r}, {error}"
                ) from error
            say(f"{folder} is left out: {error}")
    if not found:
        raise ValueError(f"{_EXPECTED}. Received: runs={list(patterns)}, without one")
    return found


@paths(folder=READ_RESULTS)
def _read(folder):
    """The `Result` of the run in a folder."""
    config, metrics = (_json(folder, name) for name in (CONFIG, METRICS))
    command = config.get("command")
    is_question = command == AnswerSettings.command
    if not is_question and command != FinetuneSettings.command:
        raise _NoScores(f"whose {CONFIG} is {of_command(config)}")
    part = metrics.get("dev_split")
    predicted = None
    if is_question and (name := _predicted(folder, part)):
        part, predicted = name, _json(folder, f"{PREDICTIONS}/{name}/{METRICS}")
    try:
        task = _text(ALIASES.get(config["task"], config["task"]))
        if is_question:
            # The best seed was chosen by the development set: its scores are means over
            # the seeds, as those of texts are.
            found = predicted or metrics["grid"]["best"]["mean"]
            scores = {name: _number(found[name]) for name in ("f1", "exact_match")}
        else:
            scores = _text_scores(metrics)
        baseline = (predicted or metrics).get("baseline")
        if baseline is not None:
            of_baseline = {name: _number(baseline["metrics"][name]) for name in scores}
            baseline = {"name": _text(baseline["name"]), "metrics": of_baseline}
        scored_by = _text(part if is_question else metrics["metric"])
        is_fixed = task in SCORED_TASKS
        data = "" if is_fixed else config.get("data", "").rstrip("/")
        if predicted:
            digests = (_text(predicted["examples"]),)
        else:
            digests = () if is_fixed else _digests(folder)
        column = Column(task, scored_by, is_question, digests)
        return Result(_text(config["pretrained"]), column, data, scores, baseline)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{_EXPECTED}. Received: {folder!r}, whose metrics are damaged "
            f"({type(error).__name__}: {error})"
        ) from error


def _text(value):
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.80} is no text")
    return value


def _digests(folder):
    """Digests of the scored parts."""
    parts = _json(folder, READ_DATA)["examples"]
    return tuple(str(parts[name]) for name in sorted(parts) if name != "train")


def _json(folder, name):
    path = os.path.join(folder, name)
    if not os.path.lexists(folder):
        raise _NoScores("where there is nothing")
    if not os.path.isfile(path):
        raise _NoScores(f"it has no {name}")
    return read_object(path, folder)


def _text_scores(summary):
    """The metric that tells the best, of all development parts."""
    metric, mean = summary["metric"], summary["best"]["mean"]
    # dev_matched_accuracy, dev_mismatched_accuracy; dev_accuracy.
    name = metric.removeprefix("dev_").removeprefix("matched_")
    parts = ("", "matched_", "mismatched_")
    keys = [f"dev_{part}{name}" for part in parts if f"dev_{part}{name}" in mean]
    return {key: _number(mean[key]) for key in [metric, *keys]}


def _predicted(folder, part):
    """A part that is predicted beside that of the development set; `None` without."""
    names = glob.glob(f"*/{METRICS}", root_dir=os.path.join(folder, PREDICTIONS))
    parts = sorted({os.path.dirname(name) for name in names} - {part})
    if len(parts) > 1:
        say(f"{folder}: of its predicted parts, {parts[0]} is shown")
    return parts[0] if parts else None


def _number(value):
    return math.nan if value is None else float(value)
