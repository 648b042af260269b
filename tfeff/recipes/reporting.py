"""The papers' tables of finished runs."""

import collections
import math
import os

import tfeff
from tfeff.datasets.glue import SCORED_TASKS, glue_average
from tfeff.datasets.registry import OWN
from tfeff.recipes.report_settings import ReportSettings
from tfeff.recipes.run_results import Column, matching_runs, read_results
from tfeff.recipes.settings import check_settings
from tfeff.storage.arguments import (
    REPLACE,
    check_keeps_inputs,
    check_replaceable,
    paths,
)
from tfeff.training.scores import worst_if_nan
from tfeff.utils.files import write_text

# In the order of the papers' columns.
_QUESTIONS = (
    *("SQuAD1.1", "SQuAD2.0"),
    *("SearchQA", "TriviaQA", "NewsQA", "NaturalQuestions", "HotpotQA"),
)


_AVERAGE = Column("GLUE", "average", False)


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
    config = {"command": "finetune", "task": "RTE", "pretrained": "mlm"}
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
    by_column: dict[str, dict[Column, dict[str, float]]] = {}
    baselines: dict[str, dict[Column, dict[str, float]]] = {}
    folders: dict[Column, str] = {}
    folders_of_runs = matching_runs(settings.runs)
    if settings.output is not None:
        read = (folder for _, folder in folders_of_runs)
        check_keeps_inputs("output", settings.output, read)
    runs = read_results(settings.runs, folders_of_runs)
    by_run: dict[tuple[Column, str], dict[str, dict[str, float]]] = {}
    for run, found in runs.items():
        column, baseline = found.column, found.baseline
        folders.setdefault(column, found.data)
        _keep_best(by_column, found.encoder, column, found.scores)
        by_run.setdefault((column, found.encoder), {})[run] = found.scores
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
