"""Text of the recipes: documents by name, and as caches of tokens."""

import itertools
import os
from collections.abc import Sequence

import tfeff
from tfeff.data.text.corpus import Corpus

# To train on, and to validate by.
_CACHES = ("train", "validation")


def corpus(names: Sequence[str], settings) -> Corpus:
    """Documents by the names that the settings named `corpus` take, in their order.

    Args:
        names: the names.
        settings: they have `max_characters` and `text_field`.
    """
    groups = [(kind, list(group)) for kind, group in itertools.groupby(names, _kind)]
    read = {
        "docstrings": lambda _: tfeff.data.docstrings(
            max_characters=settings.max_characters
        ),
        "tfds": lambda group: _each(
            group, lambda name: tfeff.data.tfds(name, feature=settings.text_field)
        ),
        "hf": lambda group: _each(
            group,
            lambda name: tfeff.data.hugging_face(_load(name), settings.text_field),
        ),
        "json_lines": lambda group: tfeff.data.json_lines(group, settings.text_field),
        "parquet": lambda group: tfeff.data.parquet(group, settings.text_field),
        "text": tfeff.data.text_files,
    }
    corpora = [read[kind](group) for kind, group in groups]
    return Corpus(lambda: itertools.chain(*corpora))


def _kind(name):
    if name == "docstrings":
        return name
    scheme = name.partition(":")[0]
    if scheme in ("tfds", "hf"):
        return scheme
    if name.endswith((".jsonl", ".jsonl.gz", ".json.gz")):
        return "json_lines"
    return "parquet" if name.endswith(".parquet") else "text"


def _each(names, read):
    corpora = [read(name.partition(":")[2]) for name in names]
    return Corpus(lambda: itertools.chain(*corpora))


def _load(name):
    """A Hugging Face data set: a folder of `save_to_disk`, or its training split."""
    try:
        import datasets
    except ImportError as error:
        raise ValueError(
            f"`corpus` needs Hugging Face's data sets for hf:{name}: "
            "pip install datasets"
        ) from error
    try:
        if os.path.isdir(name):
            return datasets.load_from_disk(name)
        path, _, configuration = name.partition(":")
        return datasets.load_dataset(
            path, configuration or None, split="train", streaming=True
        )
    except Exception as error:  # Errors of many libraries.
        raise ValueError(
            "`corpus` must name a data set with a training split, or a folder of "
            f"`save_to_disk`. Received: hf:{name}: {error}"
        ) from error


def split_corpus(names: Sequence[str], settings):
    """Documents to train on and to validate by, of one corpus.

    Args:
        names: as of `corpus`.
        settings: as of `corpus`; they have `validation_fraction`, too.

    Raises:
        ValueError: if there are too few documents for both.
    """
    validation_fraction = settings.validation_fraction
    parts = tfeff.data.split(corpus(names, settings), validation_fraction)
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
    trained, validated = (
        tfeff.data.build_cache(
            documents,
            tokenizer,
            run.path("cache", name),
            sequence_length,
            cross_documents=cross_documents,
        )
        for name, documents in zip(_CACHES, (train, validation))
    )
    print(
        f"training text: {trained.num_tokens:,} tokens; "
        f"validation text: {validated.num_tokens:,} tokens"
    )
    return trained, validated


def open_caches(
    run: tfeff.training.RunDirectory, tokenizer
) -> tuple[tfeff.data.Cache, tfeff.data.Cache]:
    """The caches that `build_caches` has made or verified in another process."""
    train, validation = (
        tfeff.data.open_cache(run.path("cache", name), tokenizer, verify=False)
        for name in _CACHES
    )
    return train, validation
