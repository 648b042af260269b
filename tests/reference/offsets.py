"""Tokens and the characters that they stand for, one text and one word at a time."""

import functools
import re
import string
import unicodedata

import keras_hub
import numpy as np
import sentencepiece
import tensorflow as tf

from tfeff.data.text.bert_tokenizer import BertTokenizer

_CHUNK = re.compile(r"[^ \t\n\r]+")
_IDEOGRAPHS = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH")
SPACE = "\u2581"  # what SentencePiece writes for a space


def encode_with_offsets(tokenizer, texts):
    """Yields the ids and the places [(start, end)] of each text's tokens."""
    is_word_piece = isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer)
    encode = _word_piece if is_word_piece else _sentence_piece
    for text, (ids, pieces, places) in zip(texts, encode(tokenizer, texts)):
        if is_word_piece:
            found = _visible(text, pieces, places, is_invisible)
        else:
            pieces = [piece.strip(SPACE) for piece in pieces]
            found = _visible(text, pieces, places, is_invisible_in_pieces)
        yield [int(id) for id in ids], found


def _sentence_piece(tokenizer, texts):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
    for text in texts:
        found = processor.encode(text, return_type="offset_mapping")
        yield found["ids"], found["pieces"], found["offsets"]


def _word_piece(tokenizer, texts):
    # White space always ends a word, so each chunk has its own tokens.
    chunks = dict.fromkeys(chunk for text in texts for chunk in _CHUNK.findall(text))
    # KerasHub's own tokenizers read words that other spaces join as one.
    ends_words = is_word_or_space if isinstance(tokenizer, BertTokenizer) else is_word
    atoms = {chunk: list(_atoms(chunk, ends_words)) for chunk in chunks}
    words = dict.fromkeys(chunks)
    words.update(dict.fromkeys(c[a:b] for c, spans in atoms.items() for a, b in spans))
    ids_of = dict(zip(words, _rows(tokenizer(list(words))))) if words else {}
    known = {}
    for chunk, spans in atoms.items():
        ids = ids_of[chunk]
        if sum((ids_of[chunk[a:b]] for a, b in spans), []) != ids:
            spans = [(0, len(chunk))]  # The tokenizer cuts it elsewhere.
        pieces = [tokenizer.id_to_token(id) for id in ids]
        places, count = [], 0
        for begin, end in spans:
            word = chunk[begin:end]
            own = pieces[count : count + len(ids_of[word])]
            count += len(own)
            places += [(begin + a, begin + b) for a, b in _parts(word, own, tokenizer)]
        known[chunk] = ids, pieces, places
    for text in texts:
        all_ids, all_pieces, all_places = [], [], []
        for match in _CHUNK.finditer(text):
            ids, pieces, places = known[match[0]]
            all_ids += ids
            all_pieces += pieces
            all_places += [(match.start() + a, match.start() + b) for a, b in places]
        yield all_ids, all_pieces, all_places


def _rows(ids):
    # A list, a dense tensor if all rows are equally long, or a ragged one.
    return ids.to_list() if isinstance(ids, tf.RaggedTensor) else map(list, ids)


def _atoms(chunk, ends_words):
    """Cuts at what is a word of its own: punctuation and ideographs, and spaces."""
    start = 0
    for index, character in enumerate(chunk):
        if ends_words(character):
            if start < index:
                yield start, index
            yield index, index + 1
            start = index + 1
    if start < len(chunk):
        yield start, len(chunk)


def is_word(character: str) -> bool:
    """Whether it is punctuation or an ideograph, which WordPiece cuts out."""
    return (
        character in string.punctuation
        or unicodedata.category(character)[0] == "P"
        or unicodedata.name(character, "").startswith(_IDEOGRAPHS)
    )


def is_word_or_space(character: str) -> bool:
    """Whether it is such a word, or a space of any width."""
    return is_word(character) or unicodedata.category(character)[0] == "Z"


