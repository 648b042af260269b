"""A worker of a run at a URL, which may kill itself while it publishes.

`python -m tests.subjects.s3_worker` is the command `tfeff`, whose leases expire early.
"""

import os
import sys

from tests.training import run_worker
from tfeff.__main__ import main as command
from tfeff.storage import lease, publishing, remote_run
from tfeff.storage.manifest import NAME

UPLOAD, MANIFEST = "in the upload of ", "before the manifest with "


def main(config, url, phase, log, dropout, variables):
    """As `run_worker.main`, with environment variables of the worker's own.

    There are two more phases: `UPLOAD` or `MANIFEST`, and the name of a file.
    """
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    _hurry()
    _kill_at(phase)
    run_worker.main(config, url, phase, log, dropout)


def _hurry():
    lease.SECONDS, lease._RENEWALS = 6.0, 20
    remote_run.WATCH_SECONDS = 0.1


def _kill_at(phase):
    write, put = publishing.Place.write, publishing.Place.put

    def killing_write(place, name, content, create=False):
        wanted = phase.removeprefix(MANIFEST).encode()
        if phase.startswith(MANIFEST) and name == NAME and wanted in content:
            run_worker.die()
        write(place, name, content, create)

    def killing_put(place, path, name):
        if phase == UPLOAD + name.partition("~")[0]:
            run_worker.die()
        put(place, path, name)

    publishing.Place.write, publishing.Place.put = killing_write, killing_put


if __name__ == "__main__":
    _hurry()
    sys.exit(command())
