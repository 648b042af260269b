"""The papers' tables of finished runs."""

import glob
import math
import os
import sys

from tfeff.datasets.aliases import ALIASES
from tfeff.datasets.glue import SCORED_TASKS, glue_average
from tfeff.recipes.report_settings import ReportSettings
from tfeff.recipes.settings import check_settings
from tfeff.storage.arguments import READ_RESULTS, REPLACE, check_replaceable, paths
from tfeff.storage.fetching import matching_folders
from tfeff.utils.checks import is_url
from tfeff.utils.files import atomic_file
from tfeff.utils.json_files import read_object

# In the order of the papers' columns.
_QUESTIONS = (
    *("SQuAD1.1", "SQuAD2.0"),
    *("SearchQA", "TriviaQA", "NewsQA", "NaturalQuestions", "HotpotQA"),
)
_EXPECTED = (
    "`runs` must be folders of finished runs of `tfeff finetune` or `tfeff answer`"
)


class _NoScores(Exception):
    """A folder is not one of a finished run of `finetune` or `answer`."""


def report(settings: ReportSettings) -> dict[str, dict[str, dict[str, float]]]:
    """Prints a table of texts and one of questions, of finished runs.

    Args:
        settings: see `ReportSettings`.

    Returns:
        By encoder and task, the metrics of the run with the best one: that which it
        chose by comes first. GLUE's average is the task `"GLUE"`. Last, by the name of
        a baseline, such as `"majority baseline"`, and task, its best of all runs.

    Raises:
        ValueError: if there is no run; if a folder that is named alone is not of a
            finished run of `finetune` or `answer` (what globs match beside such runs
            is left out, and told on standard error); if a file is damaged; or if there
            is no folder for `output`.

    Example:
    ```python
    import json
    import os
    from tfeff.recipes import ReportSettings, report

    os.makedirs("done/rte")  # As `finetune` leaves it.
    config = {"task": "RTE", "pretrained": "mlm"}
    best = {"mean": {"dev_accuracy": 0.75}}
    for name, content in (
        ("config.json", config),
        ("metrics.json", {"metric": "dev_accuracy", "best": best}),
    ):
        with open(f"done/rte/{name}", "w") as file:
            json.dump(content, file)
    found = report(ReportSettings(runs=("done/*",)))
    assert found == {"mlm": {"RTE": {"dev_accuracy": 0.75}}}
    ```

    Reference:
        Tian et al., "Shatter", tables 2 to 5; Qiu et al., "BlockBERT", tables 3 and 4;
        Jiang et al., "ConvBERT", section 4.2, for the average.
    """
    check_settings(settings, ReportSettings)
    if settings.output is not None:
        check_replaceable("output", settings.output)
    found: dict[str, dict[str, dict[str, float]]] = {}
    baselines: dict[str, dict[str, dict[str, float]]] = {}
    of_questions = set()
    for model, task, scores, baseline, is_question in _runs(settings.runs):
        if is_question:
            of_questions.add(task)
        _keep_best(found, model, task, scores)
        if baseline is not None:
            _keep_best(baselines, baseline["name"], task, baseline["metrics"])
    found |= baselines
    for tasks in found.values():
        scores = {task: _first(metrics) for task, metrics in tasks.items()}
        if set(SCORED_TASKS) <= set(scores):
            tasks["GLUE"] = {"average": glue_average(scores)}
    tables = []
    for wanted, order in ((False, (*SCORED_TASKS, "GLUE")), (True, _QUESTIONS)):
        names = {t for tasks in found.values() for t in tasks}
        names = {name for name in names if (name in of_questions) is wanted}
        columns = [name for name in order if name in names]
        columns += sorted(names - set(columns))
        if columns:
            tables.append(_table(found, columns))
    text = "\n".join(tables)
    print(text, end="")
    if settings.output is not None:
        _write(text, settings.output)
    return found


@paths(output=REPLACE)
def _write(text, output):
    with atomic_file(output) as new, open(new, "w", encoding="utf-8") as file:
        file.write(text)


