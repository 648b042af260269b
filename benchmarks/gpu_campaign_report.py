"""The page of `gpu_campaign.py`: tables and curves."""

from evidence.systems import SYSTEMS
from rows import markdown, read, seeds_cell, write_tables
from sweep_report import draw_seeds, points_of

# The campaign's names of the presets, in its order.
NAMES = {
    system.preset.removesuffix("_base"): name
    for name, system in SYSTEMS.items()
    if not system.override and not system.settings
}
PANELS = {
    "Shatter, part by part": (
        *("BERT", "Shatter", "No_Position", "Part_Mask", "1H_Softmax", "1H_Sigmoid"),
        "Part_Bias",
    ),
    "Relative positions": (
        *("BERT", "Shatter", "BERT-RPE", "BERT-RAB", "Shaw"),
        *("Method 1", "Method 2", "Method 3", "Method 4"),
    ),
}
SETTINGS = ("device", "size", "length", "million_tokens", "batch_size", "rate", "dtype")
SETTINGS += ("points", "tokens_digest")
HEAD = """# Pretraining on a GPU

Masked language models on the texts of the campaign, with Keras on JAX: AdamW, a
weight decay of 0.01, gradients of norm 1 at most, no dropout, the rate up in a line
for a tenth of the steps and down to 0 in another. Losses are nats per predicted
token; those of validation are of documents that are not trained on. Of several seeds
there is the mean, with each in brackets; a curve is the mean, with a dot for each seed.
Commands, commits and versions are in [gpu_campaign.csv](gpu_campaign.csv).
"""


def report(path: str, key: tuple[str, ...]) -> None:
    """Writes the page and its pictures beside the CSV files.

    Args:
        path: the CSV file of the trainings; that of their points is beside it.
        key: columns by which a training is known in both.
    """
    points = {}
    for point in read(path.replace(".csv", "_curves.csv")):
        points.setdefault(tuple(point[name] for name in key), []).append(point)
    pictures = []

    def section(rows: list[dict[str, str]]) -> list[str]:
        trainings = [(row, points[tuple(row[name] for name in key)]) for row in rows]
        pictures.append(path.replace(".csv", f"_{len(pictures)}.png"))
        draw(trainings, pictures[-1])
        return [*table(trainings), "", f"![Curves]({pictures[-1].rsplit('/', 1)[-1]})"]

    write_tables(path, SETTINGS, [HEAD], section)


def table(trainings: list[tuple[dict, list[dict]]]) -> list[str]:
    """Lines of a Markdown table of rows with their points: a system a row."""
    head = (
        *("system", "validation loss", "training loss", "last tenth gained"),
        *("unigram entropy", "tokens a second"),
    )
    lines = []
    for variant in sorted({row["variant"] for row, _ in trainings}, key=[*NAMES].index):
        own = [(row, found) for row, found in trainings if row["variant"] == variant]
        gains = [
            float(found[-1 - len(found) // 10]["val_loss"]) - float(row["loss"])
            for row, found in own
        ]
        cells = [
            NAMES[variant],
            seeds_cell([row["loss"] for row, _ in own]),
            seeds_cell([found[-1]["loss"] for _, found in own]),
            seeds_cell(list(map(str, gains))),
            f"{float(own[0][0]['unigram_entropy']):.3f}",
            f"{max(int(row['tokens_a_second']) for row, _ in own):,}",
        ]
        lines.append(cells)
    return markdown(head, lines)


def draw(trainings: list[tuple[dict, list[dict]]], path: str) -> None:
    """Draws validation losses: the mean of the seeds, and a dot for each."""
    from tfeff.plots.figure import figure_axes, legend_beside

    dots = [
        {
            "label": NAMES[row["variant"]],
            "tokens": int(point["step"]) * int(row["batch_size"]) * int(row["length"]),
            "loss": point["val_loss"],
        }
        for row, found in trainings
        for point in found
    ]
    lines = points_of(dots, "tokens", "loss")
    panels = {
        title: [name for name in names if name in lines]
        for title, names in PANELS.items()
        if lines.keys() & names
    }
    row = trainings[0][0]
    size, length, entropy = row["size"], row["length"], float(row["unigram_entropy"])
    with figure_axes(path, len(panels), size=(7.5, 4.5)) as figure:
        for axes, (title, names) in zip(figure, panels.items()):
            for name in names:
                line = lines[name]
                places = [tokens / 1e6 for tokens in line]
                seeds = max(map(len, line.values()))
                label = f"{name} ({seeds} seed{'s' if seeds > 1 else ''})"
                draw_seeds(axes, label, places, line.values())
            axes.axhline(entropy, color="0.5", linestyle="--", label="unigram entropy")
            axes.set(
                title=f"{title}: size {size}, sequences of {length} tokens, on a GPU",
                xlabel="million tokens",
                ylabel="validation loss (nats per predicted token)",
            )
            legend_beside(axes)
