"""Tables and pictures of `sweeps.py`."""

import statistics

from rows import markdown, origins, read, seeds_cell
from sweep_table import SWEEPS

FIELDS = ("sweep", "label", "seed", "size", "task", "metric", "value", "command")
CURVES = ("sweep", "label", "seed", "size", "step", "loss", "val_loss")


def report(path: str) -> None:
    """Writes the Markdown tables and the pictures from the CSV files."""
    rows, curves = read(path), read(path.replace(".csv", "_curves.csv"))
    lines = [
        "# The papers' sweeps\n",
        "Mean over the seeds, and each seed's value in brackets. Commands, with all "
        "settings, are in [sweeps.csv](sweeps.csv).\n",
    ]
    groups = {}
    for row in rows:
        groups.setdefault((row["sweep"], row["size"]), []).append(row)
    for number, ((name, size), found) in enumerate(groups.items()):
        lines += [f"## {SWEEPS[name].source}\n", f"{size}.\n", *table(found), ""]
        lines += [origins(found), ""]
        picture = path.replace(".csv", f"_{name}_{number}.png")
        if SWEEPS[name].curves:
            own = [row for row in curves if (row["sweep"], row["size"]) == (name, size)]
            points = points_of(own, "step", "val_loss")
        else:
            own = [
                r for r in found if (r["task"], r["metric"]) == ("pretraining", "loss")
            ]
            points = points_of(own, "label", "value")
        if points:
            draw(points, SWEEPS[name].source, SWEEPS[name].curves, picture)
            lines.append(f"![{SWEEPS[name].source}]({picture.rsplit('/', 1)[-1]})\n")
    with open(path.replace(".csv", ".md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def table(rows: list[dict]) -> list[str]:
    """Lines of a table: a system a row, a metric of a task a column."""
    columns = list(dict.fromkeys((row["task"], row["metric"]) for row in rows))
    names = [f"{task} {metric}" for task, metric in columns]
    lines = []
    order = list(SWEEPS[rows[0]["sweep"]].cells)
    for label in sorted({row["label"] for row in rows}, key=order.index):
        cells = [
            seeds_cell(
                [
                    row["value"]
                    for row in rows
                    if (row["label"], row["task"], row["metric"]) == (label, *column)
                ]
            )
            for column in columns
        ]
        lines.append((label, *cells))
    return markdown(("system", *names), lines)


def points_of(rows: list[dict], along: str, value: str) -> dict[str, dict]:
    """For each label, the values of the seeds at each place along an axis."""
    points = {}
    for row in rows:
        if row[value]:
            line = points.setdefault(row["label"], {})
            line.setdefault(row[along], []).append(float(row[value]))
    return points


def draw(points: dict[str, dict], title: str, curves: bool, path: str) -> None:
    """Draws curves over steps or one mean a label, and a dot for each seed."""
    from tfeff.plots.figure import figure_axes, legend_beside

    with figure_axes(path, size=(9, 4.5)) as (axes,):
        for label, line in points.items():
            places = [float(x) if curves else x for x in line]
            draw_seeds(axes, label, places, line.values(), "-" if curves else "_")
        axes.set(title=title, ylabel="validation loss (nats per predicted token)")
        if curves:
            axes.set(xlabel="step")
            legend_beside(axes)
        else:
            axes.tick_params(axis="x", rotation=45)


def draw_seeds(axes, label: str, places: list, values, mark: str = "-") -> None:
    """Draws the mean of the seeds at each place, and a dot for each of them."""
    means = [statistics.mean(found) for found in values]
    (drawn,) = axes.plot(places, means, mark, label=label)
    for place, found in zip(places, values):
        axes.plot([place] * len(found), found, ".", color=drawn.get_color())
