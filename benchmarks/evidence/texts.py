"""The campaign's texts: made once, divided by the digest of each document.

No document is in two parts: equal documents have equal digests. Training reads
`train.jsonl` alone, pilots are judged by `pilot.jsonl`, all else by `final.jsonl`: by
`held_out.jsonl` and `ptb.jsonl` (all of the Penn Treebank sample) in one file.
"""

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

import runs

from evidence import questions
from evidence.division import chooses, fraction
from tfeff.utils.digests import sha256
from tfeff.utils.files import atomic_folder

PARTS = ("train", "pilot", "held_out", "ptb", "final")
SHARE = 0.01  # The share of the documents for each of the two parts to validate by.


def part_of(document: str) -> str:
    """The part of the corpus that a document belongs to."""
    value = fraction(" ".join(document.split()))
    return "pilot" if value < SHARE else "held_out" if value < 2 * SHARE else "train"


def split(documents: Iterable[str], ptb: Iterable[str]) -> dict[str, list[str]]:
    """The documents of each part; none twice, and none of `ptb` in another part."""
    parts: dict[str, list[str]] = {name: [] for name in PARTS}
    parts["ptb"] = list(dict.fromkeys(ptb))
    seen = {" ".join(document.split()) for document in parts["ptb"]}
    for document in documents:
        words = " ".join(document.split())
        if words not in seen:
            seen.add(words)
            parts[part_of(document)].append(document)
    parts["final"] = [*parts["held_out"], *parts["ptb"]]
    return parts


def make(folder: str, data: str, docstring_characters: int, vocabulary: int) -> None:
    """Writes texts, tokenizer, tasks and questions to a folder that is not there yet.

    Args:
        folder: where to.
        data: the folder with `text/`, `glue/`, `squad/` and `superglue/`.
        docstring_characters: how much of the installed packages' documentation.
        vocabulary: pieces of the tokenizer.
    """
    import tfeff

    files, ptb = runs.texts(data)
    documents = [
        *tfeff.data.text_files(files),
        *tfeff.data.docstrings(max_characters=docstring_characters),
    ]
    parts = split(documents, tfeff.data.text_files([ptb]))
    with atomic_folder(os.path.abspath(folder)) as new:
        os.makedirs(new, exist_ok=True)
        for name, found in parts.items():
            if not found:
                raise ValueError(
                    f"{data} must have text enough for the part {name!r}. Received: "
                    f"{len(documents)} documents, none of them in it"
                )
            with open(os.path.join(new, f"{name}.jsonl"), "w", encoding="utf-8") as out:
                out.writelines(f"{json.dumps({'text': text})}\n" for text in found)
        tokenizer = tfeff.data.train_tokenizer(parts["train"], vocabulary)
        tfeff.data.save_tokenizer(tokenizer, os.path.join(new, "tokenizer.spm"))
        split_tasks(Path(data, "glue"), Path(new))
        questions.make(Path(data), Path(new))


def split_tasks(glue: Path, folder: Path) -> None:
    """GLUE's training parts in two, and its development parts, which judge alone.

    `choose/TASK` has 90 % of the training part, and the rest as its development part:
    rates and the best moment of a training are chosen by it. `judge/TASK/dev.tsv` is
    the published development part.
    """
    for source in sorted(glue.glob("*/train.tsv")):
        task = source.parent.name
        lines = source.read_bytes().splitlines(keepends=True)
        # CoLA's files have no header.
        head, rows = ([], lines) if task == "CoLA" else (lines[:1], lines[1:])
        if not rows[-1].endswith(b"\n"):
            rows[-1] += b"\n"
        for part in ("choose", "judge"):
            (folder / part / task).mkdir(parents=True)
        for name, wanted in (("train", False), ("dev", True)):
            own = [row for row in rows if chooses(row) == wanted]
            path = folder / "choose" / task / f"{name}.tsv"
            path.write_bytes(b"".join([*head, *own]))
        shutil.copyfile(
            source.with_name("dev.tsv"), folder / "judge" / task / "dev.tsv"
        )


def digests(folder: str) -> dict[str, str]:
    """The SHA-256 of every file of text in the folder, by its name."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix in (".jsonl", ".tsv", ".json", ".spm"):
            found[path.relative_to(folder).as_posix()] = sha256(path)
    return found
