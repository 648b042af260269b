"""Comparison of a made tokenizer with the `tokenizers` library's, by their ids."""

import random
import re
import unicodedata
from collections.abc import Sequence

import keras_hub
import tensorflow as tf
import tokenizers

from tfeff.data.text.pieces import spelled_pieces
from tfeff.data.text.tokenizers import restore_kernels

_SHOWN = 3
_SPECIAL = re.compile(r"<.+>.*|\[.+\]")
_PIECES = 300
_MIXED = 200
_BLOCK = 128
_TEXTS = [
    "",
    "The quick brown fox jumps over the lazy dog.",
    "She didn't say: \"We'll be back at 10:30, on 3/4!\" they'd've, O'Reilly's 'tis",
    "''s ''S 'S I'M I'm x's-'ll ' s '",
    "Café, naïve and über-cool São Paulo; the fiancée's résumé. Cafe\u0301 e\u0301",
    "It cost $1,234.56 (about 9,000 yen) in 2019, or 50% of it. 12345678901234567890",
    "Tabs\tand   spaces\nand lines\r\nand \n\n more   \t  . a  b   c    d",
    "`` Quoted '' words -- and a well-known ellipsis... [x] {y} <z> #1 @home",
    "UPPER lower MiXeD iPhone NASA e.g. U.S.A. ΑΣΣΟΣ İstanbul straße ẞ ǅ",
    "日本語 and 中文 text, with ελληνικά and русский. 漢字かな が ガ 한국어",
    "unbelievably uncharacteristically 🙂 👩‍👩‍👧 🇩🇪 ❤️ zzzzqqq",
    "½ ﬁne ① wait… x² ™ zero\u200bwidth a\u00a0b soft\u00adhyphen a\u2003b a\u3000b",
    "\ufeffbom a\x01b \x7f \x85 \u2028 \u2029 \ufffd \ue000",
    "a" * 90,
    "pneumonoultramicroscopicsilicovolcanoconiosis" * 2,
    "https://example.org/a_b-c?d=e&f=%20#g user@example.org C:\\dir\\file.txt",
    "नमस्ते दुनिया שלום עולם مرحبا بالعالم สวัสดีชาวโลก",
]


def sample_texts(pieces: Sequence[str]) -> list[str]:
    """Texts on which tokenizers are likely to differ; the same for equal pieces.

    They are written ones, one for each part of the assigned code points of Unicode
    3.2, which all libraries know, some of the pieces, and a mix of everything. None
    begins or ends with white space.

    Args:
        pieces: what the vocabulary's pieces spell.
    """
    generator = random.Random(0)
    texts = list(_TEXTS)
    for start in [
        *range(0, 0x10000, _BLOCK),
        *range(0x10300, 0x10450, _BLOCK),
        0x1D400,
    ]:
        assigned = [
            chr(code)
            for code in range(start, start + _BLOCK)
            if unicodedata.ucd_3_2_0.category(chr(code)) not in ("Cn", "Cs", "Co")
        ]
        if assigned:
            chosen = generator.sample(assigned, min(12, len(assigned)))
            texts.append("a".join(chosen[:6]) + " " + "".join(chosen[6:]))
    step = max(1, len(pieces) // _PIECES)
    for piece in pieces[::step]:
        texts.append(f"{piece} {piece.title()}{piece}, {piece.upper()}.")
    parts = [part for text in _TEXTS for part in text.split() if len(part) < 20]
    parts += [" ", "  ", "\n", "\t", "'", ".", ",", "1", "\u0301"]
    for _ in range(_MIXED):
        count = generator.randrange(1, 12)
        texts.append(
            generator.choice(["", " "]).join(generator.choices(parts, k=count))
        )
    return [text.strip() for text in texts]


def check_same_ids(
    path: str,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    reference: tokenizers.Tokenizer,
) -> None:
    """Raises unless both give the same ids of a sample of texts.

    Args:
        path: the file that the reference is of.
        tokenizer: the made tokenizer.
        reference: the library's, which adds no special tokens.

    Raises:
        ValueError: with texts of which the ids differ, and both ids.
    """
    # Special ones are plain text in tfeff, and pieces in the library's models.
    pieces = [
        text
        for text, piece in zip(spelled_pieces(tokenizer), tokenizer.get_vocabulary())
        if not _SPECIAL.fullmatch(piece)
    ]
    texts = sample_texts(pieces)
    restore_kernels(tokenizer)
    # In a graph, as it will be used.
    (ids,) = tf.data.Dataset.from_tensors(tf.constant(texts)).map(tokenizer)
    different = [
        f"{text!r}: {expected} there, {found} here"
        for text, expected, found in zip(
            texts, (e.ids for e in reference.encode_batch(texts)), ids.to_list()
        )
        if expected != found
    ]
    if different:
        raise ValueError(
            f"{path!r} must describe a tokenizer whose ids tfeff's "
            f"{type(tokenizer).__name__} gives too. Of {len(different)} among "
            f"{len(texts)} texts they differ: {'; '.join(different[:_SHOWN])}"
        )
