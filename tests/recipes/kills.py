"""Kills a recipe at any moment, and starts it again, until it is finished.

Called by `test_kills` as a program. A start is a fork of this process, which has
imported TensorFlow and used nothing of it: that takes seconds less than a new one.
"""

import dataclasses
import gc
import io
import json
import os
import random
import re
import runpy
import shutil
import signal
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import safetensors

from tests.subjects.files import weights

CHANGES = ("os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def import_all():
    """What the recipes import, so that their starts need not."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import absl.app  # noqa: F401
    import keras_hub  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import tensorflow_text  # noqa: F401

    import tfeff

    for package in (tfeff.data, tfeff.export, tfeff.objectives, tfeff.plots):
        for name in package.__all__:
            getattr(package, name)
    for name in (*tfeff.tasks.__all__, *tfeff.training.__all__):
        getattr(tfeff.tasks if name in tfeff.tasks.__all__ else tfeff.training, name)
    gc.freeze()  # The collector need not look at all that in every fork.


@dataclasses.dataclass
class Start:
    """How a start ended, what it changed on the disk, and how long it computed."""

    status: int
    changes: list[tuple[str, str]]
    seconds: float


class Recipe:
    """A command of `tfeff` with its flags, all but `--run_dir`."""

    def __init__(self, command: str, flags: list[str], folder: Path):
        self.arguments = ["tfeff", command, *flags, f"--run_dir={folder / 'run'}"]
        self.directory = folder / "run"
        self.log = folder / "log"
        self.starts = 0

    def start(
        self,
        dies_before: Callable[[int, str, str], bool] | None = None,
        dies_after_seconds: float = 0,
    ) -> Start:
        """Runs it in a fork, which may die before a change, or after some seconds.

        Args:
            dies_before: called with the number of a change of files, its kind and its
                path, tells whether to die before it.
            dies_after_seconds: seconds of computing; 0 for ever.
        """
        self.starts += 1
        read, write = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(read)
            self._run(write, dies_before, dies_after_seconds)
        os.close(write)
        with open(read, encoding="utf-8") as file:
            lines = file.read().splitlines()
        _, status, usage = os.wait4(process, 0)
        changes = [tuple(line.split("\t")) for line in lines]
        status = os.waitstatus_to_exitcode(status)
        return Start(status, changes, usage.ru_utime + usage.ru_stime)

    def _run(self, report, dies_before, dies_after_seconds):
        number = 0

        def hook(event, arguments):
            nonlocal number
            if event == "open":
                if not (isinstance(arguments[2], int) and arguments[2] & WRITING):
                    return
            elif event not in CHANGES:
                return
            path = str(arguments[1] if event == "os.rename" else arguments[0])
            if not path.startswith(str(self.directory)):
                return
            path = re.sub(r"\.partial-\w+", ".partial-", path)  # It is random.
            if dies_before is not None and dies_before(number, event, path):
                os.kill(os.getpid(), signal.SIGKILL)
            number += 1
            os.write(report, f"{event}\t{path}\n".encode())

        log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.addaudithook(hook)
        if dies_after_seconds:
            signal.setitimer(signal.ITIMER_PROF, dies_after_seconds)
        sys.argv = self.arguments
        runpy.run_module("tfeff", run_name="__main__")
        sys.exit()


_NAMED = ("preset/config.json", "preset/task.json")


def contents(directory: Path) -> dict[str, object]:
    """From each path of a run to what must be equal in equal runs; None: its place."""
    found = {}
    for parent, folders, names in os.walk(directory):
        for name in [*folders, *names]:
            path = Path(parent, name)
            key = str(path.relative_to(directory))
            if key.startswith("tensorboard/"):  # A file for every start.
                continue
            if name in folders:
                found[key] = None
            elif name.endswith(".keras"):
                with zipfile.ZipFile(path) as archive:
                    found[key] = weights(io.BytesIO(archive.read("model.weights.h5")))
            elif name.endswith(".safetensors"):  # Its notes are in any order.
                with safetensors.safe_open(path, "numpy") as file:
                    names = file.keys()
                    arrays = {x: file.get_tensor(x).tobytes() for x in names}
                    found[key] = [file.metadata(), arrays]
            elif name.endswith(".h5"):
                found[key] = weights(path)
            elif key in _NAMED:  # Names count through a process.
                found[key] = re.sub(r'_\d+"', '"', path.read_text())
            elif name == "SHA256SUMS":  # Digests of times of day are among them.
                files = [
                    line.split("  ", 1)[1] for line in path.read_text().split("\n")[:-1]
                ]
                found[key] = [file for file in files if "tensorboard/" not in file]
            elif name == "metadata.json":
                found[key] = {**json.loads(path.read_bytes()), "date_saved": None}
            elif key.startswith("export/"):
                found[key] = None  # Names that count through a process.
            else:
                found[key] = path.read_bytes()
    return found


class Killer:
    """Kills a recipe again and again, and compares what it comes to in the end."""

    def __init__(self, recipe: Recipe):
        self.recipe = recipe
        self.kills = 0
        self.finished = 0
        whole = self._start()
        self.expected = contents(recipe.directory)
        self.changes, self.seconds = whole.changes, whole.seconds
        shutil.rmtree(recipe.directory)

    def before_every_rename(self):
        """Each start dies before the rename that the one before it was to do next."""
        for kind, path in [c for c in self.changes if c[0] == "os.rename"]:
            self._start(lambda _, k, p, wanted=(kind, path): (k, p) == wanted)
        self._finish()

    def at_random(self, count: int, seed: int):
        """Dies before any change of a file, or after any time."""
        rng = random.Random(seed)
        last = self.kills + count
        while self.kills < last:
            number = rng.randrange(len(self.changes))
            if rng.random() < 0.5:
                self._start(lambda n, *_, number=number: n == number)
            else:
                self._start(None, rng.uniform(0.01, self.seconds))
        self._finish()

    def _start(self, *death):
        start = self.recipe.start(*death)
        end = f"{start.status} in {start.seconds:.1f} s"
        print(f"{self.kills} kills, then {end}", file=sys.stderr, flush=True)
        if start.status in (-signal.SIGKILL, -signal.SIGPROF):
            self.kills += 1
        elif start.status == 0:
            self.finished += 1
            if death:
                self._compare()
        else:
            text = self.recipe.log.read_text(errors="replace")
            raise AssertionError(f"After {self.kills} kills: {start.status}\n{text}")
        return start

    def _finish(self):
        self._start(lambda *_: False)

    def _compare(self):
        run = self.recipe.directory
        from tfeff.training.run_seal import check_folder

        found = contents(run)
        for folder in {file.parent for file in run.rglob("SHA256SUMS")}:
            check_folder(folder)
        differs = [
            name
            for name in {*found, *self.expected}
            if name not in found
            or name not in self.expected
            or found[name] != self.expected[name]
        ]
        if differs:
            raise AssertionError(f"After {self.kills} kills these differ: {differs}")
        shutil.rmtree(run)


def main():
    """Arguments: command, folder, random kills, seed, flags as JSON."""
    command, folder, count, seed, flags = sys.argv[1:]
    import_all()
    killer = Killer(Recipe(command, json.loads(flags), Path(folder)))
    renames = sum(kind == "os.rename" for kind, _ in killer.changes)
    killer.before_every_rename()
    killer.at_random(int(count), int(seed))
    print(
        json.dumps(
            {"kills": killer.kills, "finished": killer.finished}
            | {"renames": renames, "changes": len(killer.changes)}
        )
    )


if __name__ == "__main__":
    main()
