"""Comparing costs: interleaved timing, ratios within rounds, exponents of growth."""

import math
import random
import statistics
import time

SHORTEST = 0.2  # Seconds that are timed at once: a faster step runs several times.


def warm_up(step) -> tuple[int, object]:
    """Runs a step until it is compiled: how often to run it at once, what it gives."""
    for _ in range(2):
        start = time.perf_counter()
        value = step()
        seconds = time.perf_counter() - start
    return max(1, round(SHORTEST / seconds)), value


def interleave(steps, rounds: int) -> list[list[float]]:
    """Seconds of a call of each step in each round; `steps` are (step, calls)."""
    generator = random.Random(0)
    order = list(range(len(steps)))
    times = [[] for _ in steps]
    for _ in range(rounds):
        generator.shuffle(order)
        for index in order:
            step, calls = steps[index]
            start = time.perf_counter()
            for _ in range(calls):
                step()
            times[index].append((time.perf_counter() - start) / calls)
    return times


def time_rows(timed, rounds: int) -> None:
    """Gives each row its step's times, as `seconds` reads them.

    Args:
        timed: tuples of row, step and calls.
        rounds: as for `interleave`.
    """
    times = interleave([step for _, *step in timed], rounds)
    for (row, *_), values in zip(timed, times):
        row["seconds"] = " ".join(f"{value:.6g}" for value in values)


def left_out(error: Exception) -> str:
    """Why a row has no times, in a line."""
    reason = str(error).strip().splitlines() or [""]
    return f"{type(error).__name__}: {reason[0][:200]}"


def seconds(row: dict[str, str]) -> list[float]:
    """The times of a row, one a round."""
    return [float(value) for value in row["seconds"].split()]


def ratios(row: dict[str, str], reference: dict[str, str]) -> list[float]:
    """Times of a row over those of another in the same round."""
    return [a / b for a, b in zip(seconds(row), seconds(reference), strict=True)]


def spread(values: list[float], digits: int) -> str:
    """The median, and the quartiles in brackets."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def exponent(points: dict[int, float], octaves: int = 2) -> float | None:
    """Least squares of log cost by log length over the last octaves.

    `None` if there are fewer than two lengths in them.
    """
    last = {
        math.log(length): math.log(cost)
        for length, cost in points.items()
        if length * 2**octaves >= max(points) and cost > 0
    }
    if len(last) < 2:
        return None
    return statistics.linear_regression(list(last), list(last.values())).slope
