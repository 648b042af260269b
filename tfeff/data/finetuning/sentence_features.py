"""Texts to learn embeddings from, as rows of token ids."""

from collections.abc import Sequence

import keras_hub
import tensorflow as tf

from tfeff.data.dataset_options import finalize
from tfeff.data.finetuning.encoding import encode
from tfeff.data.finetuning.examples import SentenceExamples, TextExamples
from tfeff.data.finetuning.packing import pack, padded_inputs
from tfeff.data.sampling import epoch_rows, shuffled
from tfeff.data.text.tokenizers import check_tokenizer
from tfeff.utils.checks import check_bool, check_integer, check_iterable


class SentenceFeatures:
    """Rows of texts as an encoder reads them, ready to train on.

    Attributes:
        num_texts: N, the texts of a row; 2 of texts alone, which come twice.
        sequence_length: T, the length of all texts.
    """

    def __init__(self, tokens, text_ids, sequence_length, pad_token_id):
        self.num_texts = text_ids.shape[1]
        self.sequence_length = sequence_length
        self._pad_token_id = pad_token_id
        self._count = text_ids.shape[0]
        # Of each different text once, and of an empty one to fill up batches with.
        empty = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), [0])
        self._tokens = tf.concat([tokens, empty], axis=0)
        self._text_ids = tf.pad(text_ids, [[0, 1], [0, 0]], constant_values=-1)

    def __len__(self) -> int:
        return self._count

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

        The order is as of `TextFeatures.dataset`.

        Args:
            batch_size: B, rows in a batch, at least 2 unless there are hard negatives:
                the other rows are what a text is contrasted with.
            seed: chooses the order, in [−2⁶³, 2⁶³).
            shuffle: False gives the order of the examples.
            repeat: False gives one epoch, whose last batch is filled up with rows of
                padding of weight 0.
            pad_to_longest: texts as long as the batch's longest, which is faster,
                instead of T, which a TPU needs.

        Returns:
            A `tf.data.Dataset` of `(inputs, text_ids, weights)`: a dictionary of int32
            `[B, N, T]`; int32 `[B, N]`, equal for equal texts and -1 for padding;
            float32 `[B]`, 1 or 0.

        Raises:
            ValueError: if an argument is out of range.
            TypeError: if an argument has the wrong type.

        Example: see `sentence_features`.
        """
        batch_size = check_integer(
            "batch_size", batch_size, 2 if self.num_texts == 2 else 1
        )
        padded = check_bool("pad_to_longest", pad_to_longest)
        length = None if padded else self.sequence_length

        def batch(rows):
            text_ids = tf.gather(self._text_ids, rows)
            texts = tf.reshape(text_ids, [-1])
            # The empty text is the last one.
            last = tf.cast(self._tokens.nrows(), tf.int32) - 1
            tokens = tf.gather(self._tokens, tf.where(texts < 0, last, texts))
            ends = tf.cast(tokens.row_lengths(), tf.int32)  # There is no second text.
            inputs = padded_inputs(tokens, ends, self._pad_token_id, length)
            shape = [
                batch_size,
                self.num_texts,
                length or tf.shape(inputs["token_ids"])[1],
            ]
            inputs = {name: tf.reshape(x, shape) for name, x in inputs.items()}
            return inputs, text_ids, tf.cast(rows < len(self), tf.float32)

        rows = epoch_rows(
            len(self), batch_size, seed, shuffle=shuffle, repeat=repeat, order=shuffled
        )
        return finalize(rows.map(batch, num_parallel_calls=tf.data.AUTOTUNE))


def sentence_features(
    examples: SentenceExamples,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
) -> SentenceFeatures:
    """Turns texts to learn embeddings from into rows of token ids.

    Each text becomes `[CLS] text [SEP]`, cut at its end where it is too long.

    Args:
        examples: texts alone, pairs or triplets.
        tokenizer: the KerasHub tokenizer of the encoder.
        sequence_length: T, at least 3.

    Returns:
        The rows.

    Raises:
        ValueError: if `sequence_length` is out of range.
        TypeError: if an argument is of another type.

    Example:
    ```python
    import tfeff

    pairs = [("a sunny day", "the sun shines"), ("a cat", "a feline")]
    examples = tfeff.data.SentenceExamples(rows=pairs)
    tokenizer = tfeff.data.train_tokenizer([" ".join(pair) for pair in pairs], 20)
    features = tfeff.data.sentence_features(examples, tokenizer, sequence_length=8)
    inputs, text_ids, weights = next(iter(features.dataset(batch_size=2)))
    assert inputs["token_ids"].shape == (2, 2, 8)
    ```

    Reference:
        Gao et al., "SimCSE: Simple Contrastive Learning of Sentence Embeddings", 2021,
        sections 3 and 4.
    """
    if not isinstance(examples, SentenceExamples):
        raise TypeError(
            "`examples` must be `SentenceExamples`. Received: examples of type "
            f"{type(examples).__name__}"
        )
    check_tokenizer(tokenizer)
    sequence_length = check_integer("sequence_length", sequence_length, 3)
    texts = list(dict.fromkeys(text for row in examples.rows for text in row))
    index_of = {text: index for index, text in enumerate(texts)}
    tokens, _ = pack(encode(tokenizer, texts), None, tokenizer, sequence_length)
    alone = len(examples.rows[0]) == 1
    rows = [row * 2 if alone else row for row in examples.rows]
    text_ids = tf.constant([[index_of[text] for text in row] for row in rows])
    return SentenceFeatures(tokens, text_ids, sequence_length, tokenizer.pad_token_id)


def texts_alone(texts: Sequence[str]) -> TextExamples:
    """Texts without labels; raises where one is empty."""
    texts = tuple(check_iterable("texts", texts, "a list of strings"))
    for index, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"`texts` must be a list of strings. Received: {text!r:.80} at {index}"
            )
        if not text.strip():
            raise ValueError(
                f"`texts` must have no empty text. Received: {text!r:.80} at {index}"
            )
    if not texts:
        raise ValueError("`texts` must hold texts. Received: none")
    return TextExamples(
        first=texts,
        second=None,
        labels=None,
        label_names=None,
        ids=tuple(range(len(texts))),
    )
