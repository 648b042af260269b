"""Curves and dots of the cells that a claim compares."""

import re
import statistics
import textwrap

from evidence.claims import TASK_NAMES, TIMED_METRICS, Claim, Term
from evidence.systems import Scale
from evidence.verdicts import Evidence, is_of

MOST_CURVES = 6


def draw(claim: Claim, evidence: Evidence, path: str, scale: Scale) -> bool:
    """Draws curves of losses, or dots of scores; False if there is nothing to draw."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    terms = terms_of(claim)
    timed = any(t.metric in TIMED_METRICS for c in claim.comparisons for t in c.terms)
    systems = dict.fromkeys((t.stage, t.system) for t in terms)
    curves = {
        system: found
        for stage, system in systems
        if (found := curves_of(stage, system, evidence, timed))
    }
    if terms[0].stage not in ("pretraining", "cheaper") or terms[0].task:
        curves = {}
    dots = {t: values for t in terms if (values := evidence.values(t))}
    if not curves and not dots:
        return False
    panels = [
        dict(list(curves.items())[start : start + MOST_CURVES])
        for start in range(0, len(curves), MOST_CURVES)
    ] or [{}]
    figure, grid = plt.subplots(
        len(panels), 1, figsize=(9, 4.5 * len(panels)), squeeze=False
    )
    for axes, panel in zip(grid[:, 0], panels):
        if panel:
            draw_curves(axes, panel, evidence, scale, timed)
        else:
            draw_dots(axes, dots)
    title = textwrap.fill(f"The claim: {claim.sentence}", 90)
    figure.suptitle(
        f"{title}\n({claim.paper}, {claim.section})\nHere: {scale.layers} layers of "
        f"width {scale.width}, pretrained in sequences of {scale.length} tokens",
        fontsize=10,
    )
    figure.tight_layout()
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
    return True


def curves_of(
    stage: str, system: str, evidence: Evidence, timed: bool
) -> list[list[dict]]:
    """The curves of a system, one a seed; if `timed`, those with times."""
    found = [
        evidence.over_time(name) if timed else points
        for name, points in evidence.curves.items()
        if is_of(name, Term(1, stage, system))
    ]
    return [points for points in found if points]


def draw_curves(axes, panel, evidence: Evidence, scale: Scale, timed: bool) -> None:
    """Means over the seeds, with a band from the lowest to the highest."""
    whole = scale.steps * scale.batch_size * scale.length / 1e6
    place, size = ("time", whole) if timed else ("tokens", 1e-6)
    for system, curves in panel.items():
        steps = [point["step"] for point in curves[0]]
        seeds = [
            [p["val_loss"] for p in curve if p["step"] in steps] for curve in curves
        ]
        columns = list(zip(*seeds))
        places = [point[place] * size for point in curves[0]][: len(columns)]
        means = [statistics.fmean(column) for column in columns]
        count = f"{len(curves)} seed{'s' if len(curves) > 1 else ''}"
        (line,) = axes.plot(places, means, label=f"{system} ({count})")
        axes.fill_between(
            places,
            [min(column) for column in columns],
            [max(column) for column in columns],
            color=line.get_color(),
            alpha=0.2,
            linewidth=0,
        )
    entropy = next(
        (
            row["metrics"]["unigram_entropy"]
            for row in evidence.rows.values()
            if row["stage"] == "pretraining"
        ),
        None,
    )
    if entropy is not None:
        axes.axhline(entropy, color="0.5", linestyle="--", label="unigram entropy")
    axes.set(
        xlabel="time, as million tokens of BERT" if timed else "million tokens",
        ylabel="validation loss, nats per predicted token",
    )
    axes.legend(
        loc="center left",
        bbox_to_anchor=(1.01, 0.5),
        frameon=False,
        title="mean of the seeds;\nband: lowest to highest",
    )


def draw_dots(axes, dots) -> None:
    """A row a system: a dot a seed, and a bar at the mean."""
    metrics = list(dict.fromkeys(in_words(t.metric) for t in dots))
    labels = [
        f"{named(t)}, {in_words(t.metric)}" if len(metrics) > 1 else named(t)
        for t in dots
    ]
    for place, values in enumerate(dots.values()):
        found = list(values.values())
        axes.plot(found, [place] * len(found), "o", color="C0", alpha=0.6)
        axes.plot([statistics.fmean(found)], [place], "|", color="C1", markersize=18)
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set(xlabel=f"{axis_of(dots)}: a dot a seed, a bar at the mean")


def terms_of(claim: Claim) -> list[Term]:
    """The values that a claim compares, each once; where it compares times, losses."""
    found: dict[Term, None] = {}
    for comparison in claim.comparisons:
        for term in comparison.terms:
            metric = "loss" if term.metric in TIMED_METRICS else term.metric
            found[Term(1, term.stage, term.system, term.task, metric)] = None
    return list(found)


def named(term: Term) -> str:
    """The system of a term, with the task that it is judged by."""
    task = TASK_NAMES.get(term.task, term.task)
    return f"{term.system}, {task}" if task else term.system


def in_words(metric: str) -> str:
    """The name of a metric; of a loss by position, the positions."""
    if found := re.fullmatch(r"loss@(\d+)\[(\d+):(\d+)\]", metric):
        length, start, end = map(int, found.groups())
        return f"positions {start} to {end - 1} of {length}"
    return metric.replace("_", " ")


def axis_of(dots) -> str:
    """The label of the axis of the dots, with the unit."""
    if all(t.metric.startswith(("loss", "mean_loss")) for t in dots):
        return "validation loss, nats per predicted token"
    names = dict.fromkeys(t.metric for t in dots)
    return f"{' and '.join(map(in_words, names))} (of 1)"
