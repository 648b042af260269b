"""What a recipe says of texts that its tokenizer does not know."""

from collections.abc import Mapping

import keras_hub
import numpy as np

from tfeff.data.finetuning.encoding import unknown_id

_TOLD = 0.05  # Of the tokens: far more than rare characters and names give.


def print_unknown(
    parts: Mapping[str, np.ndarray], tokenizer: keras_hub.tokenizers.Tokenizer
) -> None:
    """Prints how many tokens are unknown, if many are.

    Args:
        parts: the token ids of parts of one data set, by what they are called.
        tokenizer: that of the ids.
    """
    unknown = unknown_id(tokenizer)
    shares = {name: np.mean(ids == unknown) for name, ids in parts.items()}
    told = [f"{share:.0%} ({name})" for name, share in shares.items() if share > _TOLD]
    if unknown is not None and told:
        print(
            f"Many tokens are unknown to the tokenizer: {', '.join(told)}. Its "
            "vocabulary may be of another language, or of lowercase text alone"
        )
