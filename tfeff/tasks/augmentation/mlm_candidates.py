"""Whole words that a masked language model predicts at a masked token."""

import re
from collections.abc import Iterator, Sequence

import keras
import numpy as np
import tensorflow as tf

from tfeff.data.text.characters import letters
from tfeff.data.text.pieces import spelled_pieces
from tfeff.objectives import MaskedLM
from tfeff.tasks.augmentation.word_vectors import WordVectors
from tfeff.tasks.encoder_limits import check_vocabulary
from tfeff.utils.backend import check_tensorflow


class MLMCandidates:
    """Candidates for words, from a masked language model and its token table.

    Args:
        model: a `tfeff.objectives.MaskedLM`.
        tokenizer: the SentencePiece or WordPiece tokenizer that it was trained with.
        count: integer, the number of words that `likeliest` returns for a token.
        batch_size: integer, masked tokens in a batch of the model.

    Raises:
        TypeError: if `model` is something else.
        ValueError: if the tokenizer has more ids than the model, or no whole words; if
            the model's token table is not finite; on another backend than TensorFlow.
    """

    def __init__(self, model, tokenizer, count: int, batch_size: int):
        check_tensorflow("`augment` with a masked language model")
        if not isinstance(model, MaskedLM):
            raise TypeError(
                "`masked_lm` must be a `tfeff.objectives.MaskedLM`. "
                f"Received: masked_lm={model!r:.80}"
            )
        check_vocabulary("tokenizer", tokenizer, model.encoder)
        self.tokenizer = tokenizer
        words = whole_words(tokenizer)
        if not words:
            raise ValueError(
                "`tokenizer` must have pieces that are whole words. Received: none"
            )
        # The dtype is object: many masked tokens share the same few thousand texts.
        self._words = np.array([word for _, word in words], dtype=object)
        self._ids = np.array([id for id, _ in words], np.int32)
        self._table = _token_table(model.encoder.token_embedding)
        rows = self._table[self._ids]
        if not np.isfinite(rows).all():
            raise ValueError(
                "`masked_lm` must have a token table of finite numbers. Received: "
                f"masked_lm={model!r}, whose table has others"
            )
        self._vectors = WordVectors(self._words.tolist(), rows)
        self._count = min(count, len(words))
        self._batch_size = batch_size
        # It limits encoders without absolute positions, too, which could read more.
        self._length = model.encoder.max_sequence_length - 2
        self._pads_fully = model.encoder.length_dependent

        rows = tf.TensorSpec([None, None], tf.int32)

        @tf.function(input_signature=[rows, rows, rows])
        def top(ids, mask, positions):
            inputs = {
                "token_ids": ids,
                "segment_ids": tf.zeros_like(ids),
                "padding_mask": mask,
                "mask_positions": positions,
            }
            logits = tf.cast(model(inputs, training=False)[:, 0], tf.float32)
            logits = tf.gather(logits, self._ids, axis=-1)
            return tf.math.top_k(logits, self._count).indices

        self._top = top

    def near(self, ids: Sequence[int], count: int, word: str) -> list[str]:
        """The words nearest to the mean of the pieces' rows, except the word itself."""
        mean = self._table[list(ids)].mean(axis=0)
        return self._vectors.nearest(mean, count, other_than=word)

    def likeliest(self, masked: Sequence[tuple]) -> Iterator[list[str]]:
        """Yields the likeliest words at each masked token, the likeliest first.

        Args:
            masked: pairs of a text's ids and the position to mask.
        """
        special = self.tokenizer
        for start in range(0, len(masked), self._batch_size):
            batch = masked[start : start + self._batch_size]
            rows, positions = zip(*(self._masked(*pair) for pair in batch))
            length = self._length if self._pads_fully else max(map(len, rows))
            ids = np.full((len(batch), length + 2), special.pad_token_id, np.int32)
            mask = np.zeros_like(ids)
            for index, row in enumerate(rows):
                whole = [special.cls_token_id, *row, special.sep_token_id]
                ids[index, : len(whole)] = whole
                mask[index, : len(whole)] = 1
            # [CLS] shifts positions by 1.
            found = self._top(ids, mask, np.array(positions, np.int32)[:, None] + 1)
            yield from self._words[found.numpy()].tolist()

    def _masked(self, ids, position):
        """The ids around the position, as many as fit, with `[MASK]` at it."""
        first = max(0, min(position - self._length // 2, len(ids) - self._length))
        row = ids[first : first + self._length].copy()
        row[position - first] = self.tokenizer.mask_token_id
        return row, position - first


def _token_table(embedding):
    """The rows of a token table `[V, D]`; those of a quantized one as it gives them.

    A quantized layer's own weights are integers, without the scales of the rows.
    """
    rows = embedding.embeddings
    if embedding.quantization_mode is not None:
        rows = embedding(np.arange(embedding.input_dim, dtype=np.int32))
        rows = keras.ops.cast(rows, "float32")
    return keras.ops.convert_to_numpy(rows)


def whole_words(tokenizer) -> list[tuple[int, str]]:
    """Ids and words of the pieces that are whole words of letters or digits."""
    special = set(tokenizer.special_token_ids)
    pieces = list(enumerate(spelled_pieces(tokenizer)))
    word_of_letters = re.compile(letters())
    spaced = any(piece.startswith(" ") for _, piece in pieces)
    words = []
    for id, piece in pieces:
        if id in special or piece.startswith(" ") != spaced:
            continue
        word = piece.removeprefix(" ")
        if word_of_letters.fullmatch(word):
            words.append((id, word))
    return words
