"""Where SentencePiece's pieces and the byte pairs of RoBERTa lie in a text."""

import tensorflow as tf

from tfeff.compat.tokenizers import sentence_piece
from tfeff.data.text.characters import SPACE, is_invisible_in_pieces
from tfeff.data.text.flat import row_ids, sums
from tfeff.data.text.offsets import OffsetTokenizer


class SentencePieceOffsets(OffsetTokenizer):
    """Those of a SentencePiece tokenizer, which tells the bytes of each piece."""

    def __init__(self, tokenizer):
        is_shown = [bool(piece.strip(SPACE)) for piece in tokenizer.get_vocabulary()]
        super().__init__(tokenizer, is_shown, is_invisible_in_pieces)

    def encode(self, text, points, offsets):
        encode = sentence_piece(self.tokenizer).tokenize_with_offsets
        ids, starts, ends = encode(text)
        size = tf.cast(tf.strings.length(text), tf.int64) + 1
        before = tf.cumsum(size, exclusive=True)
        known = offsets.flat_values + tf.gather(before, row_ids(offsets))
        shift = tf.gather(before, row_ids(ids))
        starts, ends = (
            tf.searchsorted(known, offset.flat_values + shift, out_type=tf.int64)
            for offset in (starts, ends)
        )
        return ids, starts, ends


class BytePairOffsets(OffsetTokenizer):
    """Those of a `tfeff.data.RobertaTokenizer`, by the bytes of each piece."""

    def __init__(self, tokenizer):
        parts = tokenizer.piece_bytes()
        super().__init__(tokenizer, [bool(part.strip()) for part in parts])
        self._lengths = tf.constant([len(part) for part in parts], tf.int64)

    def encode(self, text, points, offsets):
        ids = self.tokenizer.tokenize(text)
        size = tf.cast(tf.strings.length(text), tf.int64) + 1
        before = tf.cumsum(size, exclusive=True)
        length = tf.gather(self._lengths, ids.flat_values)
        row = row_ids(ids)
        # The space that the tokenizer puts before a text is not one of its bytes.
        added = sums(length, row, ids.nrows()) - (size - 1)
        done = tf.cumsum(length) - tf.gather(
            tf.cumsum(size - 1 + added, exclusive=True), row
        )
        first = tf.gather(before, row)
        start, end = (
            first + tf.maximum(done - less - tf.gather(added, row), 0)
            for less in (length, 0)
        )
        # A piece may begin or end within a character, which it then covers.
        known = offsets.flat_values + tf.gather(before, row_ids(offsets))
        starts = tf.searchsorted(known, start, "right", tf.int64) - 1
        ends = tf.searchsorted(known, end, "left", tf.int64)
        return ids, starts, ends
