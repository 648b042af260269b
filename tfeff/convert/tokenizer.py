"""Conversion of checkpoints' tokenizers to KerasHub's."""

import os
import warnings

import keras_hub

from tfeff.convert import harmless
from tfeff.convert.added_tokens import check_added_tokens
from tfeff.convert.config import Config
from tfeff.convert.folders import sentence_configs
from tfeff.convert.json_tokenizer import (
    TokenizerJson,
    check_frame,
    composing,
    type_ids_of_pairs,
)
from tfeff.convert.reading import read_bytes, read_json
from tfeff.convert.same_ids import check_same_ids
from tfeff.convert.same_settings import check_unigram_json, check_word_piece_json
from tfeff.convert.sentencepiece_json import described_model
from tfeff.convert.unigram_model import sentence_piece_model
from tfeff.convert.vocabulary_files import (
    byte_pairs,
    lines,
    named_after_file,
    word_piece,
)
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer
from tfeff.data.text.xlm_roberta_tokenizer import XLMRobertaTokenizer
from tfeff.data.text.xlnet_tokenizer import XLNetTokenizer

# Families of Hugging Face's classes, whose names may end in "Fast".
_FAMILIES = {
    "BertTokenizer": "bert",
    "ConvBertTokenizer": "bert",
    "DistilBertTokenizer": "bert",
    "ElectraTokenizer": "bert",
    "AlbertTokenizer": "albert",
    "XLNetTokenizer": "xlnet",
    "RobertaTokenizer": "roberta",
    "XLMRobertaTokenizer": "xlm-roberta",
    "CamembertTokenizer": "xlm-roberta",
}
# The classes of any model that tokenizer.json describes, in transformers 4 and 5.
_ANY_4, _ANY_5 = "PreTrainedTokenizerFast", "TokenizersBackend"
# The settings of each family's classes, their names here, and their defaults.
_DEFAULTS = {
    "bert": (
        ("do_lower_case", "to_lower", True),
        ("strip_accents", "strip_accents", None),
        ("tokenize_chinese_chars", "split_on_cjk", True),
    ),
    "roberta": (("add_prefix_space", "add_prefix_space", False),),
}
_VOCABULARIES = {
    "bert": ("vocab.txt",),
    "albert": ("spiece.model", "30k-clean.model"),
    "xlnet": ("spiece.model",),
    "roberta": ("vocab.json",),
    "xlm-roberta": (),  # The ids of its SentencePiece model differ.
}
_SENTENCE_PIECE = {
    "albert": keras_hub.tokenizers.AlbertTokenizer,
    "xlnet": XLNetTokenizer,
    "xlm-roberta": XLMRobertaTokenizer,
}


def make_tokenizer(
    directory: str, family: str
) -> keras_hub.tokenizers.Tokenizer | None:
    """The tokenizer in a checkpoint's folder.

    Args:
        directory: the folder, with `vocab.txt`, `spiece.model`, or `vocab.json` and
            `merges.txt`, or with `tokenizer.json` alone, and, from Hugging Face,
            `tokenizer_config.json`.
        family: `"bert"` for WordPiece, `"roberta"` for byte-level BPE, `"albert"`,
            `"xlnet"` or `"xlm-roberta"` for SentencePiece, used if no file names a
            tokenizer class.

    Returns:
        The tokenizer, or `None` if the folder has no vocabulary.

    Raises:
        ValueError: if a file is damaged, asks for something that tfeff's
            tokenizers do not have, or contradicts another; if the folder has only
            vocabularies that the tokenizer's class does not read; if ids differ from
            those that the `tokenizers` library gives by `tokenizer.json`, or by what
            a SentencePiece model means.
    """
    config = _settings(directory, "tokenizer_config.json")
    is_json = os.path.exists(os.path.join(directory, "tokenizer.json"))
    model = _settings(directory, "config.json")
    family = _family(config, model, family, is_json)
    paths = [os.path.join(directory, n) for n in _VOCABULARIES.get(family, ())]
    path = next((path for path in paths if os.path.exists(path)), None)
    if path is None and not is_json:
        _check_no_others(directory, family)
        return None
    file = None  # The file whose ids are compared with the tokenizer's, if any.
    if path is None:
        file = TokenizerJson.find(directory)
        family, tokenizer = _make_from_json(file, config, model)
    elif family == "bert":
        settings = config
        if is_json and _json_takes_precedence(config, model, family):
            settings = _word_piece_settings(TokenizerJson.find(directory), config, True)
        tokenizer = word_piece(path, lines(path), settings, _composes(directory))
    elif family == "roberta":
        file, json_first, space = TokenizerJson.find(directory), False, False
        if file is not None:
            settings = file.byte_pair_settings()
            json_first = _json_takes_precedence(config, model, family)
            space = json_first and settings["add_prefix_space"]
        space = _prefix_space(config, space, json_first)
        tokenizer = byte_pairs(path, space, compared=file is not None)
    else:
        file = _unigram_json(directory, path, family, config)
        tokenizer = _unigram(file, family, config)
    check_added_tokens(directory, family, tokenizer, config)
    where = path or os.path.join(directory, "tokenizer.json")
    is_alone = not is_json and not os.path.exists(config.path)
    _check_defaults(where, is_alone, family, tokenizer, config, model)
    if family == "bert" and path is not None:
        check_word_piece_json(directory, tokenizer, settings)
    if file is not None:
        _check_ids(file, family, tokenizer)
    for path in sentence_configs(directory):
        Config.read(path).only("do_lower_case", False, default=False)
    config.warn_of_others(harmless.TOKENIZER)
    return tokenizer


