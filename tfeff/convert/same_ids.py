"""Comparison of tfeff's tokenizers with the `tokenizers` library's, by their ids."""

import itertools
import random
import re
import unicodedata
from collections.abc import Iterator, Sequence

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
_AT_MOST = 1_000
_PIECES_A_TEXT = 16
# To compare what tfeff writes: case, accents, composed and not, compatibility forms,
# white space, punctuation, numbers, quotes, scripts with and without spaces, emoji,
# invisible characters.
TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "She didn't say: \"We'll be back at 10:30, on 3/4!\"",
    "Café, naïve and über-cool São Paulo; the fiancée's résumé.",
    "It cost $1,234.56 (about 9,000 yen) in 2019, or 50% of it, 7, 8, and 9,",
    "  Tabs\tand   spaces\nand lines\r\nand more  ",
    "`` Quoted '' words -- and a well-known ellipsis... [x] {y} <z> #1 @home",
    "UPPER lower MiXeD iPhone NASA e.g. U.S.A. ΑΒΓ ДОМ ÉTÉ ŐZ",
    "日本語 and 中文 text, with ελληνικά and русский. 漢字かな が ガ",
    "unbelievably uncharacteristically zzzzqqq antidisestablishmentarianism",
    "½ ﬁne ① x² ™ straße Å ℃ … 「quoted」 “quoted” ‘q’ « q »",
    "zero\u200bwidth a\u00a0b soft\u00adhyphen \ufeffbom a\x01b \u3000wide",
    "e\u0301te\u0301 a\u0308 n\u0303 한국어 \u1112\u1161\u11ab Việt Nam tiếng",
    "العربية עברית हिन्दी ไทย ქართული հայերեն Ọjọ́ ẹ́ àbá İstanbul",
    "🙂 👍🏽 👩‍👩‍👧 ☃ ♥ → ≤ ∑ €5 £6 ¥7",
    "http://example.org/a_b?c=d&e=f#g foo.bar@example.com C++ a*b^c~d|e\\f",
    "",
    " ",
    "a",
    ".",
)
# To compare files that tfeff reads. With other texts, other files would be refused.
_READ_TEXTS = [
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


def is_special(piece: str) -> bool:
    """Whether a piece of a vocabulary stands for no text, as `[CLS]` and `<s>` do."""
    return _SPECIAL.fullmatch(piece) is not None


def sample_texts(pieces: Sequence[str]) -> list[str]:
    """Texts on which tokenizers are likely to differ; the same for equal pieces.

    They are fixed ones, one for each part of the code points assigned in Unicode 3.2,
    which all libraries know, some of the pieces, and a mix of everything. None begins
    or ends with white space.

    Args:
        pieces: what the vocabulary's pieces spell.
    """
    generator = random.Random(0)
    texts = list(_READ_TEXTS)
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
    parts = [part for text in _READ_TEXTS for part in text.split() if len(part) < 20]
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
    """Raises unless a tokenizer that was made of a file gives the library's ids.

    Args:
        path: the file that the reference is of.
        tokenizer: the made tokenizer.
        reference: the library's.

    Raises:
        ValueError: with texts of which the ids differ, and both ids.
    """
    # Special pieces are plain text in tfeff, but pieces in the library's models.
    pieces = [
        text
        for text, piece in zip(spelled_pieces(tokenizer), tokenizer.get_vocabulary())
        if not is_special(piece)
    ]
    texts = sample_texts(pieces)
    restore_kernels(tokenizer)
    # It runs in a graph, as it will be used.
    (ids,) = tf.data.Dataset.from_tensors(tf.constant(texts)).map(tokenizer)
    if different := _different_ids(texts, ids.to_list(), reference):
        shown = [f"{text!r}: {b} there, {a} here" for text, a, b in different[:_SHOWN]]
        raise ValueError(
            f"{path!r} must describe a tokenizer whose ids tfeff's "
            f"{type(tokenizer).__name__} gives too. Of {len(different)} among "
            f"{len(texts)} texts they differ: {'; '.join(shown)}"
        )


def check_written_ids(
    tokenizer: keras_hub.tokenizers.Tokenizer, written: tokenizers.Tokenizer
) -> None:
    """Raises unless the library, by what was written, gives the tokenizer's ids.

    The texts are `TEXTS` and others that are made of the vocabulary's pieces.

    Args:
        tokenizer: a tokenizer of KerasHub.
        written: the library's.

    Raises:
        ValueError: if ids differ; the message shows texts and ids.
    """
    texts = [*TEXTS, *itertools.islice(_piece_texts(tokenizer), _AT_MOST)]
    ids = [[int(i) for i in row] for row in tokenizer(texts)]
    if different := _different_ids(texts, ids, written):
        shown = [f"{text!r} is {a}, not {b}" for text, a, b in different[:_SHOWN]]
        advice = (
            ". A `tfeff.data.BertTokenizer` of its vocabulary gives them"
            if type(tokenizer) is keras_hub.tokenizers.BertTokenizer
            else ""
        )
        raise ValueError(
            "`tokenizer` must give the ids that Hugging Face's tokenizers give with "
            f"its settings. Received: {len(different)} of {len(texts)} texts whose ids "
            f"differ: {'; '.join(shown)}{advice}"
        )


def _different_ids(texts, ids, reference):
    """The texts of which the library gives other ids, with the given ones and its own.

    Of a Unigram model the order of ids may differ: where two ways to cut a text have
    equal scores, such as "000" into "00" and "0", rounding decides which one is taken.

    Args:
        texts: strings.
        ids: lists of the ids of each text.
        reference: the library's tokenizer; it adds no special tokens here.
    """
    key = sorted if isinstance(reference.model, tokenizers.models.Unigram) else list
    encoded = reference.encode_batch(texts, add_special_tokens=False)
    rows = zip(texts, ids, [row.ids for row in encoded], strict=True)
    return [row for row in rows if key(row[1]) != key(row[2])]


def _piece_texts(tokenizer) -> Iterator[str]:
    """Texts of all pieces of a vocabulary, in its order."""
    pieces = itertools.filterfalse(is_special, tokenizer.get_vocabulary())
    word_piece = isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer)
    while chunk := list(itertools.islice(pieces, _PIECES_A_TEXT)):
        if word_piece:
            text = "".join(p[2:] if p.startswith("##") else f" {p}" for p in chunk)
        else:
            text = "".join(chunk).replace("\u2581", " ")
        yield text
