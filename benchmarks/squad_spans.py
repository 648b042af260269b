"""Whether gold answers survive tokens and windows, on files in SQuAD's layout.

Every answer of an answerable question becomes tokens of windows, these become a span
of characters again, and its text is compared with the gold text by the official
normalisation. Every miss is listed with its reason. Then the texts are scored as
predictions.

    python benchmarks/squad_spans.py
"""

import glob
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import machine
import numpy as np
from absl import app, flags
from rows import markdown

import tfeff

GOAL = 99.5  # percent of the answers
FILES = ("train-v1.1.json", "dev-v1.1.json")

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with squad/ and text/*.txt.",
)
flags.DEFINE_integer("vocabulary_size", 8000, "Pieces.", lower_bound=6)
flags.DEFINE_integer("length", 384, "Tokens in a window.", lower_bound=4)
flags.DEFINE_integer("stride", 128, "Tokens from window to window.", lower_bound=1)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


def main(_):
    """Tokenizer, both files, report."""
    texts = sorted(glob.glob(os.path.join(FLAGS.data, "text", "*.txt")))
    if not texts:
        raise app.UsageError(f"{FLAGS.data}/text holds no text")
    tokenizer = tfeff.data.train_tokenizer(
        tfeff.data.text_files(texts), FLAGS.vocabulary_size
    )
    rows, misses = [], []
    for name in FILES:
        questions = tfeff.datasets.read_squad(os.path.join(FLAGS.data, "squad", name))
        row, missed = check(questions.questions, tokenizer, FLAGS.length, FLAGS.stride)
        rows.append({"file": name, **row})
        misses += [(name, *miss) for miss in missed]
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "squad_spans.md")
    with open(path, "w", encoding="utf-8") as file:
        file.write(report(rows, misses))
    print(f"written: {path}")
    print("\n".join(table(rows)))


def check(questions, tokenizer, length, stride):
    """Counts and scores of gold answers as predictions, and a row for each miss."""
    questions = [question for question in questions if question.spans]
    features = tfeff.data.make_span_features(questions, tokenizer, length, stride)
    windows, texts = {}, {}
    for row, index in enumerate(features.question_indices):
        start, end = features.start_positions[row], features.end_positions[row]
        if start == 0:
            continue  # The answer is not, or not wholly, in this window.
        offsets = features.window_offsets(row)
        passage = features.passage_positions[row]
        first, last = offsets[start - passage][0], offsets[end - passage][1]
        question = questions[index]
        windows[question.id] = windows.get(question.id, 0) + 1
        texts.setdefault(question.id, (int(first), int(last)))
    predictions, misses = {}, []
    for question in questions:
        span = texts.get(question.id, (0, 0))
        predictions[question.id] = question.passage[slice(*span)]
        scores = tfeff.datasets.squad_v1_metrics(
            [question], {question.id: predictions[question.id]}
        )
        if scores["exact_match"] < 100:
            misses.append(
                (question.id, question.answers[0], predictions[question.id])
                + (reason(question, span),)
            )
    scores = tfeff.datasets.squad_v1_metrics(questions, predictions)
    missed = {miss[0] for miss in misses}
    rest = [question for question in questions if question.id not in missed]
    without = tfeff.datasets.squad_v1_metrics(
        rest, {question.id: predictions[question.id] for question in rest}
    )
    row = {
        "questions": len(questions),
        "windows": len(features),
        "in several windows": sum(count > 1 for count in windows.values()),
        "come back": 100 * (1 - len(misses) / len(questions)),
        "exact match": scores["exact_match"],
        "F1": scores["f1"],
        "exact match without the misses": without["exact_match"],
    }
    return row, misses


def reason(question, span):
    """Why the characters `span` are not those of the first gold answer."""
    if span == (0, 0):
        return "no window holds the whole answer"
    gold = question.spans[0]
    sides = []
    if span[0] < gold[0]:
        sides.append("begins inside of a token")
    if span[1] > gold[1]:
        sides.append("ends inside of a token")
    return "the answer " + " and ".join(sides) if sides else "unknown"


def report(rows, misses):
    """The page of results."""
    questions = sum(row["questions"] for row in rows)
    share = 100 * (1 - len(misses) / questions)
    lines = [
        "# Gold answers of SQuAD to tokens and back",
        "",
        "Answerable questions whose gold span, as tokens of a window and back as "
        "characters, has the gold text by the official normalisation, in percent, and "
        "the official scores of these texts as predictions. Goal: "
        f"{GOAL} % or more. All: {share:.2f} % of {questions}, goal "
        f"{'reached' if share >= GOAL else 'missed'}.",
        "",
        machine.description(),
        *table(rows),
        "",
        "## Misses",
        "",
        *markdown(("file", "question", "gold", "became", "reason"), misses),
    ]
    return "\n".join(lines if misses else [*lines[:-2], "None."]) + "\n"


def table(rows):
    """Markdown lines."""
    names = list(rows[0])
    cells = [
        [f"{v:.2f}" if isinstance(v, (float, np.floating)) else str(v) for v in values]
        for values in (row.values() for row in rows)
    ]
    return [
        "| " + " | ".join(line) + " |" for line in (names, ["---"] * len(names), *cells)
    ]


if __name__ == "__main__":
    app.run(main)
