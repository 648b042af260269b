"""A recipe's message about texts that are in several parts of a data set."""

import itertools
from collections.abc import Mapping
from typing import Any


def print_shared(parts: Mapping[str, Any]) -> None:
    """Prints how many texts two parts share: one does not judge the other then.

    Args:
        parts: examples by the names of their parts.
    """
    texts = {name: set(examples.contents()) for name, examples in parts.items()}
    for (one, known), (other, found) in itertools.combinations(texts.items(), 2):
        if shared := len(known & found):
            print(
                f"{shared:,} of {len(found):,} different texts of {other} are in "
                f"{one}, too"
            )
