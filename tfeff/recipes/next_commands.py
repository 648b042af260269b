"""The commands that a recipe prints at its end, to go on with."""

import csv
import io
import shlex
from collections.abc import Iterable

_repeated: list[str] = []


def repeat(flags: Iterable[str]) -> None:
    """Flags without which the commands that are printed from now on would fail."""
    _repeated[:] = flags


def print_finetune_next(pretrained: str) -> None:
    """Prints the command that fine-tunes an encoder, as an example."""
    print_next(
        "fine-tune it, such as on SST-2 of GLUE in the folder glue",
        *("finetune", f"--pretrained={pretrained}", "--task=SST-2", "--data=glue"),
        f"--run_dir={pretrained.rstrip('/')}-sst2",
    )


def print_report_next(run_dir: str) -> None:
    """Prints the command that compares a run with others."""
    listed = io.StringIO()  # The flag takes names with commas between them.
    csv.writer(listed, lineterminator="").writerow([run_dir])
    print_next("compare runs", "report", f"--runs={listed.getvalue()}")


def print_next(purpose: str, *command: str) -> None:
    """Prints what to do next, and the command of tfeff that does it."""
    print(f"next, {purpose}:\n  {shlex.join(['tfeff', *command, *_repeated])}")
