"""A recipe's message about texts with unknown tokens."""

import itertools
from collections.abc import Iterable, Mapping

import keras_hub
import numpy as np

from tfeff.data.finetuning.encoding import encode, unknown_id
from tfeff.data.text.documents import encoded

# Rare characters and names are a far smaller share of the tokens.
_TOLD = 0.05
# So many documents of a corpus are read, and so many characters of each.
_DOCUMENTS, _CHARACTERS = 200, 1000


def print_unknown(
    parts: Mapping[str, np.ndarray], tokenizer: keras_hub.tokenizers.Tokenizer
) -> None:
    """Prints how many tokens are unknown, if many are.

    Args:
        parts: the token ids of parts of one data set, by what they are called.
        tokenizer: that of the ids.
    """
    unknown = unknown_id(tokenizer)
    counts = {name: np.count_nonzero(ids == unknown) for name, ids in parts.items()}
    shares = {name: count / max(parts[name].size, 1) for name, count in counts.items()}
    told = [f"{share:.0%} ({name})" for name, share in shares.items() if share > _TOLD]
    if unknown is not None and told:
        print(
            f"Many tokens are unknown to the tokenizer: {', '.join(told)}. Its "
            "vocabulary may be of another language, or of lowercase text alone"
        )


def print_unknown_in_corpus(
    documents: Iterable[str], tokenizer: keras_hub.tokenizers.Tokenizer
) -> None:
    """Prints how many tokens of the first documents are unknown, if many are.

    Args:
        documents: of any length; blank ones do not count.
        tokenizer: of their sequences; nothing is printed of one that knows all text.
    """
    if unknown_id(tokenizer) is None:
        return
    first = itertools.islice(encoded(documents), _DOCUMENTS)
    begins = (text[:_CHARACTERS] for text, _ in first)
    if texts := [text for text in begins if text.strip()]:
        ids = encode(tokenizer, texts).flat_values.numpy()
        print_unknown({"of the first documents": ids}, tokenizer)
