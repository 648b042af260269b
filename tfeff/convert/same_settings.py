"""Comparison of tokenizer.json with the tokenizer made of the vocabulary."""

from collections.abc import Iterator

import numpy as np

from tfeff.convert.config import Config
from tfeff.convert.json_tokenizer import TokenizerJson, check_frame
from tfeff.convert.sentencepiece_json import UNUSED_SCORE


def check_word_piece_json(directory: str, tokenizer, config: Config) -> None:
    """Raises if `tokenizer.json` describes another tokenizer than `vocab.txt`.

    Hugging Face's fast tokenizers read this file, its slow ones the vocabulary.

    Args:
        directory: the checkpoint's folder.
        tokenizer: the KerasHub tokenizer made of the vocabulary.
        config: the settings that the tokenizer was made by.

    Raises:
        ValueError: if it does; it names the differences.
    """
    file = TokenizerJson.find(directory)
    if file is None:
        return
    # In Hugging Face, tokenizer_config.json takes precedence over this file.
    settings = config.with_defaults(**file.word_piece_settings())
    lowercase = settings.get("do_lower_case") is not tokenizer.to_lower
    vocabulary = file.vocabulary != list(tokenizer.get_vocabulary())
    _raise_if(file.path, [("vocabulary", vocabulary), ("lowercase", lowercase)])
    check_frame(file.path, "bert", file.values.get("post_processor"), tokenizer)


def check_unigram_json(file: TokenizerJson, described: TokenizerJson) -> None:
    """Raises if `tokenizer.json` has other pieces or settings than `spiece.model`.

    Args:
        file: `tokenizer.json`, which takes precedence.
        described: what the SentencePiece model and `tokenizer_config.json` mean.

    Raises:
        ValueError: if it has; it names the differences.
    """
    path = file.path
    try:
        compared = list(_unigram(file.values, described.values))
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path!r} must describe a tokenizer of {described.family.upper()}. It "
            f"does not: {error!r}"
        ) from error
    _raise_if(path, compared)


def _raise_if(path, compared):
    """Raises naming those of the pairs' things that differ."""
    different = [what for what, differs in compared if differs]
    if different:
        raise ValueError(
            f"{path!r} must describe the same tokenizer as the vocabulary and "
            f"'tokenizer_config.json'. It has another {', '.join(different)}"
        )


def _unigram(file, expected) -> Iterator[tuple[str, bool]]:
    pieces, scores = zip(*file["model"]["vocab"])
    expected_pieces, expected_scores = zip(*expected["model"]["vocab"])
    yield "vocabulary", pieces != expected_pieces
    # Versions differ in the scores of numbers with a comma, which are lowered.
    compared = np.array(
        [p for p in zip(scores, expected_scores) if p[1] > UNUSED_SCORE]
    )
    close = np.allclose(compared[:, 0], compared[:, 1], 1e-5, 1e-5)
    yield "score of a piece", not close
    steps, expected_steps = _kinds(file), _kinds(expected)
    for what, kind in ("lowercase", "Lowercase"), ("accents", "StripAccents"):
        yield what, (kind in steps) is not (kind in expected_steps)


def _kinds(file):
    """The kinds of a normalizer's steps."""
    normalizer = file["normalizer"]
    return {step["type"] for step in normalizer.get("normalizers", [normalizer])}
