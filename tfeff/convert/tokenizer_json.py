"""Comparison of tokenizer.json with the tokenizer made of the vocabulary."""

import os
from collections.abc import Iterator

import numpy as np
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff.convert.config import Config
from tfeff.convert.json_tokenizer import check_frame, composing


def check_tokenizer_json(
    directory: str, family: str, tokenizer, config: Config
) -> None:
    """Raises if `tokenizer.json` describes another tokenizer.

    Hugging Face's fast tokenizers read this file, its slow ones the vocabulary.

    Args:
        directory: the checkpoint's folder.
        family: `"bert"`, `"albert"` or `"xlnet"`.
        tokenizer: the KerasHub tokenizer made of the vocabulary.
        config: `tokenizer_config.json`.

    Raises:
        ValueError: if it does; it names the differences.
    """
    path = os.path.join(directory, "tokenizer.json")
    if not os.path.exists(path):
        return
    file = Config.read(path).values
    try:
        comparisons = (
            _word_piece(file, tokenizer, config)
            if family == "bert"
            else _sentence_piece(file, tokenizer, config, family)
        )
        different = [what for what, differs in comparisons if differs]
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
    check_frame(path, family, file.get("post_processor"), tokenizer)


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


def _sentence_piece(file, tokenizer, config, family) -> Iterator[tuple[str, bool]]:
    model = file["model"]
    yield "type", model.get("type", "Unigram") != "Unigram"
    pieces = ModelProto.FromString(tokenizer.proto).pieces
    yield (
        "vocabulary",
        [token for token, _ in model["vocab"]] != [piece.piece for piece in pieces],
    )
    # Hugging Face gives pieces that end in a digit and a comma another score here.
    scores = np.array(
        [
            (score, piece.score)
            for (_, score), piece in zip(model["vocab"], pieces)
            if piece.type != ModelProto.SentencePiece.UNUSED
        ]
    )
    yield "score of a piece", not np.allclose(scores[:, 0], scores[:, 1], 1e-5, 1e-5)
    normalizer = file["normalizer"]
    steps = {step["type"] for step in normalizer.get("normalizers", [normalizer])}
    lowercase = config.get("do_lower_case", family == "albert")
    yield "lowercase", ("Lowercase" in steps) is not lowercase
    keep_accents = config.get("keep_accents", False)
    yield "accents", ("StripAccents" in steps) is keep_accents