def file_without_segments(directory: str) -> str | None:
    """The file by which pairs are one segment in transformers; `None` for none."""
    config = _settings(directory, "tokenizer_config.json")
    names = config.get("model_input_names", None)
    # Transformers 5 alone write this class, and its inputs are no segments by default.
    if names is None and config.get("tokenizer_class", None) == "TokenizersBackend":
        names = ()
    if names is not None and "token_type_ids" not in names:
        return config.path
    file = TokenizerJson.find(directory)
    if file is None or not (processor := file.values.get("post_processor")):
        return None
    kinds = type_ids_of_pairs(file.path, processor)
    return file.path if kinds and not any(kinds) else None


def make_tokenizer_of_file(path: str) -> keras_hub.tokenizers.Tokenizer:
    """The tokenizer of a file alone, whatever its name is.

    Args:
        path: a file of the `tokenizers` library, or a WordPiece vocabulary with a token
            in each line.

    Raises:
        ValueError: as `make_tokenizer`.
    """
    if read_bytes(path, 1) != b"{":
        return word_piece(path, lines(path), Config({}, path), compose=False)
    # A vocabulary may have a piece of that name.
    if not isinstance(read_json(path).get("model"), dict):
        raise ValueError(
            f"{path!r} must be a file of the `tokenizers` library. It has no 'model'; "
            "a vocabulary of byte-level BPE is called 'vocab.json', beside 'merges.txt'"
        )
    file = TokenizerJson(path)
    family, tokenizer = _make_from_json(file, Config({}, path), Config({}, path))
    _check_ids(file, family, tokenizer)
    return tokenizer


def _check_no_others(directory, family):
    """Raises if the folder has vocabularies, or parts of them, that nothing reads."""
    present = os.listdir(directory)
    # A SentencePiece model with other ids than the checkpoint.
    name = "sentencepiece.bpe.model"
    if name in present:
        raise ValueError(
            f"{directory!r} must have 'tokenizer.json' beside {name!r}, whose ids are "
            "not those of the checkpoint. Load the tokenizer in transformers and save "
            "it with `tokenizer.save_pretrained(folder)`"
        )
    known = {"merges.txt"}.union(*_VOCABULARIES.values())
    others = ", ".join(sorted(known.intersection(present)))
    if others:
        needed = " or ".join(_VOCABULARIES.get(family) or ["tokenizer.json"])
        raise ValueError(
            f"{directory!r} must have {needed}, which the tokenizer's class reads. It "
            f"has {others}. If this is another tokenizer's, name its class by "
            "'tokenizer_class' in 'tokenizer_config.json', such as 'BertTokenizer' "
            "for vocab.txt"
        )


def _settings(directory, name):
    """The settings in a file; empty if the folder does not have it."""
    path = os.path.join(directory, name)
    return Config.read(path) if os.path.exists(path) else Config({}, path)


def _family(config, model, family, is_json):
    """The family of the class that the files name, else the given one.

    None if the class is that of any tokenizer.json, which reads no other vocabulary.
    """
    config.only("auto_map", None, default=None)
    config.only("word_tokenizer_type", None, "basic", default=None)
    config.only("subword_tokenizer_type", None, "wordpiece", default=None)
    classes = _FAMILIES | {f"{name}Fast": _FAMILIES[name] for name in _FAMILIES}
    if is_json:
        classes |= dict.fromkeys((_ANY_4, _ANY_5))
    # Hugging Face reads them in this order.
    for settings in (config, model):
        if settings.get("tokenizer_class", None) is not None:
            return classes[settings.only("tokenizer_class", *classes)]
    return family


def _class_name(config, model):
    """The class that the files name, or None."""
    return config.get("tokenizer_class", None) or model.get("tokenizer_class", None)


def _json_takes_precedence(config, model, family):
    """Whether tokenizer.json takes precedence over tokenizer_config.json.

    It does where Hugging Face finds no class, by its name or by the model's type, or
    the class of any tokenizer.json. The class of version 4 reads one setting, that of
    byte-level BPE.
    """
    name = _class_name(config, model)
    if name == _ANY_4:
        return family != "roberta"
    return name == _ANY_5 or not (name or model.get("model_type", None))


