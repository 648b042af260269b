"""The tokenizers that checkpoints come with, as KerasHub's."""

import os

import keras_hub

from tfeff.convert.bert_tokenizer import BertTokenizer
from tfeff.convert.config import Config
from tfeff.convert.sentencepiece_rules import with_rules
from tfeff.convert.xlnet_tokenizer import XLNetTokenizer

_MODELS = {"albert": ("spiece.model", "30k-clean.model"), "xlnet": ("spiece.model",)}


def make_tokenizer(
    directory: str, family: str
) -> keras_hub.tokenizers.Tokenizer | None:
    """The tokenizer in a checkpoint's folder.

    Args:
        directory: the folder, with `vocab.txt` or `spiece.model` and, of Hugging
            Face, `tokenizer_config.json`.
        family: `"bert"` for WordPiece, `"albert"` or `"xlnet"` for SentencePiece.

    Returns:
        The tokenizer, or `None` where the folder has no vocabulary.

    Raises:
        ValueError: if a file is damaged, or asks for something that KerasHub's
            tokenizers do not have.
    """
    settings = os.path.join(directory, "tokenizer_config.json")
    config = Config.read(settings) if os.path.exists(settings) else Config({}, settings)
    if family == "bert":
        return _word_piece(os.path.join(directory, "vocab.txt"), config)
    for name in _MODELS[family]:
        path = os.path.join(directory, name)
        if os.path.exists(path):
            return _sentence_piece(path, family, config)
    return None


def _word_piece(path, config):
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        vocabulary = [line.rstrip("\n") for line in file]
    config.only("do_basic_tokenize", True, default=True)
    config.only("never_split", None, [], default=None)
    # An uncased vocabulary has capitals in its special tokens alone.
    cased = any(token != token.lower() for token in vocabulary if token[:1] != "[")
    lowercase = config.only("do_lower_case", True, False, default=not cased)
    strip_accents = config.only("strip_accents", True, False, None, default=None)
    try:
        return BertTokenizer(
            vocabulary,
            lowercase=lowercase,
            strip_accents=lowercase if strip_accents is None else strip_accents,
            split_on_cjk=config.only(
                "tokenize_chinese_chars", True, False, default=True
            ),
        )
    except ValueError as error:
        raise ValueError(
            f"{path!r} must be the vocabulary of a BERT. It is not: {error}"
        ) from error


def _sentence_piece(path, family, config):
    with open(path, "rb") as file:
        proto = file.read()
    config.only("remove_space", True, default=True)
    lowercase = config.only("do_lower_case", True, False, default=family == "albert")
    keep_accents = config.only("keep_accents", True, False, default=False)
    make = {"albert": keras_hub.tokenizers.AlbertTokenizer, "xlnet": XLNetTokenizer}
    try:
        return make[family](with_rules(proto, lowercase, keep_accents))
    except Exception as error:  # Of SentencePiece, protobuf, TensorFlow or KerasHub.
        raise ValueError(
            f"{path!r} must be the SentencePiece model of an {family.upper()}. It is "
            f"not: {error}"
        ) from error
