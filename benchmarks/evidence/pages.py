"""The pages of the claims: table, curve and verdict of each, and a summary of all."""

import math
import os
import statistics
from collections.abc import Mapping
from pathlib import Path

from rows import markdown

from evidence.cells import make_cells, whole_system
from evidence.claims import TIMED_METRICS, Claim, Comparison, Term
from evidence.deciding import claims_at
from evidence.drawing import draw, named, terms_of
from evidence.ledger import Ledger
from evidence.systems import BERT, SCALES, TWO_LAYERS, Scale
from evidence.verdicts import (
    MOST_SEEDS,
    NOT_RUN,
    OPEN,
    Evidence,
    Verdict,
    combine,
    judge_claim,
    switch_step,
)

RULE = (
    "An effect is the difference of the means over the seeds that all have, above 0 "
    "where the claim holds. Each seed gives one, as a seed is the order of the texts, "
    "too, the same for all systems. Its margin is that of a t-test of these, paired "
    "where two systems are compared: Student's t at 97.5 % times their deviation over "
    "√seeds. A "
    "comparison is confirmed where the effect is above its margin, contradicted where"
    " it is below the margin's negative, and otherwise not decided; a claim is "
    "confirmed where all of its comparisons are, and contradicted where one is. "
    "Equality within a tolerance is confirmed where the effect's size and the margin "
    "together are within it, and contradicted where the size less the margin is "
    "beyond it. Nothing is decided of systems that have learnt nothing: the best must"
    " be 0.1 nats below the unigram entropy, or above the baseline by the margin. A "
    "comparison is decided only where the system that is to be the better, both that "
    "are to be equal, and those of whose positions something is said have learnt the "
    "order of words: in the mean over the seeds their loss must rise by 0.1 nats "
    "where the tokens around change places, or, of rows from before that was "
    "measured, be 0.1 nats below that of No_Position. So must be a loss to which times "
    "are taken."
)


def write_pages(ledger: Ledger, results: str, scale: Scale) -> list[str]:
    """Writes the pages, pictures and the summary; returns the names of the files."""
    folder = Path(results, claims_folder(ledger.scale))
    os.makedirs(folder, exist_ok=True)
    evidence = Evidence(ledger, scale.tasks, scale.steps)
    written, summary = [], []
    for claim in claims_at(make_cells(scale), scale):
        verdicts = judge_claim(claim, evidence)
        verdict = combine(verdicts)
        name = claim.sentence
        if verdict != NOT_RUN:
            picture = f"{claim.name}.png"
            drawn = draw(claim, evidence, str(folder / picture), scale)
            text = page(claim, verdicts, evidence, scale, picture if drawn else None)
            path = folder / f"{claim.name}.md"
            path.write_text(text, encoding="utf-8")
            written.append(str(path))
            name = f"[{name}]({claim.name}.md)"
        row = (name, f"{claim.paper}, {claim.section}", figure_text(claim), verdict)
        summary.append((*row, effects_text(claim, verdicts)))
    path = folder / "README.md"
    path.write_text(summary_text(summary, ledger, scale), encoding="utf-8")
    return [*written, str(path)]


def claims_folder(scale_name: str) -> str:
    """The name of the folder of a scale's pages."""
    return "claims" if scale_name == "full" else f"claims_{scale_name}"


def summary_text(rows: list[tuple], ledger: Ledger, scale: Scale) -> str:
    """The page with a row a claim."""
    done = ledger.rows()
    head = ("claim", "paper", "figure in the paper", "verdict here", "effect here")
    return "\n".join(
        [
            "# The papers' claims, in small\n",
            f"{size_text(scale)} {len(done)} cells are recorded in "
            "[campaign.csv](../campaign.csv), each with its command, seed, commit and "
            "machine, and their curves in [campaign_curves.csv](../"
            "campaign_curves.csv). Made by `python benchmarks/campaign.py "
            f"--scale={ledger.scale} --report`. {others_text(ledger)}\n",
            f"{RULE}\n",
            *markdown(head, rows),
            "",
        ]
    )


