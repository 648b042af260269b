"""Verdicts on the claims from the recorded numbers, by one stated rule.

    effect = mean over seeds of Σ weight · value
    margin = t(0.975, seeds - 1) · deviation of the effects / √seeds

The seeds are those that all systems of a comparison have. A seed is the order of the
texts, too, the same for all systems: each gives one effect, and of two systems this is
a paired t-test. Nothing is pooled over other systems, some of which leave a plateau
early with one seed and late, or never, with another: a verdict depends on the rows of
its own systems alone.

A comparison is confirmed where the effect is above the margin, contradicted where it is
below its negative, and otherwise not decided. Equality is confirmed where effect and
margin are within the tolerance, and contradicted where they are wholly outside. A claim
is confirmed where all of its comparisons are, contradicted where one is, and otherwise
not decided.

Nothing is decided of systems that have learnt nothing: where even the best of a
comparison is less than 0.1 nats below the unigram entropy, or not above the baseline by
the margin. Nor is a comparison decided before the system that is to be the better, both
that are to be equal, and those of whose positions something is said have learnt the
order of words: before their loss rises, in the mean over the seeds, by 0.1 nats where
the tokens around change places. Of rows from before that was measured, the mean of the
losses must be 0.1 nats below that of the encoder without positions. So must be the loss
to which times are taken: one without positions reaches a higher one, too.
"""

import dataclasses
import math
import shlex
import statistics
from collections.abc import Iterable, Sequence

from scipy import stats

from evidence.cells import predicts_masks, whole_system
from evidence.claims import TIMED_METRICS, Claim, Comparison, Term
from evidence.deciding import tasks_of
from evidence.ledger import Ledger
from evidence.systems import BERT, NO_POSITION, TWO_LAYERS

CONFIRMED, CONTRADICTED, OPEN = "confirmed", "contradicted", "not decided"
NOT_RUN = "not run"
LEARNT = 0.1  # Nats below the unigram entropy, or the loss without positions.
MOST_SEEDS = 1000  # That are thought of.
LOSSES = ("loss", "mean_loss", *TIMED_METRICS)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The verdict on a comparison, or on a claim.

    Attributes:
        verdict: one of the four.
        effect, margin, deviation: as in the rule, the deviation of the effects; `None`
            where there are too few rows.
        seeds: how many all systems of the comparison have.
        more_seeds: how many more would decide an effect and a deviation of this size;
            infinite where not even 1000 would, `None` where it is decided, or cannot be
            said.
        more_tokens: how many tokens these would read in pretraining, without those
            seeds of a system that are recorded.
        level: the time, or the loss, at which timed metrics are read.
        reason: why it is not decided, or empty.
    """

    verdict: str
    effect: float | None = None
    margin: float | None = None
    deviation: float | None = None
    seeds: int = 0
    more_seeds: float | None = None
    more_tokens: float | None = None
    level: float | None = None
    reason: str = ""


class Evidence:
    """The recorded values, as the claims name them.

    Args:
        ledger: the rows and the curves.
        tasks: those of GLUE over which the average is.
        steps: of pretraining.
    """

    def __init__(self, ledger: Ledger, tasks: Iterable[str], steps: int):
        self.rows, self.curves = ledger.rows(), ledger.curves()
        self.tasks, self.steps = tuple(tasks), steps
        self.systems: dict[str, dict[str, set[int]]] = {}
        for row in self.rows.values():
            systems = self.systems.setdefault(row["stage"], {})
            systems.setdefault(row["system"], set()).add(int(row["seed"]))

    def values(self, term: Term, level: float | None = None) -> dict[int, float]:
        """The values of a term by seed, of the seeds that have all that it needs.

        Args:
            term: a mean over seeds.
            level: the time at which `equal_cost` is read, or the loss to which
                `same_loss` takes the time.
        """
        found = {}
        for seed in sorted(self.systems.get(term.stage, {}).get(term.system, ())):
            value = self.value(term, seed, level)
            if value is not None:
                found[seed] = value
        return found

    def value(self, term: Term, seed: int, level: float | None = None) -> float | None:
        """The value of a term with a seed."""
        tasks = tasks_of(term, self.tasks)
        if tasks != (term.task,):
            own = [
                self.value(dataclasses.replace(term, task=task), seed) for task in tasks
            ]
            known = [value for value in own if value is not None]
            return statistics.fmean(known) if len(known) == len(own) else None
        parts = (term.stage, term.system, term.task, str(seed))
        name = "/".join(part for part in parts if part)
        if name not in self.rows:
            return None
        if term.metric == "mean_loss":
            points = self.curves.get(name, [])
            return statistics.fmean(p["val_loss"] for p in points) if points else None
        if term.metric in TIMED_METRICS:
            points = self.over_time(name)
            if level is None or not points:
                return None
            if term.metric == "equal_cost":
                return crossing(points, "time", level, "val_loss")
            return crossing(points, "val_loss", level, "time")
        return self.rows[name]["metrics"].get(term.metric)

    def cost(self, system: str) -> float | None:
        """The measured time of a system's step over BERT's, which is 1."""
        row = self.rows.get(f"timing/{whole_system(system)}/0")
        if row is None:
            return None
        return 1.0 if whole_system(system) == BERT else row["metrics"]["cost"]

    def tokens(self, terms: Iterable[Term], seeds: int) -> float:
        """The tokens until all systems of the terms have so many seeds, of pretraining.

        Those of the trainings that the cells of a later stage start from count, too.
        """
        stages = {
            (stage, t.system) for t in terms for stage in ("pretraining", t.stage)
        }
        found = 0.0
        for stage, system in stages:
            # A task may read none where another one of the seed does.
            each: dict[str, float] = {}
            for row in self.rows.values():
                if (row["stage"], row["system"]) == (stage, system):
                    seed, read = row["seed"], float(row["tokens"])
                    each[seed] = max(read, each.get(seed, 0.0))
            found += max(each.values(), default=0.0) * max(0, seeds - len(each))
        return found

    def names(self, term: Term) -> list[str]:
        """The cells of a term that have rows: all seeds, of all tasks of a mean."""
        own = [
            dataclasses.replace(term, task=task) for task in tasks_of(term, self.tasks)
        ]
        return [name for name in self.rows if any(is_of(name, one) for one in own)]

    def over_time(self, name: str) -> list[dict[str, float]]:
        """A cell's curve with `time`, as a share of BERT's pretraining.

        Empty where no times are measured.
        """
        row, points = self.rows[name], self.curves.get(name, [])
        switch, whole = switch_step(row["command"]), self.cost(row["system"])
        early = whole
        if switch is not None:  # Half of the layers up to there.
            early, whole = self.cost(TWO_LAYERS), self.cost(BERT)
        if early is None or whole is None:
            return []
        return [
            {
                **point,
                "time": (
                    early * min(point["step"], switch or 0)
                    + whole * max(0, point["step"] - (switch or 0))
                )
                / self.steps,
            }
            for point in points
        ]

    def level(self, terms: Iterable[Term]) -> float | None:
        """The time or loss at which a comparison is read, if it can be.

        The time that the cheapest takes in all, or the highest of the last losses.
        """
        found = []
        for term in terms:
            curves = [
                points for name in self.names(term) if (points := self.over_time(name))
            ]
            if not curves:
                return None
            if term.metric == "equal_cost":
                found += [-points[-1]["time"] for points in curves]
            else:
                found += [points[-1]["val_loss"] for points in curves]
        return abs(max(found))


def is_of(name: str, term: Term) -> bool:
    """Whether a cell is one of a term's."""
    start = "/".join(part for part in (term.stage, term.system, term.task) if part)
    return name.rpartition("/")[0] == start


