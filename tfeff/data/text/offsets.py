"""Where the tokens of texts lie: what tokenizers of all kinds have in common."""

import keras_hub
import tensorflow as tf

from tfeff.data.text.characters import boundaries, is_invisible
from tfeff.data.text.flat import among, indices, row_ids


class OffsetTokenizer(tf.Module):
    """Ids of texts and where their tokens lie, in graphs too.

    Offsets are counted in characters (Unicode code points) of the text as it is,
    before any folding, without white space and invisible characters at either end. The
    symbol "▁" (U+2581), by which SentencePiece writes spaces, is white space to it.
    Tokens that share a character ("½" as "1", "⁄", "2", or as bytes) all cover it. A
    token of white space alone is empty: its start is its end.

    Args:
        tokenizer: the tokenizer of KerasHub.
        is_shown: bool `[V]`, whether each piece has characters that are seen.
        is_unseen: whether a character, by its code point, cannot be seen.

    Call arguments:
        text: string tensor `[B]`, UTF-8.

    Returns:
        Three ragged tensors `[B, (P)]` int32: ids, the tokens' first characters and
        the ones behind their last.
    """

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        is_shown,
        is_unseen=is_invisible,
    ):
        super().__init__()
        self.tokenizer = tokenizer
        self._is_shown = tf.constant(is_shown)
        self._unseen = boundaries(is_unseen)

    def encode(self, text, points, offsets):
        """Ids, starts and ends, in characters of all texts one after another.

        Args:
            text: string tensor `[B]`.
            points: ragged `[B, (C)]`, the code points of each text and of a space.
            offsets: ragged `[B, (C)]`, the byte at which each of them begins.

        Returns:
            Ragged ids `[B, (P)]`, and for all of them int64 starts and ends `[N]`.
        """
        raise NotImplementedError

    def __call__(self, text):
        # A space keeps the end of one text apart from the start of the next: from here
        # on, offsets count the characters of all texts one after another.
        points, offsets = tf.strings.unicode_decode_with_offsets(
            tf.strings.join([text, " "]), "UTF-8"
        )
        ids, starts, ends = self.encode(text, points, offsets)
        ids = tf.cast(ids, tf.int32)
        first = tf.gather(points.row_starts(), row_ids(ids))
        shown = tf.gather(self._is_shown, ids.flat_values)
        starts, ends = (
            ids.with_flat_values(tf.cast(offset - first, tf.int32))
            for offset in self._visible(points.flat_values, starts, ends, shown)
        )
        return ids, starts, ends

    def _visible(self, points, starts, ends, shown):
        """Cuts off what cannot be seen; a piece of no characters takes the next's."""
        visible = ~among(points, self._unseen)
        seen = indices(visible)
        rank = tf.cumsum(tf.cast(visible, tf.int64), exclusive=True)
        after = tf.concat([seen, [tf.size(points, tf.int64)]], axis=0)
        before = tf.concat([[0], seen + 1], axis=0)
        starts = tf.minimum(tf.gather(after, tf.gather(rank, starts)), ends)
        ends = tf.maximum(tf.gather(before, tf.gather(rank, ends)), starts)
        full = starts < ends
        following = tf.cumsum(tf.cast(full, tf.int64), exclusive=True)
        none = tf.constant([-1], tf.int64)
        next_start, next_end = (
            tf.gather(tf.concat([tf.gather(p, indices(full)), none], axis=0), following)
            for p in (starts, ends)
        )
        takes = ~full & shown & (starts == next_start)
        return starts, tf.where(takes, next_end, ends)