def others_text(ledger: Ledger) -> str:
    """Where the tables of the other scales are that have rows."""
    others = [
        f"[{SCALES[name].length} tokens](../{claims_folder(name)}/README.md)"
        for name in SCALES
        if name != ledger.scale and Ledger(ledger.folder, name).rows()
    ]
    return f"Verdicts in sequences of {', '.join(others)}." if others else ""


def size_text(scale: Scale) -> str:
    """A sentence about what was trained."""
    tokens = scale.steps * scale.batch_size * scale.length / 1e6
    return (
        f"Encoders of {scale.layers} layers, width {scale.width}, {scale.heads} heads "
        f"or parts, pretrained on {tokens:.3g} million tokens in sequences of "
        f"{scale.length}, with one tokenizer of {scale.vocabulary:,} pieces; the peak "
        "rate of each is the best of three in a pilot, which other documents judged."
    )


def page(
    claim: Claim,
    verdicts: list[Verdict],
    evidence: Evidence,
    scale: Scale,
    picture: str | None,
) -> str:
    """The page of a claim."""
    found = figure_text(claim)
    lines = [
        f"# {claim.sentence}\n",
        f"{claim.paper}, {claim.section}. In the paper: {found}.\n",
        f"**Verdict: {combine(verdicts)}.**\n",
        f"{size_text(scale)} {claim.note}".strip() + "\n",
        "## Comparisons\n",
        *markdown(
            (
                *("comparison", "effect", "margin", "deviation", "seeds", "verdict"),
                "",
            ),
            [
                (
                    label(comparison, v),
                    number(v.effect),
                    *(
                        "–" if x is None else f"{x:.3f}"
                        for x in (v.margin, v.deviation)
                    ),
                    v.seeds or "–",
                    v.verdict,
                    why(v),
                )
                for comparison, v in zip(claim.comparisons, verdicts)
            ],
        ),
        "",
        "## Values\n",
        *values_table(claim, verdicts, evidence),
        "",
        "## Rows\n",
        *rows_table(claim, evidence),
        "",
    ]
    if picture:
        lines += [f"![{claim.sentence}]({picture})\n"]
    return "\n".join([*lines, f"{RULE}\n"])


def why(verdict: Verdict) -> str:
    """Why a comparison is not decided, and what it would take."""
    if verdict.more_seeds is None:
        return verdict.reason
    if math.isinf(verdict.more_seeds):
        return f"{verdict.reason}; not even {MOST_SEEDS:,} more seeds would decide"
    more = f"{verdict.more_seeds:.0f} more seed{'s' if verdict.more_seeds > 1 else ''}"
    return (
        f"{verdict.reason}; {more} of all, {verdict.more_tokens / 1e6:,.0f} million "
        "tokens of pretraining that are not recorded, would decide an effect and a "
        "deviation of this size"
    )


def label(comparison: Comparison, verdict: Verdict) -> str:
    """A comparison in words, with its tolerance, and where its times are read."""
    words = [comparison.label]
    if comparison.tolerance is not None:
        words.append(f"within {comparison.tolerance}")
    if verdict.level is not None:
        words.append(f"({read_at(comparison.terms[0], verdict.level)})")
    return " ".join(words)


def read_at(term: Term, level: float) -> str:
    """Where a timed metric is read, in words."""
    if term.metric == "equal_cost":
        return f"loss after {level:.2f} of BERT's time"
    return f"time to {level:.2f} nats, BERT's whole one = 1"


def effects_text(claim: Claim, verdicts: list[Verdict]) -> str:
    """Effects, margins and verdicts, in the order of the comparisons."""
    return "; ".join(
        ", ".join(
            (
                f"{label(comparison, found)}: {number(found.effect)}"
                + ("" if found.margin is None else f" ± {found.margin:.3f}"),
                *([found.verdict] if len(verdicts) > 1 else []),
                *([found.reason] if found.reason and found.verdict != OPEN else []),
            )
        )
        for comparison, found in zip(claim.comparisons, verdicts)
        if found.effect is not None
    )


