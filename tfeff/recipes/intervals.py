"""Steps between evaluations: given or chosen, they divide the steps."""

import itertools
import math
from collections.abc import Sequence


def eval_every(
    steps: int, given: int | None, stages: int = 1, **others: Sequence[int]
) -> int:
    """Steps between evaluations: `given`, or 200, or less for few steps.

    Those that are chosen divide the steps, into `stages` parts at least, and all of
    `others`: settings by name, such as the steps whose checkpoints are kept.

    Raises:
        ValueError: if those given do not, or none are found.
    """
    if given is not None:
        if steps % given:
            raise ValueError(
                "`steps` must be a multiple of `eval_every`. "
                f"Received: steps={steps}, eval_every={given}"
            )
        return given
    limit = min(200, steps // stages)
    common = math.gcd(steps, *itertools.chain(*others.values()))
    found = next((n for n in range(limit, 0, -1) if common % n == 0), 0)
    if found * 10 < limit or not found:
        named = "".join(f", {k}={tuple(v)}" for k, v in others.items() if v)
        near = f" near {limit}" if limit else ""
        raise ValueError(
            f"`steps` must be at least {stages} and have a divisor{near}, to evaluate "
            f"by, or `eval_every` be given. Received: steps={steps}{named}"
        )
    return found
