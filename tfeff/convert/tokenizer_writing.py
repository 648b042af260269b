"""The files from which Hugging Face's tokenizers read a tokenizer of tfeff."""

import json

import keras_hub
from sentencepiece.sentencepiece_model_pb2 import ModelProto
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from tfeff.convert.added_tokens import OTHERS, ROLES
from tfeff.convert.same_ids import check_written_ids
from tfeff.convert.sentencepiece_charsmap import compiled, decompiled
from tfeff.convert.sentencepiece_json import UNUSED_SCORE
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer
from tfeff.data.text.xlm_roberta_tokenizer import XLMRobertaTokenizer
from tfeff.data.text.xlnet_tokenizer import XLNetTokenizer

_UNUSED = ModelProto.SentencePiece.UNUSED
_FAMILIES = {XLNetTokenizer: "xlnet", XLMRobertaTokenizer: "xlm-roberta"}
_ANY = "PreTrainedTokenizerFast"  # This class reads all of tokenizer.json.
_QUOTES = ("``", "''")
# A rule for two letters of a Hangul syllable is one of a model that composes all.
_JAMO = "\u1100\u1161"


def tokenizer_files(
    tokenizer: keras_hub.tokenizers.Tokenizer, settings: dict
) -> dict[str, bytes]:
    """The files of a tokenizer, which gives the same ids in Hugging Face's libraries.

    These are `tokenizer_config.json`, `tokenizer.json` for the fast tokenizers, and the
    vocabulary for the slow ones of transformers 4: `vocab.txt` of WordPiece, and
    `vocab.json` and `merges.txt` of byte-level BPE. A SentencePiece model has no slow
    tokenizer, which would change the text before the model does.

    The class is that of the family where transformers 5, whose classes read nothing but
    the vocabulary of `tokenizer.json`, give the same ids, else the one that reads all
    of that file.

    Args:
        tokenizer: a tokenizer of WordPiece, SentencePiece or byte-level BPE.
        settings: further settings of `tokenizer_config.json`.

    Returns:
        The files' contents by their names.

    Raises:
        ValueError: if the tokenizer is of another kind, or ids differ; the message
            shows the texts.
    """
    if isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        files, fast, own = _word_piece(tokenizer)
    elif isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        files, fast, own = _sentence_piece(tokenizer)
    elif isinstance(tokenizer, RobertaTokenizer):
        files, fast, own = _byte_pairs(tokenizer)
    else:
        raise ValueError(
            "`tokenizer` must be of WordPiece or SentencePiece, or a "
            "`tfeff.data.RobertaTokenizer`. Received: tokenizer of type "
            f"{type(tokenizer).__name__}"
        )
    check_written_ids(tokenizer, fast)
    config = json.dumps(own | settings, indent=2, ensure_ascii=False) + "\n"
    return files | {
        "tokenizer.json": fast.to_str(pretty=True).encode("utf-8"),
        "tokenizer_config.json": config.encode("utf-8"),
    }


def _word_piece(tokenizer):
    vocabulary = tokenizer.get_vocabulary()
    roles = ROLES["bert"]
    # tfeff's has `to_lower`; KerasHub's own also changes other characters.
    lowercase = bool(getattr(tokenizer, "to_lower", tokenizer.lowercase))
    fast = Tokenizer(
        models.WordPiece(
            {token: i for i, token in enumerate(vocabulary)},
            unk_token=roles["unk_token"],
            max_input_chars_per_word=100,
        )
    )
    fast.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=tokenizer.split_on_cjk,
        strip_accents=tokenizer.strip_accents,
        lowercase=lowercase,
    )
    text = "".join(f"{token}\n" for token in vocabulary)
    files, name = {"vocab.txt": text.encode("utf-8")}, "BertTokenizer"
    if not tokenizer.strip_accents and getattr(tokenizer, "compose", True):
        # BERT's fast classes do not make one character of a letter and its marks.
        steps = [normalizers.NFC(), fast.normalizer]
        fast.normalizer = normalizers.Sequence(steps)
        name = _ANY
    fast.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    fast.decoder = decoders.WordPiece(prefix="##")
    _add_special_tokens(fast, vocabulary, "bert")
    config = dict(
        tokenizer_class=name,
        do_lower_case=lowercase,
        strip_accents=tokenizer.strip_accents,
        tokenize_chinese_chars=tokenizer.split_on_cjk,
    )
    return files, fast, config | roles


