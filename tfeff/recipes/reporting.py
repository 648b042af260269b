"""The papers' tables of finished runs."""

import collections
import glob
import math
import os
from typing import NamedTuple

import tfeff
from tfeff.datasets.aliases import ALIASES
from tfeff.datasets.glue import SCORED_TASKS, glue_average
from tfeff.datasets.registry import OWN
from tfeff.recipes.report_settings import ReportSettings
from tfeff.recipes.settings import check_settings
from tfeff.storage.arguments import (
    READ_RESULTS,
    REPLACE,
    check_keeps_inputs,
    check_replaceable,
    paths,
)
from tfeff.storage.fetching import matching_folders
from tfeff.training.scores import worst_if_nan
from tfeff.utils.files import write_text
from tfeff.utils.job_output import say
from tfeff.utils.json_files import read_object
from tfeff.utils.paths import is_url, matches
from tfeff.utils.run_files import CONFIG, METRICS, PREDICTIONS, READ_DATA

# In the order of the papers' columns.
_QUESTIONS = (
    *("SQuAD1.1", "SQuAD2.0"),
    *("SearchQA", "TriviaQA", "NewsQA", "NaturalQuestions", "HotpotQA"),
)
_EXPECTED = (
    "`runs` must be folders of finished runs of `tfeff finetune` or `tfeff answer`"
)


class _Column(NamedTuple):
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


_AVERAGE = _Column("GLUE", "average", False)


class _NoScores(Exception):
    """A folder is not one of a finished run of `finetune` or `answer`."""


def report(settings: ReportSettings) -> dict[str, dict[str, dict[str, float]]]:
    """Prints a table of texts and one of questions, of finished runs.

    Where an encoder has several runs of a column, its row has the best one, and a table
    of these runs follows, by their folders.

    Args:
        settings: see `ReportSettings`.

    Returns:
        By encoder and task, the metrics of the run with the best one: that which it
        chose by comes first. Where runs of a task chose by several metrics, or were
        scored on several parts or on other examples, there is a task for each, such as
        `"MRPC dev_f1"` or `"WikiANN dev_f1 wikiann_de"`; a data set of one's own has
        its metric always, such as `"Weather dev_accuracy"`.
        GLUE's average is the task `"GLUE"`, of each task by its data set's first metric
        where there are several. Last, by the name of a baseline, such as `"majority
        baseline"`, and task, its best of all runs.

    Raises:
        TypeError: if `settings` are not `ReportSettings`.
        ValueError: if there is no run; if a folder that is named alone is not of a
            finished run of `finetune` or `answer` (what globs match beside such runs
            is left out, and told on standard error); if a file is damaged; if there is
            no folder for `output`, or it is a file of a run that `runs` match.

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
    by_column: dict[str, dict[_Column, dict[str, float]]] = {}
    baselines: dict[str, dict[_Column, dict[str, float]]] = {}
    folders: dict[_Column, str] = {}
    folders_of_runs = _matching(settings.runs)
    if settings.output is not None:
        read = (folder for _, folder in folders_of_runs)
        check_keeps_inputs("output", settings.output, read)
    runs = _runs(settings.runs, folders_of_runs)
    by_run: dict[tuple[_Column, str], dict[str, dict[str, float]]] = {}
    for run, (model, column, folder, scores, baseline) in runs.items():
        folders.setdefault(column, folder)
        _keep_best(by_column, model, column, scores)
        by_run.setdefault((column, model), {})[run] = scores
        if baseline is not None:
            _keep_best(baselines, baseline["name"], column, baseline["metrics"])
    by_column |= baselines
    scored = [_scored(folders, task) for task in SCORED_TASKS]
    for row in by_column.values():
        if set(scored) <= set(row):
            values = {column.task: _first(row[column]) for column in scored}
            row[_AVERAGE] = {"average": glue_average(values)}
            folders[_AVERAGE] = ""
    tables = []
    names = _names(folders)
    for of_questions, order in ((False, (*SCORED_TASKS, "GLUE")), (True, _QUESTIONS)):
        ranks = {task: rank for rank, task in enumerate(order)}
        wanted = sorted(
            (column for column in names if column.of_questions is of_questions),
            key=lambda column: (ranks.get(column.task, len(ranks)), names[column]),
        )
        if wanted:
            tables.append(
                _table(by_column, {column: names[column] for column in wanted})
            )
    tables += _tables_of_runs(by_run, names)
    text = "\n".join(tables)
    print(text, end="")
    if settings.output is not None:
        _write(text, settings.output)
    return {
        model: {names[column]: scores for column, scores in row.items()}
        for model, row in by_column.items()
    }


@paths(output=REPLACE)
def _write(text, output):
    write_text(output, text)


def _matching(patterns):
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


def _runs(patterns, matching):
    """The results of `_read` of all runs; globs' other folders are left out."""
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