def _check_defaults(path, is_alone, family, tokenizer, config, model):
    """Raises if Hugging Face's class would use another value of a missing setting.

    The class takes its own default, whatever tokenizer.json says, unless that file
    comes first. For a vocabulary alone, of which only the capitals tell, it warns.
    """
    if _json_takes_precedence(config, model, family):
        return
    for setting, attribute, default in _DEFAULTS.get(family, ()):
        theirs, ours = config.get(setting, default), getattr(tokenizer, attribute)
        if theirs is None:
            theirs = config.get("do_lower_case", True)
        if theirs is ours:
            continue
        must = (
            f"{config.path!r} must have {setting!r}, or Hugging Face's class takes "
            f"{setting}={theirs}, where {path!r} means {ours}. Write there the value "
            "with which the model was trained"
        )
        if not is_alone:
            raise ValueError(must)
        warnings.warn(f"{must}. It is read as {ours}", stacklevel=1)
        return  # The other settings follow from it.


def _make_from_json(file, config, model):
    """The family and the tokenizer that tokenizer.json alone describes."""
    path, family = file.path, file.family
    json_first = _json_takes_precedence(config, model, family)
    if family == "bert":
        settings = _word_piece_settings(file, config, json_first)
        compose, _ = composing(file.values["normalizer"])
        return family, word_piece(path, file.vocabulary, settings, compose)
    if family == "roberta":
        settings = file.byte_pair_settings()
        space = _prefix_space(config, settings["add_prefix_space"], json_first)
        settings["add_prefix_space"] = space
        return family, named_after_file(
            path, "byte-level BPE", RobertaTokenizer, **settings
        )
    return family, _unigram(file, family, config)


def _word_piece_settings(file, config, json_first):
    """The settings of a WordPiece tokenizer, tokenizer.json's if it comes first."""
    settings = file.word_piece_settings()
    if not json_first:
        return config.with_defaults(**settings)
    for name in (*settings, "do_basic_tokenize", "never_split", "wordpieces_prefix"):
        config.get(name, None)  # Read, so that no warning names it.
    return Config(settings, file.path)


def _prefix_space(config, default, json_first):
    """Whether byte-level BPE puts a space before a text, which the file may say."""
    if json_first:
        config.get("add_prefix_space", None)
        return default
    return config.only("add_prefix_space", True, False, default=default)


def _unigram(file, family, config):
    """The SentencePiece tokenizer that tokenizer.json describes."""
    for name in (
        *("add_prefix_space", "do_lower_case", "keep_accents", "remove_space"),
        *("sp_model_kwargs", "unk_id"),
    ):
        config.get(name, None)  # Read, so that no warning names it.
    proto = sentence_piece_model(file)
    return named_after_file(file.path, "Unigram model", _SENTENCE_PIECE[family], proto)


def _unigram_json(directory, path, family, config):
    """The tokenizer.json that comes first beside a SentencePiece model."""
    described = described_model(path, family, config)
    file = TokenizerJson.find(directory)
    if file is None:
        return described
    check_unigram_json(file, described)
    return file


def _check_ids(file, family, tokenizer):
    """Raises unless the tokenizer gives the ids of tokenizer.json."""
    changes = {}
    if family == "bert":
        composes, step = composing(file.values["normalizer"])
        step = step | dict(
            lowercase=tokenizer.to_lower,
            strip_accents=tokenizer.strip_accents,
            handle_chinese_chars=tokenizer.split_on_cjk,
        )
        steps = [*([{"type": "NFC"}] if composes else []), step]
        changes["normalizer"] = dict(type="Sequence", normalizers=steps)
    if family == "roberta":
        changes["pre_tokenizer"] = file.values["pre_tokenizer"] | dict(
            add_prefix_space=tokenizer.add_prefix_space
        )
    if family in _SENTENCE_PIECE:
        # See `sentence_piece_model`.
        at_end = dict(type="Strip", strip_left=False, strip_right=True)
        steps = [*filter(None, [file.values.get("normalizer")]), at_end]
        changes["normalizer"] = dict(type="Sequence", normalizers=steps)
    if file.vocabulary != list(tokenizer.get_vocabulary()):
        raise ValueError(
            f"{file.path!r} must describe the same tokenizer as the vocabulary. It has "
            "another vocabulary"
        )
    check_frame(file.path, family, file.values.get("post_processor"), tokenizer)
    check_same_ids(file.path, tokenizer, file.reference(**changes))


def _composes(directory):
    """Whether a letter and its marks become one character before `vocab.txt` is used.

    Hugging Face's fast tokenizers do not compose, unless tokenizer.json says so.
    """
    path = os.path.join(directory, "tokenizer.json")
    if not os.path.exists(path):
        return False
    normalizer = Config.read(path).values.get("normalizer")
    return isinstance(normalizer, dict) and composing(normalizer)[0]
