"""Tables and plot of `memory.py`."""

import statistics

from rows import markdown, origins, read

SETTINGS = ("target", "preset", "layers", "batch_size", "length")
FIELDS = (*SETTINGS, "temporary", "held")
PARTS_FIELDS = ("preset", "layers", "positions", "model", "gradients", "optimizer")
PROCESS_FIELDS = ("backend", "preset", "layers", "batch_size", "length", "peak")
REFERENCE = "bert_base"
DEPTH = 12
# GB of model, optimizer and activations in BlockBERT's figure 1a: 8 × 512 tokens.
PAPER_PARTS = ("bert_base", 8, 512, (0.21, 1.03, 8.49))
# Presets of the regression, the number of their blocks, and the GB of the parts that
# grow with N and with N² in the paper's table 1, of 12 layers at N = 512.
SPLIT = {
    "bert_base": (1, 4.83, 3.66),
    "blockbert_n2_base": (2, 4.84, 1.83),
    "blockbert_n3_base": (3, 4.87, 1.22),
}
NAMES = {
    "bert_base": "BERT",
    "blockbert_n2_base": "BlockBERT, 2 blocks",
    "blockbert_n3_base": "BlockBERT, 3 blocks",
}
GOALS = (  # Preset and its length, over which at 512, at most, in the paper.
    ("shatter_base", 512, "bert_base", 0.55, ""),
    ("shatter_base", 256, "bert_base", "", "0.5"),
    ("huang3_base", 512, "huang4_base", 1.3, "10"),
    ("bert_rpe_base", 512, "bert_base", 1.3, ""),
)
GOAL_SIZE = (16, 512)
TOKENS = 4096  # In a batch of the paper's regression.
WHOLE_BLOCKS = (192, 384, 768, 1536)  # Lengths that 2 and 3 blocks divide.


def by_depth(rows, kind: str) -> dict[tuple, dict[int, int]]:
    """Bytes by number of layers, for each (target, preset, batch size, length)."""
    table = {}
    for row in rows:
        if row[kind]:
            size = (int(row["batch_size"]), int(row["length"]))
            key = (row["target"], row["preset"], *size)
            table.setdefault(key, {})[int(row["layers"])] = int(row[kind])
    return table


def a_layer(depths: dict[int, int]) -> float:
    """Bytes that one layer more costs, from the least and the greatest depth."""
    few, many = min(depths), max(depths)
    if few == many:
        raise ValueError(f"needs two depths. Received: depths={depths}")
    return (depths[many] - depths[few]) / (many - few)


def at_depth(depths: dict[int, int]) -> float:
    """Bytes with `DEPTH` layers, on the line through the depths."""
    few = min(depths)
    return depths[few] + (DEPTH - few) * a_layer(depths)


def complete(rows, kind: str) -> dict[tuple, dict[int, int]]:
    """As `by_depth`, without the cases of a single depth."""
    table = by_depth(rows, kind)
    return {key: depths for key, depths in table.items() if len(depths) > 1}


def split(points: dict[int, float]) -> tuple[float, float]:
    """Least squares of bytes by length at a fixed number of tokens.

    Returns:
        `(slope, intercept)`: `slope · N` is the part that grows with N² in a sequence,
        `intercept` the rest.
    """
    fit = statistics.linear_regression(list(points), list(points.values()))
    return fit.slope, fit.intercept


def points_of(table, target: str, preset: str, tokens: int) -> dict[int, float]:
    """Bytes a layer by length, of the batches with so many tokens."""
    points = {
        length: a_layer(depths)
        for (where, name, batch_size, length), depths in table.items()
        if (where, name) == (target, preset) and batch_size * length == tokens
    }
    return dict(sorted(points.items()))


