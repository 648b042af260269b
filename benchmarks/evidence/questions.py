"""Questions of the campaign: real ones, and sentences with a gap made of passages.

A cloze question is a sentence of a passage, of a moderate length, with one to three of
its words replaced by "what"; the answer is those words, where the passage has them. So
a small encoder learns to find and to copy before it meets the few real questions.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path

from evidence.division import chooses, fraction

_SENTENCE = re.compile(r"[^.!?]+[.!?]")
_WORD = re.compile(r"\w+")
GAP = "what"
# Longer sentences would leave a passage no room in windows of 128 tokens.
MOST_WORDS, MOST_LETTERS = 40, 240


def make(data: Path, folder: Path) -> None:
    """Writes `cloze-*.json` and `squad-*.json`, in SQuAD 1.1's layout.

    The published development set judges, and no passage of it is in another file. The
    articles of the training set are divided into those to train on and those to choose
    by; so are the passages of cloze questions.
    """
    train, dev = (
        json.loads((data / "squad" / f"{name}-v1.1.json").read_text(encoding="utf-8"))
        for name in ("train", "dev")
    )
    articles = train["data"]
    chosen = {a.get("title", "") for a in articles if chooses(a.get("title", ""))}
    if not chosen or len(chosen) == len(articles):  # Few articles: the last chooses.
        chosen = {articles[-1].get("title", "")}
    for name, wanted in (("train", False), ("choose", True)):
        own = [a for a in articles if (a.get("title", "") in chosen) == wanted]
        _write(folder / f"squad-{name}.json", own)
    _write(folder / "squad-judge.json", dev["data"])
    judged = {s for text in _contexts(dev["data"]) for s in sentences(text)}
    passages = [*_contexts(train["data"]), *_super_glue(data / "superglue")]
    passages = [p for p in dict.fromkeys(passages) if not judged & {*sentences(p)}]
    pieces: dict[bool, list] = {False: [], True: []}
    for passage in passages:
        pieces[chooses(passage)].append(passage)
    pieces[True] = pieces[True] or pieces[False][-1:]
    for name, wanted in (("train", False), ("choose", True)):
        _write(folder / f"cloze-{name}.json", cloze(pieces[wanted]))


def cloze(passages: Iterable[str]) -> list[dict]:
    """Articles of one passage each, with up to three questions."""
    articles = []
    for passage in passages:
        # Of a sentence that a passage has twice, the first one is asked for.
        gaps = {gap["question"]: gap for gap in reversed([*_gaps(passage)])}
        found = [gaps[question] for question in sorted(gaps, key=fraction)]
        if found:
            paragraph = {"context": passage, "qas": found[:3]}
            articles.append({"title": passage[:40], "paragraphs": [paragraph]})
    return articles


def sentences(passage: str) -> list[str]:
    """The sentences of a passage of five words and more."""
    found = (match[0].strip() for match in _SENTENCE.finditer(passage))
    return [sentence for sentence in found if len(_WORD.findall(sentence)) >= 5]


def _gaps(passage):
    """A question of each sentence, its gap where the sentence's digest says."""
    for match in _SENTENCE.finditer(passage):
        words = list(_WORD.finditer(match[0]))
        if not 5 <= len(words) <= MOST_WORDS or len(match[0]) > MOST_LETTERS:
            continue
        draw = fraction(match[0])
        size = 1 + int(draw * 3)
        first = int((draw * 997) % 1 * (len(words) - size + 1))
        start, end = words[first].start(), words[first + size - 1].end()
        question = f"{match[0][:start]}{GAP}{match[0][end:]}".strip()
        answer = {"text": match[0][start:end], "answer_start": match.start() + start}
        digest = f"{fraction(passage + question):.12f}"[2:]
        yield {"id": f"cloze-{digest}", "question": question, "answers": [answer]}


def _contexts(articles):
    return [p["context"] for article in articles for p in article["paragraphs"]]


def _super_glue(folder):
    """Passages of BoolQ and MultiRC, as far as they are there."""
    for path, passage in (
        (folder / "BoolQ" / "val.jsonl", lambda row: row["passage"]),
        (folder / "MultiRC" / "train.jsonl", lambda row: row["passage"]["text"]),
    ):
        if path.exists():
            with open(path, encoding="utf-8") as file:
                yield from (passage(json.loads(line)) for line in file if line.strip())


def _write(path, articles):
    text = json.dumps({"version": "1.1", "data": articles})
    path.write_text(text, encoding="utf-8")
