"""Costs of a program by the compiler for TPUs, where there is no TPU."""

import math
import os
import re


def without_tpu() -> None:
    """Lets JAX and the compiler start on a machine without a TPU."""
    os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1")
    os.environ["ALLOW_MULTIPLE_LIBTPU_LOAD"] = "true"


def scheduled_cycles(program) -> float:
    """The cycles of all operations; NaN if JAX cannot read the schedule (v6e)."""
    from jax.errors import JaxRuntimeError

    try:
        schedule = program.hlo_modules()[0].to_string()
    except JaxRuntimeError as error:
        print(f"no cycles: {error}", flush=True)
        return math.nan
    return sum(map(int, re.findall(r'"estimated_cycles":"(\d+)"', schedule)))


def corrected(seconds: float) -> float:
    """An estimate below 1 s, without −1 s for each operation of unknown cost."""
    return seconds - math.floor(seconds) if seconds < 0 else seconds
