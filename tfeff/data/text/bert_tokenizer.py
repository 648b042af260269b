import os
import re
from typing import Any

import keras
import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

from tfeff.compat.tokenizers import OpenWordPiece
from tfeff.data.text.flat import joined
from tfeff.encoders import Encoder
from tfeff.encoders.preset_mixins import TokenizerFiles
from tfeff.utils.checks import check_bool
from tfeff.utils.types import Config, Tensor

_MAX_CHARACTERS = 100


class _WordPiece(tf_text.FastWordpieceTokenizer):
    """WordPiece of words; a word of too many characters is unknown."""

    def __init__(self, unknown_token, **kwargs):
        super().__init__(unknown_token=unknown_token, **kwargs)
        self._unknown = unknown_token

    def tokenize(self, input):
        # On ragged words, `where` would pad each row to the longest one.
        return super().tokenize(tf.ragged.map_flat_values(self._known, input))

    def _known(self, words):
        too_long = tf.strings.length(words, unit="UTF8_CHAR") > _MAX_CHARACTERS
        return tf.where(too_long, self._unknown, words)


# What TensorFlow's `lower` changes otherwise: a final Σ, as BERT lowercases letters
# without context; and where the process has a Turkish, an Azerbaijani or a Lithuanian
# locale, İ, and letters whose dot stays below an accent.
_LOWERED = {"Σ": "σ", "İ": "i\u0307", "Į": "į", "Ì": "ì", "Í": "í", "Ĩ": "ĩ"}


@keras.saving.register_keras_serializable(package="tfeff")
class BertTokenizer(TokenizerFiles, OpenWordPiece, keras_hub.tokenizers.BertTokenizer):
    """KerasHub's WordPiece tokenizer, preceded by BERT's own clean-up of the text.

    White space of any kind becomes a space, other invisible characters are removed, and
    text is lowercased letter by letter. KerasHub's own `lowercase` also replaces "…" by
    "..." and "½" by "1⁄2", unlike BERT. A word of more than 100 characters is unknown;
    KerasHub's limit is 100 bytes.

    Args:
        vocabulary: list of the pieces in the order of their ids, or the path of a file.
        lowercase: whether text is lowercased.
        compose: whether a letter and the accents behind it become one character first
            (Unicode NFC), if there is one. Hugging Face's slow tokenizer does it, the
            fast one and BERT's own do not; where accents are stripped, it changes
            nothing.
        **kwargs: arguments of `keras_hub.tokenizers.BertTokenizer`, such as
            `strip_accents`, which uncased models need as well.

    Raises:
        ValueError: if the vocabulary lacks a special token.

    Example:

    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cafe", "…"]
    >>> tokenizer = BertTokenizer(pieces, lowercase=True, strip_accents=True)
    >>> [int(id) for id in tokenizer("Café…")]
    [5, 6]

    Reference:
        Devlin et al., "BERT", section 3.
    """

    # KerasHub finds the tokenizer of a preset by the class of its backbone.
    backbone_cls = Encoder

    def __init__(
        self,
        vocabulary: Any = None,
        lowercase: bool = False,
        compose: bool = True,
        **kwargs: Any,
    ):
        super().__init__(vocabulary, lowercase=False, **kwargs)
        self.to_lower = check_bool("lowercase", lowercase)
        self.compose = check_bool("compose", compose)

    def tokenize(self, inputs: Tensor) -> Tensor:
        text = clean_text(inputs, self.compose)
        if self.to_lower:
            text = tf.ragged.map_flat_values(self._lower, text)
        return super().tokenize(text)

    def _lower(self, text):
        if not (self.split and self.special_tokens_in_strings):
            return lower_text(text)
        # Special tokens within a text are not lowercased.
        others = super().get_config()["special_tokens"] or []
        special = sorted({*self.special_tokens, *others}, key=len, reverse=True)
        pattern = "|".join(re.escape(token) for token in special)
        parts = tf_text.regex_split(tf.reshape(text, [-1]), pattern, pattern)
        is_special = tf.strings.regex_full_match(parts.flat_values, pattern)
        values = tf.where(is_special, parts.flat_values, lower_text(parts.flat_values))
        lower = joined(parts.with_flat_values(values))
        return tf.reshape(lower, tf.shape(text))

    def make_fast_word_piece(self) -> _WordPiece:
        # KerasHub's limit of a word is 100 bytes, BERT's 100 characters.
        return _WordPiece(
            vocab=self.vocabulary,
            token_out_type=self.compute_dtype,
            suffix_indicator=self.suffix_indicator,
            max_bytes_per_word=4 * _MAX_CHARACTERS,
            unknown_token=self.oov_token,
            no_pretokenization=True,
            support_detokenization=True,
        )

    def pieces_of_word(self, word: str) -> list[str]:
        # Outside graphs, KerasHub matches the longest pieces from the left in Python.
        if len(word) > _MAX_CHARACTERS:
            return [self.oov_token]
        pieces, start = [], 0
        while start < len(word):
            mark = self.suffix_indicator if start else ""
            for end in range(len(word), start, -1):
                piece = mark + word[start:end]
                if self.has_piece(piece):
                    break
            else:
                return [self.oov_token]
            pieces.append(piece)
            start = end
        return pieces

    def load_assets(self, dir_path: str) -> None:
        # KerasHub strips white space from pieces.
        path = os.path.join(dir_path, "vocabulary.txt")
        with open(path, encoding="utf-8", newline="\n") as file:
            self.set_vocabulary([line.removesuffix("\n") for line in file])

    def get_config(self) -> Config:
        config = super().get_config()
        # KerasHub's configuration lacks `split_on_cjk`.
        config.update(lowercase=self.to_lower, split_on_cjk=self.split_on_cjk)
        if not self.compose:  # Left out where True, as fingerprints know it.
            config["compose"] = False
        return config


def clean_text(text: Tensor, compose: bool) -> Tensor:
    """Replaces white space by spaces, removes what is invisible, and composes."""
    text = tf.strings.regex_replace(text, r"[\t\n\r\p{Z}]", " ")
    text = tf.strings.regex_replace(text, r"[\p{C}\x{FFFD}]", "")
    return tf_text.normalize_utf8(text, "NFC") if compose else text


def lower_text(text: Tensor) -> Tensor:
    """Lowercases each letter without its context, whatever the process's locale."""
    text = tf.strings.lower(text)  # ASCII, I and J with it, as in no other locale.
    for letter, small in _LOWERED.items():
        text = tf.strings.regex_replace(text, letter, small)
    return tf.strings.lower(text, encoding="utf-8")
