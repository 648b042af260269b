"""SentencePiece models made of the Unigram models in tokenizer.json."""

import base64
import itertools
import re
import sys
import unicodedata

import numpy as np
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff.convert.config import Config
from tfeff.convert.json_tokenizer import TokenizerJson
from tfeff.convert.sentencepiece_charsmap import compiled, decompiled
from tfeff.convert.sentencepiece_json import UNUSED_SCORE, is_number_with_comma

_UNIT = 2.0**-15
_COMPOSING = ("NFC", "NFKC")
# Unicode's White_Space, at which the library's WhitespaceSplit cuts.
_WHITE_SPACE = re.compile(
    "[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
)
_CHARACTERS = (
    "Lowercase",
    "NFC",
    "NFD",
    "NFKC",
    "NFKD",
    "Nmt",
    "Precompiled",
    "StripAccents",
)


def sentence_piece_model(file: TokenizerJson) -> bytes:
    """The SentencePiece model with the pieces, scores and clean-up of a Unigram file.

    What the file's normalizer does to each character, and to the sequences of
    characters that it names, becomes a replacement rule of the model.

    White space is cleaned up as SentencePiece does: a run is one space, and at either
    end of a text there is none. Some files, such as ALBERT's and XLNet's by Hugging
    Face, give a piece "▁" for white space at the end; the original ones do not.

    Args:
        file: the file, of a Unigram model.

    Returns:
        The model, with the file's ids.

    Raises:
        ValueError: if the file has a step that is not known.
    """
    special = {token["content"] for token in file.values.get("added_tokens") or ()}
    unknown = file.model.get("unk_id")
    file.model.only("byte_fallback", False, default=False)
    if unknown is None:
        raise ValueError(
            f"{file.path!r} must have an unknown piece. Its unk_id is null"
        )
    model = ModelProto()
    types = ModelProto.SentencePiece
    vocabulary = file.model.get("vocab")
    scores = _exact_scores(vocabulary)
    pieces = {piece for piece, _ in vocabulary}
    for id, ((piece, given), score) in enumerate(zip(vocabulary, scores)):
        kind = types.CONTROL if piece in special else types.NORMAL
        # ALBERT's and XLNet's have lowered scores, so that others are used instead.
        is_lowered = given <= UNUSED_SCORE and is_number_with_comma(piece)
        if is_lowered and pieces >= set(piece):
            kind = types.UNUSED
        kind = types.UNKNOWN if id == unknown else kind
        model.pieces.add(piece=piece, score=score, type=kind)
    trainer = model.trainer_spec
    trainer.model_type = trainer.UNIGRAM
    trainer.vocab_size = len(model.pieces)
    trainer.unk_id, trainer.unk_piece = unknown, file.vocabulary[unknown]
    normalizer = model.normalizer_spec
    normalizer.name = "tokenizer.json"
    normalizer.precompiled_charsmap = compiled(_rules(file))
    normalizer.add_dummy_prefix = _begins_with_space(file)
    normalizer.remove_extra_whitespaces = True
    normalizer.escape_whitespaces = True
    return model.SerializeToString()


def _exact_scores(vocabulary):
    """Scores that give the same pieces, and whose sums float32 holds exactly.

    The best of a text's segmentations has the highest sum of scores. Some, such as "0"
    and "00" of "000", have equal sums: then both libraries take the same one if their
    sums are exact, which those of float32, as SentencePiece has them, are not. A
    multiple of its number of characters, added to each piece's score, changes all sums
    of a text by the same amount. Here the sum of a likely text becomes about 0, so that
    sums are small, and the scores are multiples of a power of 2. Special pieces, of
    score 0, are in no likely text.
    """
    pieces, scores = zip(*vocabulary)
    scores, lengths = np.array(scores, float), np.array([len(p) for p in pieces])
    shares = np.exp(scores) * (scores < 0)
    per_character = -(shares @ scores) / max(shares @ lengths, 1.0)
    return np.round((scores + per_character * lengths) / _UNIT) * _UNIT


