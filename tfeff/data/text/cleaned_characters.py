"""How many characters WordPiece's clean-up of a text makes of each character."""

import functools

import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

from tfeff.data.text.bert_tokenizer import BertTokenizer, clean_text, lower_text
from tfeff.data.text.characters import PLANES


def cleaned_characters(tokenizer) -> tuple[np.ndarray, np.ndarray]:
    """How many characters a WordPiece tokenizer's clean-up makes of each.

    An accent that is removed becomes 0 characters, a letter without its accent 1, and a
    decomposed syllable of Hangul 2 or 3. That accents behind a letter may be composed
    with it (NFC) is left out.

    Args:
        tokenizer: a WordPiece tokenizer of KerasHub.

    Returns:
        A step function: ascending code points `[N]` int32, and for each the number
        `[N]` int64 of itself and those up to the next.
    """
    is_own = isinstance(tokenizer, BertTokenizer)
    return _cleaned(
        is_own,
        is_own and tokenizer.compose,
        is_own and tokenizer.to_lower,
        bool(tokenizer.strip_accents),
        bool(tokenizer.lowercase),
    )


@functools.cache
def _cleaned(is_own, compose, to_lower, strip_accents, fold):
    # The first of each run of other planes: theirs are unassigned, or private.
    points = sorted({*PLANES, 0x40000, 0xF0000} - {*range(0xD800, 0xE000)})
    points = np.array(points, np.int32)
    with tf.init_scope(), tf.device("CPU"):
        text = tf.constant([chr(point) for point in points])
        if is_own:
            text = clean_text(text, compose)
        if to_lower:
            text = lower_text(text)
        if strip_accents:  # From here on as in KerasHub.
            text = tf_text.normalize_utf8(text, "NFD")
            text = tf.strings.regex_replace(text, r"\p{Mn}", "")
        if fold:
            text = tf_text.case_fold_utf8(text)
        counts = tf.strings.length(text, unit="UTF8_CHAR").numpy()
    changes = np.flatnonzero(np.diff(counts, prepend=-1))
    return points[changes], counts[changes].astype(np.int64)