def switch_step(command: str) -> int | None:
    """The step at which a stacked run doubles its layers; `None` for other runs."""
    flag = "--switch_steps="
    words = [word for word in shlex.split(command) if word.startswith(flag)]
    return int(words[-1].removeprefix(flag)) if words else None


def crossing(
    points: list[dict[str, float]], by: str, level: float, wanted: str
) -> float | None:
    """Where a curve first meets a level of one of its numbers, the value of another.

    It is a line between two points; `None` where it does not meet the level.

    Args:
        points: of the curve, in their order.
        by: the name of the number that meets the level.
        level: the level.
        wanted: the name of the other number.
    """
    for before, after in zip(points, points[1:]):
        low, high = sorted((before[by], after[by]))
        if low <= level <= high:
            share = (level - before[by]) / (after[by] - before[by] or 1.0)
            return before[wanted] + share * (after[wanted] - before[wanted])
    return None


def judge(comparison: Comparison, evidence: Evidence) -> Verdict:
    """The verdict of a comparison."""
    terms = comparison.terms
    level = None
    if any(term.metric in TIMED_METRICS for term in terms):
        level = evidence.level(terms)
        if level is None:
            return Verdict(NOT_RUN, reason="no times are measured")
    values = [evidence.values(term, level) for term in terms]
    if not all(values):
        missing = [term.system for term, found in zip(terms, values) if not found]
        return Verdict(
            NOT_RUN, reason=f"no rows of {', '.join(dict.fromkeys(missing))}"
        )
    common = set.intersection(*map(set, values))
    if not common:
        return Verdict(NOT_RUN, reason="no seed is run of all systems")
    seeds = len(common)
    effects = [
        sum(term.weight * found[seed] for term, found in zip(terms, values))
        for seed in sorted(common)
    ]
    effect = statistics.fmean(effects)
    if seeds < 2:
        reason = "one seed has no deviation"
        return Verdict(OPEN, effect, seeds=seeds, level=level, reason=reason)
    deviation = statistics.stdev(effects)

    def margin_of(seeds: int) -> float:
        return stats.t.ppf(0.975, seeds - 1) * deviation / math.sqrt(seeds)

    margin = margin_of(seeds)
    found = Verdict(OPEN, effect, margin, deviation, seeds, level=level)
    reason = nothing_learnt(terms, values, evidence, margin)
    reason = reason or no_order_learnt(comparison, evidence)
    reason = reason or level_without_order(terms, level, evidence)
    if reason:
        return dataclasses.replace(found, reason=reason)
    verdict = decide(effect, margin, comparison.tolerance)
    if verdict == CONTRADICTED and comparison.tolerance is not None:
        reason = f"the first is the {'better' if effect > 0 else 'worse'} one"
    if verdict != OPEN:
        return dataclasses.replace(found, verdict=verdict, reason=reason)
    more = math.inf
    for further in range(1, MOST_SEEDS + 1):
        if decide(effect, margin_of(seeds + further), comparison.tolerance) != OPEN:
            more = float(further)
            break
    tokens = math.inf if math.isinf(more) else evidence.tokens(terms, seeds + int(more))
    return dataclasses.replace(
        found,
        more_seeds=more,
        more_tokens=tokens,
        reason="the effect is within the margin",
    )


