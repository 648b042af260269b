"""Samples of documents, drawn by a hash of their text."""

import heapq
import os
from collections.abc import Iterable, Sequence

from tfeff.data.text.corpus import parts_of
from tfeff.data.text.documents import check_documents, encoded, hash_of
from tfeff.storage.place import Place
from tfeff.storage.shared_folder import shared_scratch
from tfeff.utils.beam import BeamJobs, check_picklable
from tfeff.utils.checks import MAX_COUNT, check_integer
from tfeff.utils.paths import check_path, is_url

_FIRST_GUESS = 2  # Workers first keep this many times the bytes wanted.


def sample(
    documents: Iterable[str],
    num_bytes: int,
    *,
    beam_flags: Sequence[str] | None = None,
    shared_folder: str | os.PathLike | None = None,
) -> list[str]:
    """Draws documents of a given size, such as to train a tokenizer on.

    The order of the documents is that of a hash of their text; the sample is the first
    of them, until they have `num_bytes`. So it does not depend on the order in which
    they are read, or on who reads them, and equal documents stay together. It does not
    depend on `tfeff.data.split` either, which has another order.

    Args:
        documents: the documents, which are read once; by Beam's workers, twice or more.
        num_bytes: bytes of text in UTF-8, at least 1. The last document may exceed
            them; fewer documents are all in the sample.
        beam_flags: as of `tfeff.data.build_cache`.
        shared_folder: with `beam_flags`, a folder that this process and Beam's workers
            see, or a URL, for files that are removed at the end; it is made if it is
            missing.

    Returns:
        The sample, in its order.

    Raises:
        ValueError: if `num_bytes` is below 1, `shared_folder` is not given with
            `beam_flags` or without them, or Beam does not know a flag or the runner.
        TypeError: if an argument has the wrong type.
        ImportError: if Beam, or what its runner needs, is not installed.
        OSError: if a pipeline fails.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(1000)]
    sample = tfeff.data.sample(documents, 4000)
    assert sample == tfeff.data.sample(documents[::-1], 4000)
    assert 4000 <= sum(map(len, sample)) < 4050
    ```
    """
    check_documents(documents)
    num_bytes = check_integer("num_bytes", num_bytes, 1, MAX_COUNT)
    if (beam_flags is None) != (shared_folder is None):
        raise ValueError(
            "`shared_folder` must be given if, and only if, `beam_flags` are. "
            f"Received: shared_folder={shared_folder!r:.80}, "
            f"beam_flags={beam_flags!r:.80}"
        )
    first = _First(num_bytes)
    if beam_flags is not None and shared_folder is not None:
        jobs, folder = BeamJobs.of(beam_flags), str(shared_folder)
        if not is_url(folder):
            folder = os.path.abspath(check_path("shared_folder", shared_folder))
            os.makedirs(folder, exist_ok=True)
        else:
            Place("shared_folder", folder).check_writable()
        return _by_beam(documents, first, jobs, folder)
    for document, text in encoded(documents):
        first.add(document, text)
    return first.documents()


class _First:
    """The first documents in the order by hash, of all that are added."""

    def __init__(self, num_bytes: int):
        self.num_bytes = num_bytes
        self.total = 0
        self._heap: list[tuple[int, int, str]] = []  # The last one is on top.

    def add(self, document: str, text: bytes) -> None:
        heapq.heappush(self._heap, (-hash_of(text), len(text), document))
        self.total += len(text)
        while self.total - self._heap[0][1] >= self.num_bytes:
            self.total -= heapq.heappop(self._heap)[1]

    def documents(self) -> list[str]:
        return [document for _, _, document in sorted(self._heap, reverse=True)]


def _by_beam(documents, first, jobs, folder) -> list[str]:
    """Workers keep what is likely to be enough; if it is not, they keep more."""
    from tfeff.data.text.beam_sample import draw, file_of, read_drawn

    parts = parts_of(documents)
    check_picklable(parts)
    files = [file_of(number) for number in range(len(parts))]
    # A local one is made beside the path.
    path = folder if is_url(folder) else os.path.join(folder, "sample")
    wanted = _FIRST_GUESS * first.num_bytes
    while True:
        with shared_scratch("shared_folder", path, files) as scratch:
            jobs.run(draw, parts, wanted, scratch)
            found = _First(first.num_bytes)
            whole = True
            for drawn in read_drawn(scratch, files):
                whole = whole and drawn.whole
                for document, text in encoded(drawn.documents):
                    found.add(document, text)
        if whole or found.total >= first.num_bytes:
            return found.documents()
        wanted *= 4