def _parts(word, pieces, tokenizer):
    """Where the pieces of one word lie in it."""
    whole = [(0, len(word))] * len(pieces)
    if len(pieces) < 2 or tokenizer.oov_token in pieces:
        return whole
    ends = np.cumsum([len(p.removeprefix(tokenizer.suffix_indicator)) for p in pieces])
    # Which character of the word each of the pieces' is of: all that it becomes, or
    # where accents were composed with it, one.
    for origin in (
        [i for i, c in enumerate(word) for _ in cleaned(c, tokenizer)],
        [i for i, c in enumerate(word) if cleaned(c, tokenizer) and not is_joined(c)],
    ):
        if len(origin) == ends[-1]:
            origin.append(len(word))
            starts = [0, *[origin[end] for end in ends[:-1]]]
            # The last of a character's has the accents behind it.
            ends = [max(origin[end], origin[end - 1] + 1) for end in ends]
            return list(zip(starts, ends))
    return whole


def cleaned(character, tokenizer):
    """What the tokenizer's clean-up makes of a character."""
    text = character
    if isinstance(tokenizer, BertTokenizer):
        if unicodedata.category(text)[0] == "C" or text == "\ufffd":
            return ""
        text = unicodedata.normalize("NFC", text) if tokenizer.compose else text
        text = text.lower() if tokenizer.to_lower else text
    if tokenizer.strip_accents:
        text = unicodedata.normalize("NFD", text)
        text = "".join(c for c in text if unicodedata.category(c) != "Mn")
    if tokenizer.lowercase:  # KerasHub folds by NFKC_Casefold.
        text = unicodedata.normalize("NFKC", text).casefold()
        text = "".join(c for c in text if not is_ignorable(c))
        text = unicodedata.normalize("NFKC", text)
    return text


def is_ignorable(character: str) -> bool:
    """Whether it is a "default ignorable code point" of Unicode."""
    others = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"
    name = unicodedata.name(character, "")
    is_shown = "ARABIC" in name or "INTERLINEAR" in name or "KAITHI" in name
    return (
        character in others
        or "VARIATION SELECTOR" in name
        or (unicodedata.category(character) == "Cf" and not is_shown)
    )


def is_joined(character: str) -> bool:
    """Whether it may be gone: accents, parts of letters (NFC), what is invisible."""
    if unicodedata.category(character) in ("Mn", "Cf", "Cc"):
        return True
    # Of today's Hangul, vowels and the last letters of syllables.
    is_hangul = "\u1161" <= character <= "\u1175" or "\u11a8" <= character <= "\u11c2"
    return is_hangul or character in parts_of_letters()


@functools.cache
def parts_of_letters() -> set[str]:
    """The last of the characters that a letter is decomposed into (NFD)."""
    found = set()
    for point in (*range(0xD800), *range(0xE000, 0x20000)):
        parts = unicodedata.normalize("NFD", chr(point))
        if len(parts) == 2 and unicodedata.normalize("NFC", parts) == chr(point):
            found.add(parts[1])
    return found


def _visible(text, pieces, places, is_invisible):
    """Cuts off what cannot be seen; a piece of no characters takes the next one's."""
    found, next_place = [], (-1, -1)
    for piece, (start, end) in zip(reversed(pieces), reversed(places)):
        while start < end and is_invisible(text[start]):
            start += 1
        while start < end and is_invisible(text[end - 1]):
            end -= 1
        if start == end == next_place[0] and piece:
            end = next_place[1]
        if start < end:
            next_place = start, end
        found.append((start, end))
    return found[::-1]


def is_invisible(character: str) -> bool:
    """Whether it is white space, or a control or a format character."""
    return character.isspace() or unicodedata.category(character) in ("Cc", "Cf")


def is_invisible_in_pieces(character: str) -> bool:
    """Whether it cannot be seen to SentencePiece, which writes a space as SPACE."""
    return is_invisible(character) or character == SPACE