def figure_text(claim: Claim) -> str:
    """The paper's measure, in words."""
    values = ", ".join(f"{name} {value}" for name, value in claim.figure.items())
    return f"{claim.unit}: {values}" if values else "no single figure"


def values_table(
    claim: Claim, verdicts: list[Verdict], evidence: Evidence
) -> list[str]:
    """Lines of a table: a mean with the values of its seeds in each row."""
    rows = []
    for term in terms_of(claim):
        if not (values := evidence.values(term)):
            continue
        names = evidence.names(term)
        rates = {
            evidence.rows[name]["command"].split("--learning_rate=")[-1].split()[0]
            for name in names
            if "--learning_rate=" in evidence.rows[name]["command"]
        }
        gains = [last_gain(evidence.curves.get(name, [])) for name in names]
        known = [gain for gain in gains if gain is not None]
        rows.append(
            (
                named(term),
                term.metric.replace("_", " "),
                mean_and_seeds(values),
                ", ".join(sorted(rates)) or "–",
                f"{max(known):.3f}" if known else "–",
                cost_text(term, evidence),
            )
        )
    timed = {
        (term.system, read_at(term, verdict.level)): evidence.values(
            term, verdict.level
        )
        for comparison, verdict in zip(claim.comparisons, verdicts)
        for term in comparison.terms
        if term.metric in TIMED_METRICS and verdict.level is not None
    }
    rows += [
        (system, where, mean_and_seeds(values), "–", "–", "–")
        for (system, where), values in timed.items()
        if values
    ]
    head = ("system", "metric", "mean (seeds)", "peak rate")
    head += ("last tenth gained at most", "step's time, BERT = 1 (quartiles)")
    return markdown(head, rows)


def mean_and_seeds(values: Mapping[int, float]) -> str:
    """A mean, with the value of each seed."""
    each = ", ".join(f"{value:.3f}" for value in values.values())
    return f"{statistics.fmean(values.values()):.3f} ({each})"


def cost_text(term: Term, evidence: Evidence) -> str:
    """The time of a system's step with its quartiles, of a stacked one both."""
    commands = [evidence.rows[name]["command"] for name in evidence.names(term)]
    stacked = any(switch_step(command) is not None for command in commands)
    texts = []
    for system in (TWO_LAYERS, BERT) if stacked else (whole_system(term.system),):
        row = evidence.rows.get(f"timing/{system}/0")
        if row is None:
            return "–"
        own = row["metrics"]
        quartiles = f"{own['cost_low']:.2f} to {own['cost_high']:.2f}"
        texts.append(f"{evidence.cost(system):.2f} ({quartiles})")
    return ", then ".join(texts)


def rows_table(claim: Claim, evidence: Evidence) -> list[str]:
    """Lines of a table: where the values of each system come from."""
    found: dict[tuple[str, str], list[dict]] = {}
    for term in terms_of(claim):
        own = found.setdefault((term.stage, term.system), [])
        own += [evidence.rows[name] for name in evidence.names(term)]
    lines = []
    for (stage, system), rows in found.items():
        if rows:
            tokens = sorted({f"{float(row['tokens']) / 1e6:.1f}" for row in rows})
            lines.append(
                (
                    f"{system}, {stage}",
                    ", ".join(sorted({row["seed"] for row in rows})),
                    ", ".join(tokens) if tokens != ["0.0"] else "–",
                    ", ".join(sorted({row["machine"] for row in rows})),
                    ", ".join(sorted({row["commit"] for row in rows})),
                )
            )
    return markdown(
        ("system, stage", "seeds", "million tokens each", "processor", "commits"), lines
    )


def last_gain(points: list[dict[str, float]]) -> float | None:
    """By how much the last tenth of a training lowered its validation loss."""
    if len(points) < 2:
        return None
    before = [p for p in points if p["step"] <= 0.9 * points[-1]["step"]]
    return (before or points)[-1]["val_loss"] - points[-1]["val_loss"]


def number(value: float | None) -> str:
    """A number with its sign, or a dash."""
    return "–" if value is None else f"{value:+.3f}"
