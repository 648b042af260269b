"""A folder of data in the layouts that the campaign reads, small enough for a toy."""

import json
import random
from pathlib import Path

WORDS = ("the", "some", "cat", "dog", "bird", "sees", "likes", "and", "red", "small")


def write(folder: Path) -> None:
    """Writes `text/`, `glue/`, `squad/` and `superglue/` to a folder."""
    draw = random.Random(0)

    def sentence(length=8):
        return " ".join(draw.choices(WORDS, k=length)) + "."

    text = folder / "text"
    text.mkdir(parents=True)
    for name, count in (("stories.txt", 400), ("ptb_sample.txt", 12)):
        documents = (" ".join(sentence() for _ in range(6)) for _ in range(count))
        (text / name).write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    tasks = {
        "CoLA": ("", lambda i: f"x\t{i % 2}\t\t{sentence()}"),
        "SST-2": ("sentence\tlabel", lambda i: f"{sentence()}\t{i % 2}"),
        "RTE": (
            "index\tsentence1\tsentence2\tlabel",
            lambda i: f"{i}\t{sentence()}\t{sentence()}\t{'not_' * (i % 2)}entailment",
        ),
        "MRPC": (
            "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String",
            lambda i: f"{i % 2}\t{i}\t{i}\t{sentence()}\t{sentence()}",
        ),
        "STS-B": (
            "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1"
            "\tsentence2\tscore",
            lambda i: f"{i}\tg\tf\ty\t{i}\ts\ts\t{sentence()}\t{sentence()}\t{i % 5}",
        ),
    }
    for task, (header, row) in tasks.items():
        (folder / "glue" / task).mkdir(parents=True)
        for part, count in (("train", 60), ("dev", 10)):
            lines = [*([header] if header else []), *(row(i) for i in range(count))]
            path = folder / "glue" / task / f"{part}.tsv"
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "squad").mkdir()
    for part, count in (("train", 4), ("dev", 2)):
        articles = [_article(f"{part} {i}", sentence) for i in range(count)]
        path = folder / "squad" / f"{part}-v1.1.json"
        path.write_text(json.dumps({"version": "1.1", "data": articles}))


def _article(title, sentence):
    context = " ".join(sentence() for _ in range(3))
    answer = context.split(" ")[3]
    question = {
        "id": title,
        "question": "Who?",
        "answers": [{"text": answer, "answer_start": context.index(answer)}],
    }
    return {"title": title, "paragraphs": [{"context": context, "qas": [question]}]}
