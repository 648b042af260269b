"""Sentences of labelled words as rows of tokens, and labels of tokens back to words."""

import keras_hub
import numpy as np
import tensorflow as tf

from tfeff.data.finetuning.examples import TokenExamples
from tfeff.data.finetuning.feature_rows import FeatureRows, with_empty
from tfeff.data.finetuning.packing import padded_inputs
from tfeff.data.finetuning.word_rows import TEXT_FRAME, word_pieces, word_rows
from tfeff.data.text.tokenizers import (
    FRAME_NAMES,
    restore_kernels,
    special_token_ids,
)
from tfeff.utils.checks import check_integer

_NO_TARGET = -1


class TokenFeatures(FeatureRows):
    """Sentences as an encoder reads them, ready to train on.

    A sentence is one row, or several where it is longer. Each word has one token that
    stands for it, its first, in the row where it has most context.

    A batch, for `tfeff.tasks.TokenClassifier`, is `(inputs, labels, weights)`: a
    dictionary of `token_ids`, `segment_ids` and `padding_mask`, int32 `[B, T]`; labels
    `[B, T]` int32; weights `[B, T]` float32, 1 at the first token of each word and 0
    elsewhere. Without labels it is `(inputs,)`.

    Attributes:
        examples: the sentences.
        sequence_length: T, the length of all rows.
        rows_of_words: `[W]` int64, the row of each word, sentence by sentence.
        positions_of_words: `[W]` int64, where in its row a word's first token is.
        num_divided: how many sentences are longer than T and became several rows.
    """

    def __init__(
        self,
        examples,
        rows,
        rows_of_words,
        positions_of_words,
        sequence_length,
        pad_token_id,
        num_divided,
    ):
        count = int(rows.nrows())
        super().__init__(count, with_empty(rows), sequence_length, pad_token_id)
        self.examples = examples
        self.rows_of_words = rows_of_words
        self.positions_of_words = positions_of_words
        self.num_divided = num_divided
        if examples.labels is not None:
            targets = np.full(int(tf.size(rows.flat_values)), _NO_TARGET, np.int32)
            begins = rows.row_starts().numpy()
            targets[begins[rows_of_words] + positions_of_words] = np.concatenate(
                examples.labels
            )
            self._targets = with_empty(rows.with_flat_values(targets))

    def of_words(self, values: np.ndarray) -> list[np.ndarray]:
        """The values of the words, sentence by sentence, from those of all tokens.

        Args:
            values: `[N, T, ...]`, such as the classes or logits of the rows; more rows,
                which fill up a last batch, count for nothing.

        Returns:
            For each sentence an array `[W, ...]`.

        Raises:
            ValueError: if there are too few rows or tokens.
        """
        values = np.asarray(values)
        rows, tokens = len(self), int(self.positions_of_words.max()) + 1
        if values.ndim < 2 or values.shape[0] < rows or values.shape[1] < tokens:
            raise ValueError(
                f"`values` must have at least {rows} rows of {tokens} tokens. "
                f"Received: values of shape {values.shape}"
            )
        found = values[self.rows_of_words, self.positions_of_words]
        sizes = [len(sentence) for sentence in self.examples.words]
        return np.split(found, np.cumsum(sizes)[:-1])

    def _batch(self, rows, length):
        tokens = tf.gather(self._tokens, rows)
        # There is no second segment. Lengths forget how many there are.
        ends = tf.ensure_shape(tf.cast(tokens.row_lengths(), tf.int32), rows.shape)
        inputs = padded_inputs(tokens, ends, self._pad_token_id, length)
        if self.examples.labels is None:
            return (inputs,)
        targets = tf.gather(self._targets, rows)
        targets = targets.to_tensor(_NO_TARGET, shape=[rows.shape[0], length])
        if length is None:
            missing = tf.shape(inputs["token_ids"])[1] - tf.shape(targets)[1]
            targets = tf.pad(
                targets, [[0, 0], [0, missing]], constant_values=_NO_TARGET
            )
        weights = tf.cast(targets != _NO_TARGET, tf.float32)
        return inputs, tf.maximum(targets, 0), weights


def token_features(
    examples: TokenExamples,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    sequence_length: int,
) -> TokenFeatures:
    """Turns sentences of words into rows of token ids `[CLS] words [SEP]`.

    Each word is tokenized by itself; one that has no tokens gets the unknown token. The
    first token of a word stands for it. A sentence with more than T - 2 tokens becomes
    several rows that overlap by half; each word counts once, in the row where the
    smaller one of its left and right contexts is largest.

    Args:
        examples: as from `tfeff.datasets.read_conll`.
        tokenizer: the KerasHub tokenizer of the encoder.
        sequence_length: T, at least 3.

    Returns:
        The rows, and for each word its row and position.

    Raises:
        ValueError: if there are no sentences, `sequence_length` is out of range, the
            tokenizer pads, truncates, adds marks by itself or gives strings, or a word
            has no tokens and the tokenizer no unknown token.
        TypeError: if `examples` are of another kind, or the tokenizer has no `[CLS]`,
            `[SEP]` or padding.

    Example:
    ```python
    import tfeff

    examples = tfeff.data.TokenExamples(
        words=(("Ada", "wrote", "it"), ("yes",)),
        labels=([1, 0, 0], [0]),
        label_names=("O", "B-PER"),
        ids=("0", "1"),
    )
    tokenizer = tfeff.data.train_tokenizer(["Ada wrote it", "yes"], 16)
    features = tfeff.data.token_features(examples, tokenizer, sequence_length=16)
    inputs, labels, weights = next(iter(features.dataset(2, shuffle=False)))
    classes = features.of_words(labels)
    assert [row.tolist() for row in classes] == [[1, 0, 0], [0]]
    ```

    Reference:
        Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", 2019, section 5.3, for the first token of a word.
    """
    if not isinstance(examples, TokenExamples):
        raise TypeError(
            "`examples` must be `TokenExamples`. Received: examples of type "
            f"{type(examples).__name__}"
        )
    special_token_ids(tokenizer, FRAME_NAMES)
    restore_kernels(tokenizer)
    sequence_length = check_integer("sequence_length", sequence_length, TEXT_FRAME + 1)
    if not len(examples):
        raise ValueError("`examples` must hold sentences. Received: none")
    words = [word for sentence in examples.words for word in sentence]
    words, index = tf.unique(tf.constant(words))
    # In a graph all of KerasHub's tokenizers return tensors.
    (pieces,) = tf.data.Dataset.from_tensors(words).map(
        lambda words: word_pieces(words, tokenizer)
    )
    if (empty := (pieces.row_lengths() == 0).numpy()).any():
        raise ValueError(
            "`tokenizer` must have tokens for every word, or an unknown token. "
            f"Received: none for {words[int(empty.argmax())].numpy().decode()!r}"
        )
    pieces = tf.gather(pieces, index)
    counts = tf.constant([len(sentence) for sentence in examples.words], tf.int64)
    rows, rows_of_words, positions = word_rows(
        pieces, counts, tokenizer, sequence_length
    )
    lengths = tf.RaggedTensor.from_row_lengths(pieces.row_lengths(), counts)
    is_long = tf.reduce_sum(lengths, axis=1) > sequence_length - TEXT_FRAME
    return TokenFeatures(
        examples,
        rows,
        rows_of_words.numpy(),
        positions.numpy(),
        sequence_length,
        tokenizer.pad_token_id,
        int(tf.math.count_nonzero(is_long)),
    )
