"""Which cells decide about a claim."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from evidence.cells import DISTILLED_TASKS, Cell, with_needs
from evidence.claims import (
    AVERAGE,
    CLAIMS,
    STUDENTS,
    TIMED_METRICS,
    Claim,
    Term,
    pretrained,
)
from evidence.systems import NO_POSITION, Scale


def tasks_of(term: Term, tasks: tuple[str, ...]) -> tuple[str, ...]:
    """The tasks of a term, of which it is the mean.

    Args:
        term: a mean over seeds.
        tasks: those of GLUE that the campaign has.
    """
    means = {AVERAGE: tasks, STUDENTS: DISTILLED_TASKS}
    return means.get(term.task, (term.task,))


def claims_at(cells: Iterable[Cell], scale: Scale) -> list[Claim]:
    """The claims, with those of their comparisons whose cells a scale has."""
    there = {(cell.stage, cell.system, cell.task) for cell in cells}
    found = []
    for claim in CLAIMS:
        kept = tuple(
            comparison
            for comparison in claim.comparisons
            if all(
                (term.stage, term.system, task) in there
                for term in comparison.terms
                for task in tasks_of(term, scale.tasks) or [None]
            )
        )
        if kept:
            found.append(dataclasses.replace(claim, comparisons=kept))
    return found


def cells_of(claim: Claim, cells: Mapping[str, Cell], scale: Scale) -> set[str]:
    """The names of the cells that a claim's verdict reads, and of all that they need.

    Args:
        claim: the claim.
        cells: all cells by name.
        scale: the sizes.
    """
    wanted = set(_read(claim, scale))
    read = (n for n, c in cells.items() if (c.stage, c.system, c.task) in wanted)
    return with_needs(read, cells)


def _read(claim: Claim, scale: Scale) -> Iterator[tuple[str, str, str]]:
    """Stage, system and task of the rows that the rule reads."""
    for comparison in claim.comparisons:
        learnt = comparison.learnt and (*comparison.learnt, *pretrained(NO_POSITION))
        for term in (*comparison.terms, *learnt):
            for task in tasks_of(term, scale.tasks):
                yield term.stage, term.system, task
            if term.metric in TIMED_METRICS:
                yield "timing", term.system, ""
