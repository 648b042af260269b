"""Who holds a lock or a lease: a process, on which machine and since when."""

import datetime
import os
import socket
from collections.abc import Mapping


def this_process() -> dict[str, object]:
    """The note of this process as a holder from now on, for a JSON file."""
    now = datetime.datetime.now().astimezone()
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": now.isoformat(timespec="seconds"),
    }


def described(note: Mapping | None) -> str:
    """The holder in a sentence, as far as its note tells."""
    if not note or "pid" not in note:
        return "another process"
    since = f" (since {note['since']})" if "since" in note else ""
    return f"process {note['pid']} on {note.get('host')}{since}"
