"""A recipe's message about texts that are longer than its rows."""

from collections.abc import Mapping

from tfeff.data.finetuning.sentence_features import SentenceFeatures
from tfeff.data.finetuning.text_features import TextFeatures
from tfeff.data.finetuning.token_features import TokenFeatures


def print_long(
    parts: Mapping[str, TextFeatures | SentenceFeatures | TokenFeatures],
) -> None:
    """Prints how many examples are longer than a row, if any are.

    Args:
        parts: the features of parts of one data set, by what they are called.
    """
    told = []
    for name, rows in parts.items():
        if isinstance(rows, TokenFeatures):
            count, total = rows.num_divided, len(rows.examples)
            follows = "are read in several rows, without the words of the others"
        else:
            count, total = rows.num_cut, len(rows)
            follows = "lose their ends"
        if count:
            told.append(f"{count:,} of {total:,} {name}")
    if told:
        print(
            f"{', '.join(told)} are longer than {rows.sequence_length:,} tokens and "
            f"{follows}; --sequence_length gives more"
        )