def report(path: str) -> None:
    """Writes `memory.md` and `memory.png` from the CSV files."""
    rows = read(path)
    process_rows = read(path.replace(".csv", "_process.csv"))
    parts_rows = read(path.replace(".csv", "_parts.csv"))
    lines = [
        "# The memory of a pretraining step\n",
        "Masked language model with 32000 tokens, 15 % masked, AdamW, no dropout, by "
        "Keras' JAX backend; float32 on the CPU, mixed bfloat16 on TPUs. XLA: "
        "temporary memory as its compiler reports it. Held: what the forward pass "
        f"keeps for the gradients. {DEPTH} layers and a layer's share are taken from "
        "two smaller depths.\n",
    ]
    targets = list(dict.fromkeys(row["target"] for row in rows))
    for target in targets:
        lines += [f"## {target}\n", *size_table(rows, target), ""]
        lines += [*goal_table(rows, target), ""]
        lines += [origins([row for row in rows if row["target"] == target]), ""]
        table = parts_table(rows, parts_rows, target)
        if table:
            lines += [f"### Model, optimizer and activations of {DEPTH} layers\n"]
            lines += [*table, ""]
        for tokens in (TOKENS, max(WHOLE_BLOCKS)):
            table = regression_table(rows, target, tokens)
            if table:
                lines += [
                    f"### Parts in N and N² of {DEPTH} layers at {tokens} tokens\n",
                    *table,
                    "",
                ]
    if process_rows:
        lines += ["## Processes\n", *process_table(rows, process_rows), ""]
        lines += [origins(process_rows), ""]
    if plot(rows, targets, path.replace(".csv", ".png")):
        lines.append("![memory against length](memory.png)\n")
    with open(path.replace(".csv", ".md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def size_table(rows, target: str) -> list[str]:
    """Lines of a Markdown table: every preset and batch, beside BERT."""
    head = (
        *("preset", "batch", f"GB of {DEPTH} layers, XLA", "/ BERT"),
        *("MB a layer, XLA", "/ BERT", "MB a layer, held", "/ BERT"),
    )
    lines = []
    temporary, held = complete(rows, "temporary"), complete(rows, "held")
    for key in temporary:
        if key[0] != target:
            continue
        bert = (target, REFERENCE, *key[2:])
        cells = [key[1], f"{key[2]} × {key[3]}"]
        for table, value, unit in (
            (temporary, at_depth, 1e9),
            (temporary, a_layer, 1e6),
            (held, a_layer, 1e6),
        ):
            amount = value(table[key])
            cells.append(f"{amount / unit:.{2 if unit == 1e9 else 0}f}")
            cells.append(ratio(amount, value(table[bert]) if bert in table else None))
        lines.append(cells)
    return markdown(head, lines)


def goal_table(rows, target: str) -> list[str]:
    """Lines of a Markdown table: the ratios to reach, as far as they are known."""
    head = (
        *(f"{DEPTH} layers, {GOAL_SIZE[0]} × {GOAL_SIZE[1]}", "XLA", "a layer, XLA"),
        *("a layer, held", "goal", "paper"),
    )
    lines = []
    temporary, held = complete(rows, "temporary"), complete(rows, "held")
    for preset, length, other, goal, paper in GOALS:
        batch_size, whole = GOAL_SIZE
        keys = [
            (target, preset, batch_size, length),
            (target, other, batch_size, whole),
        ]
        if all(key in temporary for key in keys):
            half = "" if length == whole else f" at {length}"
            cells = [
                f"{preset}{half} / {other}",
                *(
                    ratio(*(value(table[key]) for key in keys))
                    for table, value in (
                        (temporary, at_depth),
                        (temporary, a_layer),
                        (held, a_layer),
                    )
                ),
                f"≤ {goal}" if goal else "",
                paper,
            ]
            lines.append(cells)
    return markdown(head, lines) if lines else []


def parts_table(rows, parts_rows, target: str) -> list[str]:
    """Lines of a Markdown table: what a step needs, as in BlockBERT's figure 1a.

    The optimizer's part has the gradients, as there. Activations are what is left of
    the step's memory (equation 4); XLA has the gradients among its temporary bytes.
    """
    parts = {}
    for row in parts_rows:
        key = (row["preset"], int(row["positions"]))
        sizes = [int(row[name]) for name in ("model", "gradients", "optimizer")]
        parts.setdefault(key, {})[int(row["layers"])] = sizes
    lines = []
    for (where, preset, batch_size, length), depths in complete(
        rows, "temporary"
    ).items():
        found = parts.get((preset, positions_of(length)), {})
        if where != target or len(found) < 2:
            continue
        model, gradients, optimizer = (
            at_depth({layers: sizes[i] for layers, sizes in found.items()})
            for i in range(3)
        )
        temporary = at_depth(depths)
        amounts = (model, optimizer + gradients, temporary - gradients)
        whole = sum(amounts)
        cells = [preset, f"{batch_size} × {length}"]
        cells += [f"{amount / 1e9:.2f}" for amount in (*amounts, whole)]
        cells.append(f"{amounts[-1] / whole:.1%}")
        is_papers = (preset, batch_size, length) == PAPER_PARTS[:3]
        cells.append(" / ".join(map(str, PAPER_PARTS[3])) if is_papers else "")
        lines.append(cells)
    if not lines:
        return []
    head = (
        *("preset", "batch", "model", "optimizer", "activations", "step"),
        *("activations' share", "paper, half precision"),
    )
    return [
        "GB. Optimizer: gradients and two moments. Activations: what is left of the "
        "step's memory.\n",
        *markdown(head, lines),
    ]


def positions_of(length: int) -> int:
    """Rows of the position table of a model for sequences of a length."""
    return max(512, length)


def regression_table(rows, target: str, tokens: int) -> list[str]:
    """Lines of a Markdown table: the parts of the bytes of BERT and BlockBERT."""
    lines = []
    for kind in ("temporary", "held"):
        table, bert = complete(rows, kind), None
        for preset, (blocks, paper_n, paper_n2) in SPLIT.items():
            points = points_of(table, target, preset, tokens)
            if len(points) < 2:
                continue
            slope, rest = split(points)
            bert = slope if preset == REFERENCE else bert
            cells = (
                "XLA" if kind == "temporary" else kind,
                preset,
                f"{DEPTH * rest / 1e9:.2f}",
                f"{DEPTH * slope * 512 / 1e9:.3f}",
                ratio(slope, bert, 4),
                f"{1 / blocks:.4f}",
                f"{paper_n}" if tokens == TOKENS else "",
                f"{paper_n2}" if tokens == TOKENS else "",
            )
            lines.append(cells)
    head = (
        *("", "preset", "O(N) GB", "O(N²) GB at N = 512", "/ BERT", "1/n"),
        *("paper O(N)", "paper O(N²)"),
    )
    return markdown(head, lines) if lines else []


def process_table(rows, process_rows) -> list[str]:
    """Lines of a Markdown table: memory of the processes beside XLA's report."""
    of_xla, cases = by_depth(rows, "temporary"), {}
    for row in process_rows:
        size = (int(row["batch_size"]), int(row["length"]))
        key = (row["preset"], int(row["layers"]), *size)
        cases.setdefault(key, {})[row["backend"]] = int(row["peak"])
    lines = []
    for (preset, layers, *size), peaks in cases.items():
        reported = of_xla.get(("cpu", preset, *size), {}).get(layers)
        cells = [preset, f"{layers}, {size[0]} × {size[1]}"]
        cells.append(f"{reported / 1e9:.2f}" if reported else "")
        for backend in ("jax", "tensorflow"):
            peak = peaks.get(backend)
            cells.append(f"{peak / 1e9:.2f}" if peak else "")
            cells.append(ratio(peak, reported) if peak else "")
        lines.append(cells)
    head = (
        *("preset", "layers, batch", "XLA's report", "JAX process", "/ report"),
        *("TensorFlow process", "/ report"),
    )
    return [
        "Resident memory at its peak in a step, above what it was before, in GB.\n",
        *markdown(head, lines),
    ]


def ratio(value: float, reference: float | None, digits: int = 3) -> str:
    """One over the other; empty without a reference."""
    return f"{value / reference:.{digits}f}" if reference else ""


def plot(rows, targets, path: str, tokens: int = TOKENS) -> bool:
    """Draws bytes a layer over length with the fitted lines; says whether it could."""
    drawn = [
        (f"{NAMES[preset]}, {what}, {target}", style, f"C{color}", points)
        for target in targets
        for kind, what, style in (
            ("temporary", "temporary by XLA", "-"),
            ("held", "saved for the backward pass", "--"),
        )
        for color, preset in enumerate(SPLIT)
        if len(points := points_of(complete(rows, kind), target, preset, tokens)) > 1
    ]
    if not drawn:
        return False
    from tfeff.plots.figure import figure_axes, legend_beside

    with figure_axes(path, size=(10, 4.5)) as (axes,):
        for label, style, color, points in drawn:
            slope, rest = split(points)
            lengths = list(points)
            fitted = [(slope * length + rest) / 1e6 for length in lengths]
            axes.plot(lengths, fitted, style, color=color, label=label)
            measured = [value / 1e6 for value in points.values()]
            axes.plot(lengths, measured, "o", color=color)
        axes.set(
            title="Memory of a training step that each further layer takes",
            xlabel=f"length of a sequence (tokens), {tokens} tokens in all",
            ylabel="memory per layer (MB)",
        )
        legend_beside(axes)
    return True
