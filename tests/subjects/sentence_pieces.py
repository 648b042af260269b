"""SentencePiece models that tfeff's own training does not make."""

import io
from collections.abc import Iterable

import sentencepiece


def trained(texts: Iterable[str], size: int, **options) -> bytes:
    """The proto of a model with `size` pieces; options as of SentencePiece."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=size,
        minloglevel=2,
        **options,
    )
    return model.getvalue()
