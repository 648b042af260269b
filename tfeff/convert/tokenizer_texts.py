"""Texts on which two tokenizers are compared."""

import itertools
from collections.abc import Iterator

import keras_hub
import tokenizers

# Case, accents, composed and not, compatibility forms, white space, punctuation,
# numbers, quotes, scripts with and without spaces, emoji, invisible characters.
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
_AT_MOST = 1_000
_PIECES = 16


def check_same_ids(
    tokenizer: keras_hub.tokenizers.Tokenizer, other: tokenizers.Tokenizer
) -> None:
    """Raises unless both tokenizers give the same ids.

    The texts are `TEXTS` and others that are made of the vocabulary's pieces. Of
    SentencePiece the order may differ: where two ways to cut a text have equal scores,
    such as "000" into "00" and "0", rounding decides which one is taken.

    Args:
        tokenizer: a tokenizer of KerasHub.
        other: one of Hugging Face's library.

    Raises:
        ValueError: if ids differ; the message shows texts and ids.
    """
    texts = [*TEXTS, *itertools.islice(_of_pieces(tokenizer), _AT_MOST)]
    ours = [[int(i) for i in row] for row in tokenizer(texts)]
    theirs = [row.ids for row in other.encode_batch(texts, add_special_tokens=False)]
    rows = zip(texts, ours, theirs, strict=True)
    is_unigram = isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer)
    order = sorted if is_unigram else list
    different = [row for row in rows if order(row[1]) != order(row[2])]
    if different:
        shown = "; ".join(f"{t!r} is {a}, not {b}" for t, a, b in different[:3])
        raise ValueError(
            "`tokenizer` must give the ids that Hugging Face's tokenizers give with "
            f"its settings. Received: {len(different)} of {len(texts)} texts whose ids "
            f"differ: {shown}"
        )


def _of_pieces(tokenizer) -> Iterator[str]:
    """Texts of all pieces of a vocabulary, in its order."""
    pieces = iter(
        piece for piece in tokenizer.get_vocabulary() if piece[:1] not in ("[", "<")
    )
    word_piece = isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer)
    while chunk := list(itertools.islice(pieces, _PIECES)):
        if word_piece:
            text = "".join(p[2:] if p.startswith("##") else f" {p}" for p in chunk)
        else:
            text = "".join(chunk).replace("\u2581", " ")
        yield text
