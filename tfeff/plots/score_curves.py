"""Scores of fine-tuning over the steps of pretraining."""

import math
import os
from collections.abc import Mapping

from tfeff.plots.figure import figure_axes, legend_beside, shown
from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_mapping, check_string
from tfeff.utils.json_files import read_object
from tfeff.utils.paths import check_path


@paths(path=REPLACE)
def score_curves(
    metrics: Mapping[str, str | os.PathLike],
    path: str | os.PathLike,
    *,
    metric: str | None = None,
) -> None:
    """Draws the scores of fine-tuning against the steps of pretraining, a line a run.

    Of each step, the setting with the best mean over the seeds counts, as the best of a
    grid does. Where there are several seeds, a bar shows one standard deviation (the
    sample's) to either side. Scores that are undefined are left out.

    Args:
        metrics: dict from a label to the `metrics.json` of a run of
            `tfeff finetune --pretrained_steps=...`.
        path: the PNG file to write; replaced if it is there.
        metric: the score to draw, such as `"dev_accuracy"`; `None` for the one that
            the first run chose its best by.

    Raises:
        ValueError: if there is nothing to draw, a file is missing or has no scores by
            steps or none of `metric`, or the folder of `path` is missing.
        TypeError: if `metrics` is not a mapping, `path` not a path, or `metric` not a
            string.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    tfeff.plots.score_curves(
        {
            "BERT": "runs/bert_mnli/metrics.json",
            "Shatter": "runs/shatter_mnli/metrics.json",
        },
        "convergence.png",
    )
    ```

    Reference:
        Tian et al., "Shatter", section 5.2.3, figure 3.
    """
    check_mapping("metrics", metrics, "labels to files")
    if metric is not None:
        check_string("metric", metric)
    if not metrics:
        raise ValueError("`metrics` must have files. Received: metrics={}")
    summaries = {label: _read(file) for label, file in metrics.items()}
    if metric is None:
        metric = next(iter(summaries.values()))["metric"]
    curves = {
        label: scores_by_step(summary, metric) for label, summary in summaries.items()
    }
    empty = [os.fspath(metrics[label]) for label, curve in curves.items() if not curve]
    if empty:
        raise ValueError(
            "`metrics` must have `metric` by steps of pretraining, as `tfeff finetune "
            "--pretrained_steps=...` writes them. "
            f"Received: metric={metric!r}, which is not in {', '.join(empty)}"
        )
    with figure_axes(path) as (axes,):
        for label, curve in curves.items():
            means, deviations = zip(*curve.values())
            bars = None if all(map(math.isnan, deviations)) else deviations
            axes.errorbar(
                list(curve),
                means,
                yerr=bars,
                marker="o",
                capsize=3,
                label=shown(label),
            )
        axes.set(xlabel="pretraining step", ylabel=metric)
        legend_beside(axes)


def scores_by_step(summary: Mapping, metric: str) -> dict[int, tuple[float, float]]:
    """The best score of each step of pretraining: mean and deviation over the seeds.

    Args:
        summary: what `tfeff.recipes.finetune` returned, or wrote.
        metric: the name of the score.

    Returns:
        Dict from a step to mean and deviation, in increasing order of steps; the
        deviation is not a number where there is one seed. Empty if there are none.
    """
    best: dict[int, tuple[float, float]] = {}
    for row in summary["rows"]:
        step, mean = row["setting"].get("pretrained_step"), row["mean"].get(metric)
        if step is None or mean is None or math.isnan(mean):
            continue
        if step not in best or mean > best[step][0]:
            deviation = row["deviation"].get(metric)
            best[step] = mean, math.nan if deviation is None else deviation
    return dict(sorted(best.items()))


def _read(path):
    path = check_path("metrics", path)
    if not os.path.isfile(path):
        raise ValueError(f"`metrics` must be files. Received: {path}, which is no file")
    summary = read_object(path)
    if not {"metric", "rows"} <= set(summary):
        raise ValueError(
            "`metrics` must be the metrics.json of runs of `tfeff finetune`. "
            f"Received: {path}"
        )
    return summary
