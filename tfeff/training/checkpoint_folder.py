"""The folder of the checkpoints of a run: their names and their steps."""

import os
import re

from tfeff.storage.arguments import READ_WHOLE, paths
from tfeff.storage.local import local_run
from tfeff.utils.paths import check_path
from tfeff.utils.run_files import CHECKPOINTS, checkpoint_name

_NAME = re.compile(r"step-(\d+)\.keras")


@paths(directory=READ_WHOLE)
def latest_checkpoint(directory: str | os.PathLike) -> tuple[str | None, int]:
    """The newest checkpoint of a folder.

    Args:
        directory: the folder, which need not exist: `checkpoints/` of a run.

    Returns:
        The file's path and its step; `(None, 0)` where there is none.

    Raises:
        TypeError: if `directory` is no path.

    Example:

    >>> import tempfile
    >>> latest_checkpoint(tempfile.mkdtemp())
    (None, 0)
    """
    directory = check_path("directory", directory)
    steps = checkpoint_steps(directory)
    if not steps:
        return None, 0
    return checkpoint_path(directory, steps[-1]), steps[-1]


def run_checkpoint(run_dir: str, step: int | None = None) -> tuple[str, int]:
    """The file of a checkpoint of a run, and its step.

    Args:
        run_dir: the run's directory.
        step: integer, the step; `None` for the newest.

    Raises:
        ValueError: if the run has no checkpoint of this step; it names those that
            there are.
    """
    folder = os.path.join(local_run("run_dir", run_dir, step, newest=True), CHECKPOINTS)
    steps = checkpoint_steps(folder)
    if not steps or step not in (None, *steps):
        kept = f"those of steps {', '.join(map(str, steps))}" if steps else "none"
        raise ValueError(
            "`step` must be that of a checkpoint that the run has kept. Received: "
            f"step {step} of {run_dir}, which has {kept}"
        )
    step = steps[-1] if step is None else step
    return checkpoint_path(folder, step), step


def checkpoint_path(directory: str, step: int) -> str:
    """The file name of the checkpoint after `step` steps."""
    return os.path.join(directory, checkpoint_name(step))


def step_in_name(name: str) -> int | None:
    """The step that the file name of a checkpoint has; `None` of other names."""
    match = _NAME.fullmatch(name)
    return None if match is None else int(match[1])


def checkpoint_steps(directory: str) -> list[int]:
    """The steps of a folder's checkpoints, in increasing order.

    Raises:
        OSError: if something is there that cannot be read, such as a link to a disk
            that is missing: a run would begin anew.
    """
    try:
        names = {*os.listdir(directory)}
    except (FileNotFoundError, NotADirectoryError) as error:
        if not os.path.lexists(directory):
            return []
        reason = "it is a file, or a link to what is not there"
        raise OSError(error.errno, reason, os.fspath(directory)) from error
    steps = (step for name in names if (step := step_in_name(name)) is not None)
    # Files that other programs have named, such as step-5.keras, are none.
    return sorted(step for step in steps if checkpoint_path("", step) in names)