def decide(effect: float, margin: float, tolerance: float | None) -> str:
    """The verdict of an effect by its margin."""
    if tolerance is None:
        if effect > margin:
            return CONFIRMED
        return CONTRADICTED if effect < -margin else OPEN
    if abs(effect) + margin <= tolerance:
        return CONFIRMED
    return CONTRADICTED if abs(effect) - margin > tolerance else OPEN


def nothing_learnt(terms, values, evidence: Evidence, margin: float) -> str:
    """Why nothing can be said, or nothing."""
    means = [statistics.fmean(found.values()) for found in values]
    if all(term.metric in LOSSES for term in terms):
        if any(term.task for term in terms):
            return ""
        entropies = [
            row["metrics"]["unigram_entropy"]
            for row in evidence.rows.values()
            if row["stage"] == terms[0].stage and "unigram_entropy" in row["metrics"]
        ]
        if entropies and min(means) > min(entropies) - LEARNT:
            return "no system is below the unigram entropy by 0.1 nats"
        return ""
    if any(term.metric not in ("score", "f1") for term in terms):
        return ""
    baselines = [
        value
        for term in terms
        for value in evidence.values(
            dataclasses.replace(term, metric="baseline")
        ).values()
    ]
    if baselines and max(means) <= max(baselines) + margin:
        return "no system is above the baseline by the margin"
    return ""


def no_order_learnt(comparison: Comparison, evidence: Evidence) -> str:
    """Why a comparison says nothing of its systems yet, or nothing."""
    bag = evidence.values(Term(1, "pretraining", NO_POSITION))
    for term in comparison.learnt:
        if not predicts_masks(term.system):  # Its loss is another quantity.
            continue
        start = f"{term.system} has not learnt the order of words in this budget"
        rises = evidence.values(dataclasses.replace(term, metric="order"))
        losses = evidence.values(term)
        if rises:
            rise = statistics.fmean(rises.values())
            if rise < LEARNT:
                return f"{start}: its loss rises by {rise:.3f} nats without it"
        elif not losses or not bag:  # Of rows from before that was measured.
            missing = NO_POSITION if losses else term.system
            return f"{missing} is not run, which tells whether order is learnt"
        elif (
            statistics.fmean(losses.values()) > statistics.fmean(bag.values()) - LEARNT
        ):
            return f"{start}: its loss is not {LEARNT} nats below that of {NO_POSITION}"
    return ""


def level_without_order(
    terms: Sequence[Term], level: float | None, evidence: Evidence
) -> str:
    """Why times to a loss say nothing of the order of words, or nothing."""
    if level is None or terms[0].metric != "same_loss":
        return ""
    bag = evidence.values(Term(1, "pretraining", NO_POSITION))
    if not bag:
        return f"{NO_POSITION} is not run, which tells whether order is learnt"
    if level > statistics.fmean(bag.values()) - LEARNT:
        return f"a loss of {level:.2f} is not {LEARNT} nats below that of {NO_POSITION}"
    return ""


def combine(verdicts: Iterable[Verdict]) -> str:
    """The verdict of a claim from those of its comparisons."""
    found = [verdict.verdict for verdict in verdicts]
    if CONTRADICTED in found:
        return CONTRADICTED
    if all(verdict == NOT_RUN for verdict in found):
        return NOT_RUN
    return CONFIRMED if all(verdict == CONFIRMED for verdict in found) else OPEN


def judge_claim(claim: Claim, evidence: Evidence) -> list[Verdict]:
    """The verdicts of a claim's comparisons."""
    return [judge(comparison, evidence) for comparison in claim.comparisons]
