"""The tokenizers in KerasHub's presets, as those of published checkpoints."""

import os

import keras_hub
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff.convert.config import Config
from tfeff.convert.keras_hub_presets import keras_object
from tfeff.convert.reading import read_bytes
from tfeff.convert.vocabulary_files import (
    byte_pairs,
    lines,
    named_after_file,
    word_piece,
)
from tfeff.data.text.xlm_roberta_tokenizer import XLMRobertaTokenizer

_FILE = "tokenizer.json"
_ASSETS = os.path.join("assets", "tokenizer")
_PACKAGES = ("keras_hub", "keras_nlp")
# tfeff packs rows and reads special tokens in texts in its own way.
_HARMLESS = """
config_file dtype name proto sequence_length special_tokens special_tokens_in_strings
trainable vocabulary
"""
_SPECIAL = ["<s>", "<pad>", "</s>", "<mask>"]


def make_keras_hub_tokenizer(
    directory: str,
) -> keras_hub.tokenizers.Tokenizer | None:
    """The tokenizer in a preset of KerasHub.

    Args:
        directory: the preset, with `tokenizer.json` and `assets/tokenizer`.

    Returns:
        The tokenizer, or `None` if the preset has none.

    Raises:
        ValueError: if a file is damaged, or asks for something that tfeff's tokenizers
            do not have.
    """
    path = os.path.join(directory, _FILE)
    if not os.path.exists(path):
        return None
    name, config = keras_object(path)
    makers = {f"{p}>{n}": make for p in _PACKAGES for n, make in _MAKERS.items()}
    Config({"registered_name": name}, path).only("registered_name", *makers)
    tokenizer = makers[name](os.path.join(directory, _ASSETS), config)
    config.warn_of_others(_HARMLESS.split())
    return tokenizer


def _word_piece(folder, config):
    config.only("split", True, default=True)
    config.only("oov_token", "[UNK]", default="[UNK]")
    path = os.path.join(folder, "vocabulary.txt")
    settings = dict(
        do_lower_case=config.only("lowercase", True, False),
        strip_accents=config.only("strip_accents", True, False),
        tokenize_chinese_chars=config.only("split_on_cjk", True, False, default=True),
        wordpieces_prefix=config.get("suffix_indicator", "##"),
    )
    return word_piece(path, lines(path), Config(settings, config.path), compose=False)


def _byte_pairs(folder, config):
    tokens = config.get("unsplittable_tokens", None)
    if sorted(map(str, tokens or _SPECIAL)) != sorted(_SPECIAL):
        raise ValueError(
            f"{config.path!r} asks for unsplittable_tokens={tokens!r}, which tfeff "
            f"does not support. It supports: {_SPECIAL}"
        )
    space = config.only("add_prefix_space", True, False, default=False)
    path = os.path.join(folder, "vocabulary.json")
    return byte_pairs(path, space, compared=True)


def _albert(folder, config):
    path, proto = _proto(folder, config)
    return named_after_file(
        path, "Unigram model", keras_hub.tokenizers.AlbertTokenizer, proto
    )


def _xlm_roberta(folder, config):
    path, proto = _proto(folder, config)
    proto = named_after_file(path, "Unigram model", _with_ids_of_xlm_roberta, proto)
    return named_after_file(path, "Unigram model", XLMRobertaTokenizer, proto)


def _proto(folder, config):
    for name in ("add_bos", "add_eos"):
        config.only(name, False, default=False)
    path = os.path.join(folder, "vocabulary.spm")
    return path, read_bytes(path)


def _with_ids_of_xlm_roberta(proto):
    """The model with the ids that KerasHub computes: one more, and four others."""
    model = ModelProto.FromString(proto)
    types = ModelProto.SentencePiece
    kinds = [piece.type for piece in model.pieces[:3]]
    if kinds != [types.UNKNOWN, types.CONTROL, types.CONTROL]:
        raise ValueError("its first pieces must be <unk>, <s> and </s>")
    others = list(model.pieces[3:])
    del model.pieces[:]
    for piece in ("<s>", "<pad>", "</s>", "<unk>"):
        kind = types.UNKNOWN if piece == "<unk>" else types.CONTROL
        model.pieces.add(piece=piece, type=kind)
    model.pieces.extend(others)
    model.pieces.add(piece="<mask>", type=types.CONTROL)
    trainer = model.trainer_spec
    trainer.vocab_size = len(model.pieces)
    trainer.bos_id, trainer.pad_id, trainer.eos_id, trainer.unk_id = 0, 1, 2, 3
    names = dict(bos="<s>", pad="<pad>", eos="</s>", unk="<unk>")
    for name, piece in names.items():
        setattr(trainer, f"{name}_piece", piece)
    return model.SerializeToString()


_MAKERS = {
    "BertTokenizer": _word_piece,
    "DistilBertTokenizer": _word_piece,
    "ElectraTokenizer": _word_piece,
    "RobertaTokenizer": _byte_pairs,
    "XLMRobertaTokenizer": _xlm_roberta,
    "AlbertTokenizer": _albert,
}