def _byte_pairs(tokenizer):
    vocabulary, merges = tokenizer.get_vocabulary(), tokenizer.get_merges()
    ids = {piece: i for i, piece in enumerate(vocabulary)}
    pairs = [tuple(rule.split(" ")) for rule in merges]
    fast = Tokenizer(models.BPE(ids, pairs))
    space = tokenizer.add_prefix_space
    fast.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=space)
    fast.decoder = decoders.ByteLevel()
    _add_special_tokens(fast, vocabulary, "roberta")
    config = dict(tokenizer_class="RobertaTokenizer", add_prefix_space=space)
    files = {
        "vocab.json": json.dumps(ids, ensure_ascii=False),
        "merges.txt": "\n".join(["#version: 0.2", *merges, ""]),
    }
    files = {name: text.encode("utf-8") for name, text in files.items()}
    return files, fast, config | ROLES["roberta"]


def _sentence_piece(tokenizer):
    model = ModelProto.FromString(tokenizer.proto)
    family = next(
        (f for c, f in _FAMILIES.items() if isinstance(tokenizer, c)), "albert"
    )
    fast = _unigram(model)
    _add_special_tokens(fast, [piece.piece for piece in model.pieces], family)
    side = {"padding_side": "left"} if family == "xlnet" else {}
    return {}, fast, dict(tokenizer_class=_ANY) | side | ROLES[family]


def _unigram(model):
    """The `tokenizers` library's form of a SentencePiece model."""
    spec, trainer = model.normalizer_spec, model.trainer_spec
    if trainer.model_type != trainer.UNIGRAM or trainer.byte_fallback:
        raise ValueError(
            "`tokenizer` must be of a SentencePiece unigram model without bytes. "
            f"Received: model_type={trainer.model_type}, "
            f"byte_fallback={trainer.byte_fallback}"
        )
    pieces = [
        (piece.piece, piece.score + UNUSED_SCORE * (piece.type == _UNUSED))
        for piece in model.pieces
    ]
    fast = Tokenizer(models.Unigram(pieces, unk_id=trainer.unk_id))
    fast.normalizer = normalizers.Sequence(_steps(model))
    prepend = "always" if spec.add_dummy_prefix else "never"
    fast.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=prepend)
    fast.decoder = decoders.Metaspace(prepend_scheme=prepend)
    return fast


def _steps(model):
    """The changes of a text before it is cut into pieces."""
    charsmap = model.normalizer_spec.precompiled_charsmap
    rules = decompiled(charsmap)
    steps = [
        normalizers.Replace(quotes, rules.pop(quotes))
        for quotes in _QUOTES
        if quotes in rules
    ]
    steps += _by_rules(rules, charsmap)
    if model.normalizer_spec.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    return steps


def _by_rules(rules, charsmap):
    """The steps of replacement rules.

    The library's `Precompiled` applies a rule of several characters only to a short
    grapheme, and of such rules the one with the fewest characters. So the rules of
    several characters come first, without those of their first characters. A model
    that composes everything, as SentencePiece trains it, has rules for longer graphemes
    too. Composed text needs none of them, except for capital letters with marks that
    have no composed form: these lose the mark.
    """
    if not rules:
        return []
    if _JAMO in rules:
        return [normalizers.NFKC(), normalizers.Precompiled(charsmap)]
    parts: tuple[dict, dict] = {}, {}
    for source, target in rules.items():
        parts[len(source) == 1][source] = target
    return [normalizers.Precompiled(compiled(part)) for part in parts if part]


def _add_special_tokens(fast, vocabulary, family):
    """Makes tokens special, and puts them around a text and a pair of texts."""
    roles = ROLES[family]
    tokens = [*roles.values(), *(t for t in OTHERS.get(family, ()) if t in vocabulary)]
    missing = sorted(set(roles.values()) - set(vocabulary))
    if missing:
        raise ValueError(
            f"`tokenizer` must have {list(roles.values())}. Missing: {missing}"
        )
    fast.add_special_tokens(
        [
            # SentencePiece's tokens hold the space before them, WordPiece's do not.
            AddedToken(
                token,
                lstrip=token == roles["mask_token"] and family != "bert",
                normalized=False,
                special=True,
            )
            for token in tokens
        ]
    )
    first, last = roles["cls_token"], roles["sep_token"]
    if family == "xlnet":
        single = f"$A:0 {last}:0 {first}:2"
        pair = f"$A:0 {last}:0 $B:1 {last}:1 {first}:2"
    elif family in ("roberta", "xlm-roberta"):
        single = f"{first}:0 $A:0 {last}:0"
        pair = f"{single} {last}:0 $B:0 {last}:0"
    else:
        single = f"{first}:0 $A:0 {last}:0"
        pair = f"{first}:0 $A:0 {last}:0 $B:1 {last}:1"
    fast.post_processor = processors.TemplateProcessing(
        single=single,
        pair=pair,
        special_tokens=[(token, vocabulary.index(token)) for token in (first, last)],
    )