def _runs(patterns):
    """What `_read` gives of the runs, without what is none and no pattern names."""
    found = []
    for pattern in patterns:
        for folder in (
            matching_folders("runs", pattern)
            if is_url(pattern)
            else sorted(glob.glob(pattern)) or [pattern]
        ):
            try:
                found.append(_read(folder))
            except _NoScores as error:
                if folder == pattern:
                    raise ValueError(
                        f"{_EXPECTED}. Received: {folder!r}, {error}"
                    ) from error
                print(f"{folder} is left out: {error}", file=sys.stderr)
    if not found:
        raise ValueError(f"{_EXPECTED}. Received: runs={list(patterns)}, without one")
    return found


def _keep_best(found, row, task, scores):
    tasks = found.setdefault(row, {})
    if task not in tasks or _first(scores) > _first(tasks[task]):
        tasks[task] = scores


@paths(folder=READ_RESULTS)
def _read(folder):
    """The encoder, task, metrics, baseline, and whether it is one of questions.

    Runs of before there were baselines have none.
    """
    config, metrics = (_json(folder, name) for name in ("config.json", "metrics.json"))
    is_question = "grid" in metrics
    # Of `embed`, too, metrics have a best cell, beside those before the training.
    is_text = "best" in metrics and "untrained" not in metrics
    if not ("task" in config and "pretrained" in config and (is_question or is_text)):
        raise _NoScores("a run of another command")
    if is_question:
        metrics = _predicted(folder, config, metrics)
    try:
        task = ALIASES.get(config["task"], config["task"])
        if is_question:
            scores = {name: _number(metrics[name]) for name in ("f1", "exact_match")}
        else:
            scores = _of_texts(metrics)
        baseline = metrics.get("baseline")
        if baseline is not None:
            of_baseline = {name: _number(baseline["metrics"][name]) for name in scores}
            baseline = {"name": baseline["name"], "metrics": of_baseline}
        return config["pretrained"], task, scores, baseline, is_question
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{_EXPECTED}. Received: {folder!r}, whose metrics are damaged "
            f"({type(error).__name__}: {error})"
        ) from error


def _json(folder, name):
    path = os.path.join(folder, name)
    if not os.path.isfile(path):
        raise _NoScores(f"it has no {name}")
    return read_object(path, folder)


def _of_texts(summary):
    """The metric that tells the best, of all development parts."""
    metric, mean = summary["metric"], summary["best"]["mean"]
    # dev_matched_accuracy, dev_mismatched_accuracy; dev_accuracy.
    name = metric.removeprefix("dev_").removeprefix("matched_")
    parts = ("", "matched_", "mismatched_")
    keys = [f"dev_{part}{name}" for part in parts if f"dev_{part}{name}" in mean]
    return {key: _number(mean[key]) for key in [metric, *keys]}


def _predicted(folder, config, metrics):
    """The metrics of a part that is predicted, else those of the development set."""
    names = glob.glob("*/metrics.json", root_dir=os.path.join(folder, "predictions"))
    parts = sorted(
        {os.path.dirname(name) for name in names} - {config.get("dev_split")}
    )
    if not parts:
        return metrics
    if len(parts) > 1:
        print(f"{folder}: of its predicted parts, {parts[0]} is shown", file=sys.stderr)
    return _json(folder, os.path.join("predictions", parts[0], "metrics.json"))


def _table(found, columns):
    heads = {c: "EM / F1" if c in _QUESTIONS else "" for c in columns}
    titles = [f"{name} {head}".strip() for name, head in heads.items()]
    lines = [f"| encoder | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for model, tasks in found.items():
        cells = [_cell(tasks.get(name), name) for name in columns]
        if set(cells) != {"–"}:
            lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(scores, task):
    if scores is None:
        return "–"
    if "exact_match" in scores and task not in SCORED_TASKS:
        return f"{_percent(scores['exact_match'], 2)} / {_percent(scores['f1'], 2)}"
    return "/".join(_percent(value, 1) for value in scores.values())


def _percent(value, digits):
    return "undefined" if math.isnan(value) else f"{100 * value:.{digits}f}"


def _first(scores):
    value = next(iter(scores.values()))
    return -math.inf if math.isnan(value) else value


def _number(value):
    return math.nan if value is None else float(value)
