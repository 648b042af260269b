"""Rows of features as batches, in orders of a seed and filled up with padding."""

import numpy as np
import tensorflow as tf

from tfeff.data.dataset_options import finalize
from tfeff.data.example_order import epoch_rows
from tfeff.utils.checks import check_bool, check_integer


class FeatureRows:
    """N rows of token ids as an encoder reads them, ready to train on.

    A subclass makes the batches; its docstring says what they hold.

    Args:
        count: N, the number of rows.
        tokens: `[M, (T)]`, the rows, or the texts that they are made of.
        sequence_length: T, the length of all rows.
        pad_token_id: the token behind those of a row.
    """

    batches_by = "x.dataset(batch_size=16)"  # How batches of `x` are made.
    least_rows = 1  # The smallest `batch_size`.

    def __init__(
        self,
        count: int,
        tokens: tf.RaggedTensor,
        sequence_length: int,
        pad_token_id: int,
    ) -> None:
        self.sequence_length = sequence_length
        self._count = count
        self._tokens = tokens
        self._pad_token_id = pad_token_id

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        of = f"{len(self):,} rows: sequence_length={self.sequence_length}"
        return f"<{type(self).__name__} of {of}>"

    @property
    def token_ids(self) -> np.ndarray:
        """The token ids of all rows, one row after the other, without padding.

        Of rows that are made of texts, those of each different text once.
        """
        return self._tokens.flat_values.numpy()

    @property
    def inputs(self) -> dict[str, np.ndarray]:
        """All inputs, int32: `token_ids`, `segment_ids` and `padding_mask`.

        Each has the shape that it has in a batch, with N rows.
        """
        rows = tf.range(len(self), dtype=tf.int64)
        inputs, *_ = self._batch(rows, self.sequence_length)
        return {name: tensor.numpy() for name, tensor in inputs.items()}

    def dataset(
        self,
        batch_size: int,
        seed: int = 0,
        *,
        shuffle: bool = True,
        repeat: bool = True,
        pad_to_longest: bool = False,
    ) -> tf.data.Dataset:
        """Batches to train on or to evaluate.

        The order is a function of `(seed, epoch)` alone, a full permutation of the
        rows. Epochs follow one another without a gap. All batches are of one size:
        where an epoch ends without another one, the last is filled up with rows of
        padding of weight 0: with `shuffle=False` and `repeat=False`, predictions are
        the first N of `model.predict`. A data set that is read again begins again, with
        the order of the first epoch: for several epochs, give `fit` an endless one and
        `steps_per_epoch`, and a further `fit` another `seed`.

        Args:
            batch_size: B, rows in a batch, at least `least_rows`.
            seed: chooses the order, in [−2⁶³, 2⁶³).
            shuffle: False gives the order of the rows.
            repeat: False gives one epoch.
            pad_to_longest: rows as long as the batch's longest, which is faster,
                instead of T, which a TPU needs.

        Returns:
            A `tf.data.Dataset` of the batches that the class describes.

        Raises:
            ValueError: if an argument is out of range.
            TypeError: if an argument has the wrong type.

        Example: see `text_features`, `token_features` and `sentence_features`.
        """
        batch_size = check_integer("batch_size", batch_size, self.least_rows)
        padded = check_bool("pad_to_longest", pad_to_longest)
        length = None if padded else self.sequence_length
        rows = epoch_rows(len(self), batch_size, seed, shuffle=shuffle, repeat=repeat)
        batches = rows.map(
            lambda rows: self._batch(rows, length), num_parallel_calls=tf.data.AUTOTUNE
        )
        return finalize(batches)

    def _batch(self, rows: tf.Tensor, length: int | None) -> tuple:
        """The batch of the rows of these numbers `[B]` int64, N for one of padding.

        The length of its rows is that of the longest where `length` is None.
        """
        raise NotImplementedError


def with_empty(rows: tf.RaggedTensor, count: int = 1) -> tf.RaggedTensor:
    """The rows `[N, (T)]` and `count` empty ones, which fill up batches."""
    empty = tf.RaggedTensor.from_row_lengths(
        tf.zeros([0], rows.dtype), tf.zeros([count], tf.int64)
    )
    return tf.concat([rows, empty], axis=0)
