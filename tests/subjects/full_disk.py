"""`python -m tests.subjects.full_disk FOLDER...`: caches that the disk has no room for.

The limit on the size of files is the only full disk that needs no mount. It holds for a
whole process, so it is not that of other tests.
"""

import resource
import sys

from tests.subjects.corpus import make_documents
from tests.subjects.sentences import tokenizer
from tfeff.data import build_cache
from tfeff.data.cache import layout

LIMIT, HARD = resource.getrlimit(resource.RLIMIT_FSIZE)


class FillsUp(list):
    """Documents; from the first on, no file may have more than 4096 bytes."""

    def __iter__(self):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, HARD))
        return super().__iter__()


if __name__ == "__main__":
    layout.SIZES = layout.ShardSizes(first=20_000)
    documents = FillsUp(make_documents(300, 100))
    for num_threads, folder in enumerate(sys.argv[1:], 1):
        try:
            build_cache(documents, tokenizer(), folder, 16, num_threads=num_threads)
        except OSError as error:
            print(error)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, HARD))
