"""Conversion of checkpoints' tokenizers to KerasHub's."""

import os

import keras_hub

from tfeff.convert import harmless
from tfeff.convert.added_tokens import check_added_tokens
from tfeff.convert.config import Config
from tfeff.convert.reading import read_bytes, read_text
from tfeff.convert.sentencepiece_charsmap import with_rules
from tfeff.convert.tokenizer_json import check_tokenizer_json
from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.xlnet_tokenizer import XLNetTokenizer

# Families of Hugging Face's classes, whose names may end in "Fast".
_FAMILIES = {
    "BertTokenizer": "bert",
    "ConvBertTokenizer": "bert",
    "DistilBertTokenizer": "bert",
    "ElectraTokenizer": "bert",
    "AlbertTokenizer": "albert",
    "XLNetTokenizer": "xlnet",
}
_VOCABULARIES = {
    "bert": ("vocab.txt",),
    "albert": ("spiece.model", "30k-clean.model"),
    "xlnet": ("spiece.model",),
}


def make_tokenizer(
    directory: str, family: str
) -> keras_hub.tokenizers.Tokenizer | None:
    """The tokenizer in a checkpoint's folder.

    Args:
        directory: the folder, with `vocab.txt` or `spiece.model` and, from Hugging
            Face, `tokenizer_config.json`.
        family: `"bert"` for WordPiece, `"albert"` or `"xlnet"` for SentencePiece, used
            if no file names a tokenizer class.

    Returns:
        The tokenizer, or `None` if the folder has no vocabulary.

    Raises:
        ValueError: if a file is damaged, asks for something that KerasHub's
            tokenizers do not have, or contradicts another.
    """
    config = _settings(directory, "tokenizer_config.json")
    family = _family(directory, config, family)
    for name in _VOCABULARIES.get(family, ()):
        path = os.path.join(directory, name)
        if os.path.exists(path):
            break
    else:
        return None
    if family == "bert":
        tokenizer = _word_piece(path, config)
    else:
        tokenizer = _sentence_piece(path, family, config)
    check_added_tokens(directory, family, tokenizer, config)
    check_tokenizer_json(directory, family, tokenizer, config)
    for name in sorted(os.listdir(directory)):
        # Files of sentence-transformers, such as sentence_bert_config.json.
        if name.startswith("sentence_") and name.endswith("_config.json"):
            _settings(directory, name).only("do_lower_case", False, default=False)
    config.warn_of_others(harmless.TOKENIZER)
    return tokenizer


def _settings(directory, name):
    """The settings in a file; empty if the folder does not have it."""
    path = os.path.join(directory, name)
    return Config.read(path) if os.path.exists(path) else Config({}, path)


def _family(directory, config, family):
    """The family of the class that the files name, else the given one."""
    config.only("auto_map", None, default=None)
    config.only("word_tokenizer_type", None, "basic", default=None)
    config.only("subword_tokenizer_type", None, "wordpiece", default=None)
    classes = _FAMILIES | {f"{name}Fast": _FAMILIES[name] for name in _FAMILIES}
    # Hugging Face reads them in this order.
    for settings in (config, _settings(directory, "config.json")):
        if settings.get("tokenizer_class", None) is not None:
            return classes[settings.only("tokenizer_class", *classes)]
    return family


def _word_piece(path, config):
    vocabulary = read_text(path).split("\n")
    if vocabulary[-1] == "":
        vocabulary.pop()
    _check_distinct(path, vocabulary)
    config.only("do_basic_tokenize", True, default=True)
    config.only("never_split", None, [], default=None)
    config.only("wordpieces_prefix", "##", default="##")
    config.only("clean_text", True, default=True)
    # An uncased vocabulary has capitals only in its special tokens.
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


def _sentence_piece(path, family, config):
    proto = read_bytes(path)
    config.only("remove_space", True, default=True)
    config.only("sp_model_kwargs", {}, None, default=None)
    lowercase = config.only("do_lower_case", True, False, default=family == "albert")
    keep_accents = config.only("keep_accents", True, False, default=False)
    make = {"albert": keras_hub.tokenizers.AlbertTokenizer, "xlnet": XLNetTokenizer}
    try:
        return make[family](with_rules(proto, lowercase, keep_accents))
    except Exception as error:  # From SentencePiece, protobuf, TensorFlow, KerasHub.
        raise ValueError(
            f"{path!r} must be the SentencePiece model of an {family.upper()}. It is "
            f"not: {error}"
        ) from error
