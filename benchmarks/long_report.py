"""Tables of `long.py`."""

import statistics

from costs import exponent, ratios, seconds, spread
from rows import markdown, origins, read

TASKS = ("train", "inference")
SETTINGS = ("machine", "width")
CASE = (*SETTINGS, "attention", "task", "length")
MEMORY_FIELDS = (*CASE, "way", "temporary")
TIME_FIELDS = (*CASE, "contender", "way", "seconds", "left_out", "note")
WHOLE = "whole"
REFERENCE = "self"
PEER = "PyTorch's fused attention"
# The goals of training in blocks.
COMPARED, OCTAVES = 4096, 3  # Length for the ratio; octaves that the exponent is of.
LARGEST_RATIO, LARGEST_EXPONENT = 0.10, 1.1


def report(path: str) -> None:
    """Writes `long.md` from the CSV files."""
    lines = [
        "# Long documents\n",
        "One attention at base width with 12 heads, one sequence, float32, no dropout, "
        "compiled by XLA for the CPU through Keras' JAX backend. Train: output and "
        "gradients of input and weights. Whole: the scores of all pairs at once; in "
        "blocks: of so many queries at a time. Near and far: in blocks of 256, what "
        "depends on relative positions formed for near keys alone, where an attention "
        "has a reach and at most half of the keys are near. – was not measured.\n",
    ]
    groups = {}
    for kind, file in (("memory", path), ("time", path.replace(".csv", "_times.csv"))):
        for row in read(file):
            title = ", ".join(f"{name} {row[name]}" for name in SETTINGS)
            group = groups.setdefault(title, {"memory": [], "time": []})
            group[kind].append(row)
    for title, group in groups.items():
        lines.append(f"## {title}\n")
        for task in TASKS:
            for kind, tables in (("memory", memory_tables), ("time", time_table)):
                rows = [row for row in group[kind] if row["task"] == task]
                lines += tables(rows, task) if rows else []
        for kind, rows in group.items():
            lines += [f"Rows of {kind}. {origins(rows)}\n"] if rows else []
    with open(path.replace(".csv", ".md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def memory_tables(rows, task: str) -> list[str]:
    """Lines of a Markdown table of temporary memory for each way."""
    lengths = sorted({int(row["length"]) for row in rows})
    whole = by_length(rows, WHOLE)
    lines = []
    for way in dict.fromkeys(row["way"] for row in rows):
        in_blocks = way != WHOLE
        names = [*map(str, lengths), "exponent"]
        if in_blocks:
            names.append(f"/ whole at {COMPARED}")
        table = []
        for name, points in by_length(rows, way).items():
            cells = [name]
            for length in lengths:
                known = length in points
                cells.append(f"{points[length] / 1e6:.1f}" if known else "–")
            cells.append(judged(exponent(points, OCTAVES), LARGEST_EXPONENT, in_blocks))
            if in_blocks:
                cells.append(judged(over_whole(points, whole.get(name, {}))))
            table.append(cells)
        lines += [f"### Temporary memory, {task}, {way}\n"]
        lines += [*markdown(("MB", *names), table), ""]
        if in_blocks:
            lines.append(
                f"Goals: an exponent of at most {LARGEST_EXPONENT} over the last "
                f"{OCTAVES} octaves, at most {LARGEST_RATIO:.2f} of the memory of "
                f"whole; * is what misses one.\n"
            )
    return lines


def by_length(rows, way: str) -> dict[str, dict[int, float]]:
    """Bytes by length for each attention in one way; lengths ascend."""
    table = {}
    for row in sorted(rows, key=lambda row: int(row["length"])):
        if row["way"] == way:
            points = table.setdefault(row["attention"], {})
            points[int(row["length"])] = float(row["temporary"])
    return table


def over_whole(points, whole) -> float | None:
    """Bytes over those of whole at the length for which there is a goal."""
    if not {COMPARED} <= points.keys() & whole.keys():
        return None
    return points[COMPARED] / whole[COMPARED]


def judged(value: float | None, goal: float = LARGEST_RATIO, has_goal=True) -> str:
    """A number with an asterisk if it misses its goal; – if there is none."""
    if value is None:
        return "–"
    return f"{value:.2f}{' *' if has_goal and round(value, 2) > goal else ''}"


def time_table(rows, task: str) -> list[str]:
    """Lines of a Markdown table of times and of their ratios within rounds."""
    head = (
        *("attention", "length", "way", "ms", "/ whole"),
        *(f"/ {REFERENCE}, whole", f"/ {PEER}", "left out"),
    )
    lines, groups = [], {}
    for row in rows:
        groups.setdefault((row["attention"], row["length"]), []).append(row)
    for (attention, length), group in groups.items():
        made = {(row["contender"], row["way"]): row for row in group}
        references = (attention, WHOLE), (REFERENCE, WHOLE), (PEER, "")
        for (contender, way), row in made.items():
            cells = [contender, length, way]
            cells.append(milliseconds(row))
            cells += [ratio(row, made.get(reference)) for reference in references]
            cells.append(row["left_out"])
            lines.append(cells)
    notes = dict.fromkeys(row["note"] for row in rows if row["note"])
    table = markdown(head, lines)
    return [f"### Time, {task}\n", *table, "", *(f"{note}\n" for note in notes)]


def milliseconds(row) -> str:
    """The median of the times."""
    times = seconds(row)
    return f"{1e3 * statistics.median(times):.1f}" if times else ""


def ratio(row, reference) -> str:
    """Median and quartiles of the ratios of two rows' times within rounds."""
    if not reference or not row["seconds"] or not reference["seconds"]:
        return ""
    if row is reference:
        return "1"
    return spread(ratios(row, reference), 2)
