"""`python -m tests.subjects.full_disk_preset FOLDER`: a preset without room, and with.

See `tests.subjects.full_disk`.
"""

import os
import resource
import sys

import tfeff
from tests.subjects.sentences import tokenizer

LIMIT, HARD = resource.getrlimit(resource.RLIMIT_FSIZE)

if __name__ == "__main__":
    path = os.path.join(sys.argv[1], "preset")
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=60, max_sequence_length=8
    )
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, HARD))
    try:
        tfeff.tasks.save_pretrained(encoder, tokenizer(), path)
    except OSError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, HARD))
    tfeff.tasks.save_pretrained(encoder, tokenizer(), path)
    print("saved when there is room")
