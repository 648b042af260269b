"""Texts with characters that tokenizers change, and word pieces of them."""

import string

from tfeff.data.text.bert_tokenizer import BertTokenizer

CORPUS = [
    "The quick brown fox jumps over the lazy dog, 1234567890 times.",
    "Café naïve Ünïcode über résumé; 漢字 and (brackets) 'quoted' \"words\"",
    "pack my box with five dozen liquor jugs. " * 3,
]
# Joined at random, they are texts that few tokenizers read alike.
FRAGMENTS = [
    *("a", "b", "c", "x", "fox", "T", "H", "E", "é", "0", "12", "9", ".", ",", "-"),
    *("'", '"', "(", ")", "$", " ", "  ", "\t", "\n", "漢", "字", "ß", "½", "ﬁ", "İ"),
    *("e\u0301", "\u0301", "\u200b", "\u00a0", "\u2028", "\x1c", "☃", "😀", "▁"),
    *("\x00", "[CLS]", "##a", "Ａ", "…", "ｶﾞ", "한", "The", "quick"),
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def word_piece_vocabulary():
    words = ["the", "quick", "brown", "fox", "cafe", "naive", "uber", "wrote", "it"]
    characters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    return [*SPECIAL, *words, *characters, "漢", *(f"##{c}" for c in characters)]


def word_pieces():
    return BertTokenizer(word_piece_vocabulary(), lowercase=True, strip_accents=True)
