"""Texts to learn embeddings from, as rows of token ids."""

from collections.abc import Sequence

import keras_hub
import tensorflow as tf

from tfeff.data.finetuning.columns import check_texts
from tfeff.data.finetuning.encoding import encode
from tfeff.data.finetuning.examples import SentenceExamples, TextExamples
from tfeff.data.finetuning.feature_rows import FeatureRows, with_empty
from tfeff.data.finetuning.packing import is_cut, pack, padded_inputs
from tfeff.data.text.tokenizers import FRAME_NAMES, special_token_ids
from tfeff.utils.checks import check_integer


class SentenceFeatures(FeatureRows):
    """Rows of texts as an encoder reads them, ready to train on.

    A batch is `(inputs, text_ids, weights)`: a dictionary of `token_ids`, `segment_ids`
    and `padding_mask`, int32 `[B, K, T]`; int32 `[B, K]`, equal for equal texts and -1
    for padding; float32 `[B]`, 1 or 0.

    Attributes:
        num_texts: K, the texts of a row; 2 of texts alone, which come twice.
        sequence_length: T, the length of all texts.
        least_rows: of a batch, 2 unless there are hard negatives: the other rows are
            what a text is contrasted with.
        num_cut: how many rows have a text that is longer than T and was cut.
    """

    def __init__(self, tokens, text_ids, sequence_length, pad_token_id, cut):
        # Each different text has its tokens once; an empty one fills up batches.
        tokens = with_empty(tokens)
        super().__init__(text_ids.shape[0], tokens, sequence_length, pad_token_id)
        self.num_texts = text_ids.shape[1]
        self.least_rows = 2 if self.num_texts == 2 else 1
        self.num_cut = int(tf.gather(cut, text_ids).numpy().any(axis=1).sum())
        self._text_ids = tf.pad(text_ids, [[0, 1], [0, 0]], constant_values=-1)

    def _batch(self, rows, length):
        text_ids = tf.gather(self._text_ids, rows)
        texts = tf.reshape(text_ids, [-1])
        # The empty text is the last one.
        last = tf.cast(self._tokens.nrows(), tf.int32) - 1
        tokens = tf.gather(self._tokens, tf.where(texts < 0, last, texts))
        ends = tf.cast(tokens.row_lengths(), tf.int32)  # There is no second text.
        inputs = padded_inputs(tokens, ends, self._pad_token_id, length)
        longest = length or tf.shape(inputs["token_ids"])[1]
        shape = [rows.shape[0], self.num_texts, longest]
        inputs = {name: tf.reshape(x, shape) for name, x in inputs.items()}
        return inputs, text_ids, tf.cast(rows < len(self), tf.float32)


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
        ValueError: if `sequence_length` is out of range, or the tokenizer pads,
            truncates, adds marks by itself or gives strings.
        TypeError: if an argument is of another type, or the tokenizer has no `[CLS]`,
            `[SEP]` or padding.

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
    special_token_ids(tokenizer, FRAME_NAMES)
    sequence_length = check_integer("sequence_length", sequence_length, 3)
    texts = list(dict.fromkeys(text for row in examples.rows for text in row))
    index_of = {text: index for index, text in enumerate(texts)}
    encoded = encode(tokenizer, texts)
    tokens, _ = pack(encoded, None, tokenizer, sequence_length)
    alone = len(examples.rows[0]) == 1
    rows = [row * 2 if alone else row for row in examples.rows]
    text_ids = tf.constant([[index_of[text] for text in row] for row in rows])
    return SentenceFeatures(
        tokens,
        text_ids,
        sequence_length,
        tokenizer.pad_token_id,
        is_cut(encoded, None, tokenizer, sequence_length),
    )


def texts_alone(texts: Sequence[str]) -> TextExamples:
    """Texts without labels; raises where one is empty."""
    texts = check_texts("texts", texts)
    for index, text in enumerate(texts):
        if not text.strip():
            raise ValueError(
                f"`texts` must have no empty text. Received: {text!r:.80} at {index}"
            )
    if not texts:
        raise ValueError("`texts` must hold texts. Received: none")
    return TextExamples(texts)