def _begins_with_space(file):
    """Whether a text gets a space before it; checks the steps for white space."""
    steps = _steps(file.part("pre_tokenizer"), "pretokenizers")
    splits = _splits(file)
    if splits:
        steps = steps[1:]
    if not (splits or _collapses(file)) or len(steps) != 1:
        raise ValueError(
            f"{file.path!r} must make one space of a run of white space, and split at "
            "it by one Metaspace. Its normalizer and pre_tokenizer do not"
        )
    metaspace = steps[0]
    metaspace.only("type", "Metaspace")
    metaspace.only("replacement", "▁", default="▁")
    metaspace.only("split", True, default=True)
    # Earlier versions have `add_prefix_space`.
    if not metaspace.only("add_prefix_space", True, False, default=True):
        return False
    scheme = metaspace.only(
        "prepend_scheme", "always", "first", "never", default="always"
    )
    return scheme != "never"


def _steps(part, name):
    """The settings of the steps of a sequence, or of the one step."""
    if not part.values:
        return []
    if part.get("type") != "Sequence":
        return [part]
    return [Config(values, part.path) for values in part.get(name)]


def _is_of_spaces(step):
    """Whether it removes white space at the ends, or all but one character of a run."""
    pattern = step.values.get("pattern") or {}
    return step.get("type") == "Strip" or (
        step.get("type") == "Replace"
        and pattern.get("Regex") == " {2,}"
        and step.get("content") in (" ", "▁")
    )


def _collapses(file):
    steps = _steps(file.part("normalizer"), "normalizers")
    return any(_is_of_spaces(s) and s.get("type") == "Replace" for s in steps)


def _splits(file):
    """Whether texts are cut at white space of any kind."""
    steps = _steps(file.part("pre_tokenizer"), "pretokenizers")
    return bool(steps) and steps[0].get("type") == "WhitespaceSplit"


def _rules(file):
    """The normalizer's replacements of characters and of sequences of them."""
    steps, sequences = [], set()
    for step in _steps(file.part("normalizer"), "normalizers"):
        if _is_of_spaces(step):
            continue
        kind = step.only("type", "Replace", *_CHARACTERS)
        if kind == "Replace":
            pattern = step.get("pattern")
            if "String" not in pattern:
                raise ValueError(
                    f"{step.path!r} replaces {pattern}, which tfeff does not support. "
                    "It supports strings, and ' {2,}' by one space"
                )
            sequences.add(pattern["String"])
        if kind == "Precompiled":
            charsmap = base64.b64decode(step.get("precompiled_charsmap") or "")
            try:
                known = decompiled(charsmap)
            except ValueError as error:
                raise ValueError(
                    f"{step.path!r} is damaged or of another library: {error}"
                ) from error
            keys = [key for key in known if len(key) > 1]
            # Capital letters, too, which a step before may lowercase.
            sequences.update(keys, [key.upper() for key in keys])
        if kind in _COMPOSING:
            sequences.update(_decomposed())
        steps.append(step.values)
    splits = _splits(file)
    if not (steps or splits):
        return {}
    values = {"type": "Sequence", "normalizers": steps}
    normalizer = file.reference(normalizer=values).normalizer

    def normalize(text):
        text = normalizer.normalize_str(text)
        return _WHITE_SPACE.sub(" ", text) if splits else text

    rules = {}
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in ("Cs", "Cn"):
            continue
        if (target := normalize(character)) != character:
            rules[character] = target
    for sequence in sequences:
        target = normalize(sequence)
        if target != "".join(rules.get(c, c) for c in sequence):
            rules[sequence] = target
    return rules


def _decomposed():
    """The sequences that Unicode composes to one character, in any order of marks."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        parts = unicodedata.normalize("NFD", character)
        if parts == character or unicodedata.normalize("NFC", parts) != character:
            continue
        for marks in itertools.permutations(parts[1:]):
            sequence = parts[0] + "".join(marks)
            if unicodedata.normalize("NFC", sequence) != character:
                continue
            for end in range(1, len(sequence)):
                composed = unicodedata.normalize("NFC", sequence[:end])
                yield composed + sequence[end:]
