"""Results as rows of a CSV file, kept as they come."""

import csv
import os
import statistics

import machine


def read(path: str) -> list[dict[str, str]]:
    """The rows of the CSV file; none if there is no such file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def append(path: str, fields, rows) -> None:
    """Adds rows to the CSV file, and columns that it does not have yet."""
    earlier = read(path)
    if earlier:
        fields = tuple(dict.fromkeys((*earlier[0], *fields)))
    unfinished = f"{path}.partial"
    with open(unfinished, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields)
        writer.writeheader()
        writer.writerows([*earlier, *rows])
    os.replace(unfinished, path)


def record(path: str, fields, rows) -> None:
    """Adds what was measured to the CSV file, each row with what it comes from.

    Args:
        path: the CSV file.
        fields: its columns; those of `machine.origin()` follow, but for what is one of
            these, too.
        rows: their values; a value of their own counts before the origin's.
    """
    origin = machine.origin()
    fields = (*fields, *(name for name in origin if name not in fields))
    append(path, fields, [origin | row for row in rows])


def origins(rows) -> str:
    """A line with the machines, versions and commits of rows, for a page."""
    found = []
    for title in ("machine", "versions", "commit"):
        values = dict.fromkeys(row[title] for row in rows if row.get(title))
        if values:
            found.append(f"{title.capitalize()}: {'; '.join(values)}.")
    return " ".join(found)


def markdown(head, rows) -> list[str]:
    """Lines of a Markdown table.

    Args:
        head: the names of its columns, of which the first may be empty.
        rows: each the values of a row, in their order; a bar in one is escaped.
    """
    names = f"| {' | '.join(map(str, head)).lstrip()} |"
    cells = ([str(value).replace("|", r"\|") for value in row] for row in rows)
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [names, "|---" * len(head) + "|", *lines]


def write_tables(path: str, settings, head: list[str], table) -> None:
    """Writes the rows of a CSV file as Markdown beside it.

    Args:
        path: the CSV file.
        settings: the columns that a table's rows have in common, its title.
        head: lines before the tables.
        table: from such rows to the lines of their table.
    """
    groups = {}
    for row in read(path):
        title = ", ".join(f"{name} {row[name]}" for name in settings)
        groups.setdefault(title, []).append(row)
    lines = list(head)
    for title, group in groups.items():
        lines += [f"## {title}\n", *table(group), "", origins(group), ""]
    with open(path.replace(".csv", ".md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def seeds_cell(values: list[str]) -> str:
    """`"0.512 (0.500, 0.524)"` of the values of several seeds."""
    if not values:
        return ""
    each = ", ".join(f"{float(v):.3f}" if v else "undefined" for v in values)
    mean = "–" if "" in values else f"{statistics.mean(map(float, values)):.3f}"
    return f"{mean} ({each})"
