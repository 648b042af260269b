"""Steps between evaluations: given or chosen, they divide the steps."""


def eval_every(steps: int, given: int | None, stages: int = 1) -> int:
    """Steps between evaluations: `given`, or 200, or less for few steps.

    Those that are chosen divide the steps, into `stages` parts at least.

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
    found = next((n for n in range(limit, 0, -1) if steps % n == 0), 0)
    if found * 10 < limit or not found:
        raise ValueError(
            f"`steps` must be at least {stages} and have a divisor near {limit}, to "
            f"evaluate by, or `eval_every` be given. Received: steps={steps}"
        )
    return found
