"""Text to tokens to a cache on disk to masked batches.

A corpus (`docstrings`, `text_files`, `tfds`, or any list of strings) trains a
tokenizer (`train_tokenizer`); both make a cache of token ids (`build_cache`),
from which any number of runs read batches (`Cache.masked_lm`, `permutation_lm`,
`sentence_pairs`).

The examples of fine-tuning tasks come from their published files (`read_glue`,
`read_superglue`, `read_race`, `read_squad`, `read_mrqa`). Texts, pairs and options
become rows of tokens (`text_features`). Questions and passages
become windows of tokens (`make_span_features`), and logits for them become answers
(`best_spans`). More examples come from replacing words (`augment`).

The names are imported when first used: the processes that write a cache import
this package too, and must not wait for TensorFlow.
"""

import importlib

_HOMES = {
    "augment": "augmentation",
    "build_cache": "build",
    "Cache": "cache",
    "damage_named": "cache",
    "open_cache": "cache",
    "split": "corpora",
    "text_files": "corpora",
    "tfds": "corpora",
    "docstrings": "docstring_corpus",
    "ChoiceExamples": "examples",
    "Question": "examples",
    "TextExamples": "examples",
    "read_glue": "glue",
    "mask_tokens": "masking",
    "read_mrqa": "mrqa",
    "read_race": "race",
    "best_spans": "span_answers",
    "make_span_features": "span_features",
    "read_squad": "squad",
    "read_superglue": "superglue",
    "text_features": "text_features",
    "permute_targets": "permutation",
    "load_tokenizer": "tokenizers",
    "save_tokenizer": "tokenizers",
    "tokenizer_fingerprint": "tokenizers",
    "train_tokenizer": "tokenizers",
    "WordVectors": "word_vectors",
    "read_word_vectors": "word_vectors",
    "word_starts": "word_masking",
}

__all__ = list(_HOMES)


def __getattr__(name: str):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