def _names(folders):
    """A title for each column, all different, of columns with their folders of data.

    A title has the folder's name, its path, or its path and digests, whichever is the
    first that makes it unique.
    """
    tasks = collections.Counter(column.task for column in folders)
    titles = {}
    for column, folder in folders.items():
        digests = (digest[:8] for digest in column.digests)
        ways = os.path.basename(folder), folder, " ".join([folder, *digests])
        is_alone = tasks[column.task] == 1
        titles[column] = [_name(column, is_alone, data) for data in ways]
    counts = [collections.Counter(ways) for ways in zip(*titles.values())]
    return {
        column: next((t for t, count in zip(ways, counts) if count[t] == 1), ways[-1])
        for column, ways in titles.items()
    }


def _name(column, is_alone, data):
    """The title of a column, which is the task's only one or not."""
    if not is_alone:
        return " ".join(filter(None, (column.task, column.scored_by, data)))
    if column.of_questions or column.task in (*OWN, _AVERAGE.task):
        return column.task
    # No paper says what the metric of a task of one's own is.
    return f"{column.task} {column.scored_by}"


def _scored(columns, task):
    """The column of a task that GLUE's average counts."""
    found = sorted(column for column in columns if column.task == task)
    dataset = tfeff.datasets.get(task)
    own = f"{dataset.dev_splits[0]}_{dataset.metric_names[0]}"
    return next(
        (column for column in found if column.scored_by == own),
        found[0] if found else None,
    )


def _keep_best(found, name, column, scores):
    row = found.setdefault(name, {})
    if column not in row or _rank(scores) > _rank(row[column]):
        row[column] = scores


@paths(folder=READ_RESULTS)
def _read(folder):
    """The encoder, column, folder of data, metrics and baseline.

    Fixed benchmarks have no folder, and some runs no baseline.
    """
    config, metrics = (_json(folder, name) for name in (CONFIG, METRICS))
    is_question = "grid" in metrics
    # The metrics of `embed` have a best cell, too, beside those before the training.
    is_text = "best" in metrics and "untrained" not in metrics
    if not ("task" in config and "pretrained" in config and (is_question or is_text)):
        raise _NoScores("a run of another command")
    # Earlier runs of questions name it in their settings alone, if it is not "dev".
    part = metrics.get("dev_split") or config.get("dev_split") or "dev"
    predicted = None
    if is_question and (name := _predicted(folder, part)):
        part, predicted = name, _json(folder, f"{PREDICTIONS}/{name}/{METRICS}")
    try:
        task = _text(ALIASES.get(config["task"], config["task"]))
        if is_question:
            # The best seed was chosen by the development set: its scores are means over
            # the seeds, as those of texts are.
            best = metrics["grid"].get("best", {"mean": metrics})
            found = predicted or best["mean"]
            scores = {name: _number(found[name]) for name in ("f1", "exact_match")}
        else:
            scores = _text_scores(metrics)
        baseline = (predicted or metrics).get("baseline")
        if baseline is not None:
            of_baseline = {name: _number(baseline["metrics"][name]) for name in scores}
            baseline = {"name": _text(baseline["name"]), "metrics": of_baseline}
        scored_by = part if is_question else _text(metrics["metric"])
        is_fixed = task in SCORED_TASKS
        data = "" if is_fixed else config.get("data", "").rstrip("/")
        if predicted:
            digests = (_text(predicted["examples"]),)
        else:
            digests = () if is_fixed else _digests(folder)
        column = _Column(task, scored_by, is_question, digests)
        return _text(config["pretrained"]), column, data, scores, baseline
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


def _table(found, names):
    """The table of columns by their names."""
    titles = [_title(*named) for named in names.items()]
    lines = [f"| encoder | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for model, row in found.items():
        cells = [_cell(row.get(column), column) for column in names]
        if set(cells) != {"–"}:
            lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _tables_of_runs(by_run, names):
    """A table of the runs that share encoder and column; none where each is alone.

    Args:
        by_run: by column and encoder, the metrics of each run by its folder.
        names: the columns' names.
    """
    lines = []
    for (column, model), runs in by_run.items():
        if len(runs) > 1:
            title = _title(column, names[column])
            for run in sorted(runs, key=lambda run: _rank(runs[run]), reverse=True):
                score = _cell(runs[run], column)
                lines.append(f"| {run} | {model} | {title} | {score} |")
    if not lines:
        return []
    head = ["| run | encoder | task | score |", "|---" * 4 + "|"]
    return ["\n".join([*head, *lines]) + "\n"]


def _title(column, name):
    return f"{name} EM / F1" if column.of_questions else name


def _cell(scores, column):
    if scores is None:
        return "–"
    if column.of_questions:
        return f"{_percent(scores['exact_match'], 2)} / {_percent(scores['f1'], 2)}"
    return "/".join(_percent(value, 1) for value in scores.values())


def _percent(value, digits):
    return "undefined" if math.isnan(value) else f"{100 * value:.{digits}f}"


def _first(scores):
    return next(iter(scores.values()))


def _rank(scores):
    return worst_if_nan(_first(scores))


def _number(value):
    return math.nan if value is None else float(value)
