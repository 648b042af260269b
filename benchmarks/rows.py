"""Results as rows of a CSV file, kept as they come."""

import csv
import os


def read(path: str) -> list[dict[str, str]]:
    """The rows of the CSV file; none if there is no such file."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def append(path: str, fields, rows) -> None:
    """Adds rows to the CSV file, under a header of `fields` if it is new."""
    with open(path, "a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if not file.tell():
            writer.writeheader()
        writer.writerows(rows)
