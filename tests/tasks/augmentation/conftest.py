"""The tests of `tfeff.tasks.augmentation` share a corpus and its tokenizer."""

from tests.subjects.corpus import documents, revived, tokenizer

__all__ = ["documents", "revived", "tokenizer"]
