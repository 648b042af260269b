"""What the scripts beside this file share: how they start, and flags of other types."""

import json
import os
import sys
from collections.abc import Callable

import keras
from absl import app

import tfeff

_SCRIPTS = os.path.dirname(os.path.abspath(__file__)) + os.sep


def run(main: Callable) -> None:
    """Runs a script's `main`; an error of its input or its training takes one line."""

    def guarded(arguments):
        try:
            return main(arguments)
        except (ArithmeticError, ImportError, OSError, TypeError, ValueError) as error:
            if not _is_told(error):
                raise
            print(f"error: {error}", file=sys.stderr)
            return 1

    app.run(guarded)


def _is_told(error):
    """Whether the error was raised by this library or its scripts, not below them."""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    file = os.path.abspath(trace.tb_frame.f_code.co_filename)
    return file.startswith((_SCRIPTS, os.path.dirname(tfeff.__file__) + os.sep))


def dataset(name: str, *kinds: type) -> tfeff.datasets.Dataset:
    """The data set of a task, if its examples are of the kinds."""
    found = tfeff.datasets.get(name)
    if found.kind not in kinds:
        raise ValueError(
            f"--task must be one of {tfeff.datasets.names(*kinds)} here. "
            f"Received: --task={name}, a data set of `{found.kind.__name__}`"
        )
    return found


def check_finite(model: keras.Model) -> None:
    """Raises where a training left weights that are not finite."""
    if not tfeff.training.is_finite(model):
        raise tfeff.training.Diverged(
            "The training has diverged: no setting gave a model. Lower rates may do; a "
            "new --run_dir is needed."
        )


def override(text: str) -> tuple[str, object]:
    """`"num_layers=4"` to `("num_layers", 4)`; what is not JSON is a string."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--override must be NAME=VALUE. Received: {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def numbers(flag: str, texts: list[str], kind: type = float) -> list:
    """The numbers that a flag lists."""
    try:
        return [kind(text) for text in texts]
    except ValueError:
        what = "integers" if kind is int else "numbers"
        raise ValueError(f"--{flag} must be {what}. Received: {texts}") from None


def eval_every(steps: int, least: int = 1) -> int:
    """Steps between evaluations where a flag gives none: 200, or less for few steps.

    They divide the steps, into `least` parts at least.
    """
    limit = min(200, steps // least)
    found = next((n for n in range(limit, 0, -1) if steps % n == 0), 0)
    if found * 10 < limit or not found:
        raise ValueError(
            f"--steps must be at least {least} and have a divisor near {limit}, to "
            f"evaluate by, or --eval_every be given. Received: --steps={steps}"
        )
    return found


def check_eval_every(steps: int, every: int) -> None:
    """Raises unless the evaluations divide the steps."""
    if steps % every:
        raise ValueError(
            "--steps must be a multiple of --eval_every. "
            f"Received: --steps={steps}, --eval_every={every}"
        )
