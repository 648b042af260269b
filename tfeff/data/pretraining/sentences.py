"""Where sentences begin in rows of tokens, as far as their pieces tell."""

import unicodedata
from typing import NamedTuple

import keras_hub
import numpy as np
import tensorflow as tf

from tfeff.data.text.pieces import spelled_pieces

# Marks at the ends of sentences in Latin, East Asian, Indian and Arabic scripts.
_TERMINATORS = tuple(".!?…。！？｡।؟۔")
_QUOTES = "\"'"
# How Unicode's names of letters begin in scripts without spaces between words.
_WITHOUT_SPACES = (
    *("CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "BOPOMOFO", "YI "),
    *("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"),
)


class SentencePieces(NamedTuple):
    """The roles that each id of a vocabulary may have in a sentence, [V] bool each.

    Attributes:
        begins: may be the first token of a sentence.
        ends: ends a sentence, as "." does.
        closes: belongs to the sentence before it, as the quotes behind its end.
    """

    begins: np.ndarray
    ends: np.ndarray
    closes: np.ndarray


def sentence_pieces(
    tokenizer: keras_hub.tokenizers.Tokenizer, word_starts: np.ndarray
) -> SentencePieces:
    """The pieces of a tokenizer that begin, end or close a sentence.

    A sentence begins with a word, or with any letter of a script without spaces between
    words, such as Chinese or Thai; digits and marks of punctuation other than opening
    ones begin none, so that "3.14" and "..." are not cut.

    Args:
        tokenizer: any that `word_starts` takes.
        word_starts: [V] bool, as `tfeff.data.word_starts` gives.
    """
    begins = word_starts.copy()
    ends, closes = np.zeros_like(word_starts), np.zeros_like(word_starts)
    for index, spelled in enumerate(spelled_pieces(tokenizer)):
        text = spelled.strip()
        if not text:  # A space alone begins a word, whatever it is.
            continue
        first = unicodedata.category(text[0])
        if unicodedata.name(text[0], "").startswith(_WITHOUT_SPACES):
            begins[index] = True
        elif first[0] != "L" and first not in ("Ps", "Pi"):
            begins[index] = False
        closes[index] = all(map(_is_closing, text))
        while text and _is_closing(text[-1]):
            text = text[:-1]
        ends[index] = text.endswith(_TERMINATORS)
    return SentencePieces(begins, ends, closes)


def sentence_starts(token_ids: tf.Tensor, pieces: SentencePieces) -> tf.Tensor:
    """The places, [B, T] bool, at which another sentence begins than the row's first.

    Args:
        token_ids: [B, T] int32.
        pieces: of the vocabulary.
    """
    begins, ends, closes = (tf.gather(tf.constant(x), token_ids) for x in pieces)
    before, closed = _before(ends), _before(closes) & _before(_before(ends))
    return begins & (before | closed)


def _is_closing(character: str) -> bool:
    return character in _QUOTES or unicodedata.category(character) in ("Pe", "Pf")


def _before(values: tf.Tensor) -> tf.Tensor:
    """The value of the token before each."""
    return tf.pad(values[:, :-1], [[0, 0], [1, 0]])
