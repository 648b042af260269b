"""The right of one process to write to a remote folder, until it stops renewing it.

A lease is an object with a number. Who takes it over makes the object with the next
number, which only one can; the holder alone writes to its own again. So a conditional
write of a new object is all that a storage has to have. Ages are by its own clock.
"""

import contextlib
import json
import re
import secrets
import threading
import time

from tfeff.storage.place import Place
from tfeff.utils.holder import described, this_process
from tfeff.utils.job_output import say

FOLDER = "tfeff-lease"
SECONDS = 60.0  # without being renewed, after which a lease may be taken over
_RENEWALS = 6  # in that time
_LOOKS = 10  # at a lease that is being written
_SETTLE = 0.5  # seconds until a storage without conditional writes shows the last one


class Lease:
    """A lease of a remote folder, renewed by a thread.

    Args:
        place: the folder.
        copy: where on this machine its files are, for the error of `check`.

    Raises:
        ValueError: if another process has it and renews it; the message tells which.
    """

    def __init__(self, place: Place, copy: str | None = None):
        self._place, self._copy = place, copy
        self._holder = {"id": secrets.token_hex(8), **this_process()}
        # On some storages a file that is being written again is empty for a moment.
        self._at_work = threading.Lock()
        self._number = self._take()
        self._renewed, self._renewals = time.monotonic(), 0
        self._lost: str | None = None
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    @property
    def object(self) -> str:
        """The name of the object that this process renews, for `holder_id`."""
        return _name(self._number)

    @property
    def is_lost(self) -> bool:
        """Whether another process has taken it over, as far as it was seen."""
        return self._lost is not None

    def check(self) -> None:
        """Raises unless the lease is still this process's.

        Raises:
            ValueError: if another process has taken it over; it tells which.
            ValueError, OSError: if that cannot be seen, or a lease that is too old not
                be renewed.
        """
        self._look()
        if self._is_old() and self._lost is None:
            self._write_again()
            self._look()  # It may have been taken over just before.
        if self._lost is not None:
            here = self._copy and f". What this machine has of it is in {self._copy}"
            raise ValueError(
                f"`{self._place.name}` has been taken over by {self._lost}, as this "
                f"process did not renew its lease for {SECONDS:.0f} seconds. Received: "
                f"{self._place.name}={self._place.url!r}{here or ''}"
            )

    def release(self) -> None:
        """Gives the folder back."""
        if not self._released.is_set():
            self._released.set()
            self._thread.join()
            # The number stays: a later lease must have a higher one. Where it cannot be
            # given back, it ends by itself when it is not renewed.
            with contextlib.suppress(OSError, ValueError):
                if self._lost is None and self._is_ours():
                    self._write(self._number, {**self._holder, "released": True})

    def _take(self) -> int:
        told = False
        seen: object = None
        while True:
            number = max(self._numbers(), default=0)
            holder = self._read(number)
            if holder is None or holder.get("released") or self._age(number) > SECONDS:
                if self._create(number + 1):
                    return number + 1
                continue
            renewed = (number, holder.get("renewed"))
            if seen not in (None, renewed):
                raise ValueError(
                    f"`{self._place.name}` must not be in use. Received: "
                    f"{self._place.name}={self._place.url!r}, in which "
                    f"{described(holder)} is at work. Wait for its end, or use another "
                    "one."
                )
            if not told:
                told = True
                say(
                    f"{self._place.url} was left by {described(holder)}, or is in use: "
                    f"waiting up to {SECONDS:.0f} seconds to see which"
                )
            seen = renewed
            time.sleep(SECONDS / _RENEWALS / 4)

    def _create(self, number):
        """Whether this process is the one that made the lease of the number."""
        try:
            self._write(number, self._holder, create=True)
        except FileExistsError:
            return False
        time.sleep(_SETTLE if self._place.scheme not in ("s3", "s3a", "gs") else 0)
        numbers = self._numbers()
        if self._read(number) != self._holder or max(numbers, default=0) > number:
            return False
        for old in numbers:
            if old < number:
                self._place.remove(_name(old))
        return True

    def _renew(self):
        told = False
        while not self._released.wait(SECONDS / _RENEWALS):
            try:
                if not self._is_ours():
                    self._lost = described(self._read(max(self._numbers(), default=0)))
                    return
                self._write_again()
                told = False
            except (OSError, ValueError) as error:
                if self._is_old() and not told:
                    told = True
                    say(
                        f"The lease of {self._place.url} cannot be renewed: "
                        f"{str(error).rstrip('.')}. It is tried again."
                    )

    def _look(self):
        if self._lost is None:
            newest = max(self._numbers(), default=0)
            if newest > self._number or not self._is_ours():
                self._lost = described(self._read(newest))

    def _is_old(self):
        """Whether others may take it over."""
        return time.monotonic() - self._renewed > SECONDS

    def _write_again(self):
        self._renewals += 1
        self._write(self._number, {**self._holder, "renewed": self._renewals})
        self._renewed = time.monotonic()

    def _is_ours(self):
        with self._at_work:
            holder = self._read(self._number)
        return holder is not None and holder.get("id") == self._holder["id"]

    def _numbers(self):
        found = (
            re.fullmatch(rf"{FOLDER}/(\d+)\.json", x)
            for x in self._place.files_in(FOLDER)
        )
        return [int(match[1]) for match in found if match]

    def _read(self, number) -> dict | None:
        return _read(self._place, _name(number)) if number else None

    def _write(self, number, holder, create=False):
        with self._at_work:
            content = json.dumps(holder).encode()
            self._place.write(_name(number), content, create=create)

    def _age(self, number):
        try:
            return self._place.age(_name(number))
        except FileNotFoundError:
            return 0.0  # It was taken over; the next look tells.


def holder_id(place: Place, name: str) -> str | None:
    """A digest that identifies the holder of a lease; None if it is not there.

    It tells whether processes, also of several machines, see the same place.

    Args:
        place: the folder.
        name: the lease's `object`.
    """
    for _ in range(_LOOKS):
        holder = _read(place, name)
        if holder != {}:
            break
        time.sleep(_SETTLE)
    return (holder or {}).get("id")


def _read(place, name) -> dict | None:
    content = place.read(name)
    if content is None:
        return None
    try:
        return dict(json.loads(content))
    except (RecursionError, TypeError, ValueError):
        return {}  # It is being written.


def _name(number):
    return f"{FOLDER}/{number:08d}.json"
