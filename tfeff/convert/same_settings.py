"""Comparison of tokenizer.json with the tokenizer made of the vocabulary."""

import os
from collections.abc import Iterator

import numpy as np

from tfeff.convert.config import Config
from tfeff.convert.json_tokenizer import TokenizerJson, check_frame, composing
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
    path = os.path.join(directory, "tokenizer.json")
    if not os.path.exists(path):
        return
    file = Config.read(path).values
    _check(path, "bert", lambda: _word_piece(file, tokenizer, config))
    check_frame(path, "bert", file.get("post_processor"), tokenizer)


def check_unigram_json(file: TokenizerJson, described: TokenizerJson) -> None:
    """Raises if `tokenizer.json` has other pieces or settings than `spiece.model`.

    Args:
        file: `tokenizer.json`, which counts.
        described: what the SentencePiece model and `tokenizer_config.json` mean.

    Raises:
        ValueError: if it has; it names the differences.
    """
    values, expected = file.values, described.values
    _check(file.path, described.family, lambda: _unigram(values, expected))


def _check(path, family, compare):
    try:
        different = [what for what, differs in compare() if differs]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(
            f"{path!r} must describe a tokenizer of {family.upper()}. It does not: "
            f"{error!r}"
        ) from error
    if different:
        raise ValueError(
            f"{path!r} must describe the same tokenizer as the vocabulary and "
            f"'tokenizer_config.json'. It has another {', '.join(different)}"
        )


def _word_piece(file, tokenizer, config) -> Iterator[tuple[str, bool]]:
    model, (_, normalizer) = file["model"], composing(file["normalizer"])
    pieces = {token: index for index, token in enumerate(tokenizer.get_vocabulary())}
    yield "vocabulary", model["vocab"] != pieces
    for name, value in (
        ("type", "WordPiece"),  # Earlier versions lack it.
        ("unk_token", "[UNK]"),
        ("continuing_subword_prefix", "##"),
        ("max_input_chars_per_word", 100),
    ):
        yield name, model.get(name, value) != value
    yield "normalizer", normalizer["type"] != "BertNormalizer"
    yield "clean_text", normalizer["clean_text"] is not True
    # In Hugging Face, tokenizer_config.json takes precedence over this file.
    lowercase = config.get("do_lower_case", normalizer["lowercase"])
    yield "lowercase", lowercase is not tokenizer.to_lower
    yield "pre_tokenizer", file["pre_tokenizer"]["type"] != "BertPreTokenizer"


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
