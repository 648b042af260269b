"""Text of the recipes: documents by name, and as caches of tokens."""

from collections.abc import Sequence

import tfeff


def corpus(names: Sequence[str], max_characters: int):
    """Documents by the names that the settings `corpus` take."""
    if tuple(names) == ("docstrings",):
        return tfeff.data.docstrings(max_characters=max_characters)
    if len(names) == 1 and names[0].startswith("tfds:"):
        return tfeff.data.tfds(names[0].removeprefix("tfds:"))
    return tfeff.data.text_files(list(names))


def split_corpus(names: Sequence[str], max_characters: int, validation_fraction: float):
    """Documents to train on and to validate by, of one corpus.

    Raises:
        ValueError: if there are too few documents for both.
    """
    parts = tfeff.data.split(corpus(names, max_characters), validation_fraction)
    if any(next(iter(part), None) is None for part in parts):
        count = sum(1 for part in parts for _ in part)
        raise ValueError(
            "`validation_fraction` must leave documents to train on and to validate "
            f"by. Received: {validation_fraction=} of {count} documents."
        )
    return parts


def build_caches(
    run: tfeff.training.RunDirectory,
    train,
    validation,
    tokenizer,
    sequence_length: int,
    cross_documents: bool = False,
) -> tuple[tfeff.data.Cache, tfeff.data.Cache]:
    """The run's caches of the text to train on, and of that to validate by."""
    caches = tuple(
        tfeff.data.build_cache(
            documents,
            tokenizer,
            run.path("cache", name),
            sequence_length,
            cross_documents=cross_documents,
        )
        for name, documents in (("train", train), ("validation", validation))
    )
    print(
        f"training text: {caches[0].num_tokens:,} tokens; "
        f"validation text: {caches[1].num_tokens:,} tokens"
    )
    return caches
