"""Tokenizers that are made from the files of a vocabulary."""

import os
from collections.abc import Callable
from typing import Any

import keras_hub

from tfeff.convert.config import Config
from tfeff.convert.reading import read_json, read_text
from tfeff.convert.same_ids import is_special
from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer


def byte_pairs(
    path: str, add_prefix_space: bool, compared: bool
) -> keras_hub.tokenizers.Tokenizer:
    """The byte-level BPE of a vocabulary and of the `merges.txt` beside it.

    Args:
        path: the vocabulary.
        add_prefix_space: whether a text gets a space before its first word.
        compared: whether another library reads all of the rules, too.

    Raises:
        ValueError: if there is none.
    """
    vocabulary = read_json(path)
    rules = os.path.join(os.path.dirname(path), "merges.txt")
    if not os.path.exists(rules):
        raise ValueError(f"{path!r} must lie beside its 'merges.txt'. That is missing")
    merges = read_text(rules).split("\n")
    # transformers 4 leave out the first line and what follows the last line break.
    if not compared and (merges[-1] or not merges[0].startswith("#version")):
        raise ValueError(
            f"{rules!r} must begin with a line '#version: 0.2' and end with a line "
            "break, or transformers leave out a rule. It does not"
        )
    merges = [rule for rule in merges if rule and not rule.startswith("#version")]
    return named_after_file(
        path,
        "byte-level BPE",
        RobertaTokenizer,
        vocabulary,
        merges,
        add_prefix_space,
    )


def named_after_file(path: str, what: str, make: Callable, *args, **kwargs) -> Any:
    """The result of a function of a file's content; its errors name the file."""
    try:
        return make(*args, **kwargs)
    except Exception as error:  # From SentencePiece, protobuf, TensorFlow, KerasHub.
        raise ValueError(
            f"{path!r} must describe a {what} that tfeff supports. It does not: {error}"
        ) from error


def lines(path: str) -> list[str]:
    """The lines of a vocabulary, each of which must be another token."""
    vocabulary = read_text(path).split("\n")
    if vocabulary[-1] == "":
        vocabulary.pop()
    _check_distinct(path, vocabulary)
    return vocabulary


def word_piece(
    path: str, vocabulary: list[str], config: Config, compose: bool
) -> BertTokenizer:
    """The WordPiece tokenizer of a vocabulary.

    Args:
        path: the file, for messages.
        vocabulary: the pieces.
        config: the settings, named as in `tokenizer_config.json`.
        compose: as of `BertTokenizer`.

    Raises:
        ValueError: if there is none.
    """
    config.only("do_basic_tokenize", True, default=True)
    config.only("never_split", None, [], default=None)
    config.only("wordpieces_prefix", "##", default="##")
    config.only("clean_text", True, default=True)
    # An uncased vocabulary has capitals only in its special tokens: the Chinese one of
    # BERT's authors has <S> and <T>.
    cased = any(token != token.lower() for token in vocabulary if not is_special(token))
    lowercase = config.only("do_lower_case", True, False, default=not cased)
    strip_accents = config.only("strip_accents", True, False, None, default=None)
    strip_accents = lowercase if strip_accents is None else strip_accents
    try:
        return BertTokenizer(
            vocabulary,
            lowercase=lowercase,
            compose=compose or strip_accents,  # It changes nothing there.
            strip_accents=strip_accents,
            split_on_cjk=config.only(
                "tokenize_chinese_chars", True, False, default=True
            ),
        )
    except Exception as error:  # From tensorflow-text, TensorFlow or KerasHub.
        raise ValueError(
            f"{path!r} must be the vocabulary of a BERT. It is not: {error}"
        ) from error


def _check_distinct(path, vocabulary):
    lines = {}
    for number, token in enumerate(vocabulary, 1):
        if token in lines:
            raise ValueError(
                f"{path!r} must hold each token once. It holds {token!r} in line "
                f"{lines[token]} and in line {number}"
            )
        lines[token] = number
