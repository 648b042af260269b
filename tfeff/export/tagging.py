"""The signature of a classifier of tokens: words with their labels."""

from collections.abc import Sequence

import tensorflow as tf

from tfeff.data.finetuning.windows import windows
from tfeff.data.finetuning.word_rows import TEXT_FRAME, half, word_pieces, word_rows
from tfeff.data.text.flat import indices, row_ids, sums
from tfeff.data.text.words import split_words
from tfeff.export.entities import entities_endpoint, phrase_types
from tfeff.export.parts import MOST_BYTES, by_parts, limit_cells, limit_rows, size_of
from tfeff.export.request_texts import (
    checked,
    few_characters,
    most_characters,
    require,
    short_words,
    valid,
)
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks import TokenClassifier
from tfeff.utils.checks import check_integer


def tag_endpoints(
    model: TokenClassifier,
    text_encoder: TextEncoder,
    label_names: Sequence[str],
    max_windows: int,
) -> dict:
    """The function `tag` of texts `[B]`, and `entities` where labels mark phrases."""
    check_integer("max_windows", max_windows)
    # The answer has each word, its place, its label and the probabilities of all; and
    # for each text, all labels.
    name_size = size_of(label_names)
    word_size = size_of([""]) + 8 + name_size + 4 * len(label_names)
    text_encoder.tagger = tagger = Tagger(
        model, text_encoder, max_windows, MOST_BYTES // word_size
    )
    names = tf.constant(label_names)

    def tag(text):
        text = limit_rows(text, name_size * len(label_names))
        _, words, starts, ends, probabilities = tagger(text)
        label = tf.gather(names, tf.argmax(probabilities, axis=1))
        return {
            "words": words.to_tensor(""),
            "label": words.with_flat_values(label).to_tensor(""),
            "start": starts.to_tensor(),
            "end": ends.to_tensor(),
            "labels": tf.tile(names[tf.newaxis], [words.nrows(), 1]),
            "probabilities": words.with_flat_values(probabilities).to_tensor(),
        }

    types = phrase_types(label_names)
    if types is None:
        return {"tag": tag}
    return {"tag": tag, "entities": entities_endpoint(tagger, label_names, types)}


class Tagger(tf.Module):
    """Finds the words of texts and the probabilities of their labels, in a graph.

    The words are those of `tfeff.data.split_words`. They are read in rows as
    `tfeff.data.token_features` makes them, so a text may have any length.

    Args:
        model: a `tfeff.tasks.TokenClassifier`.
        text_encoder: the `TextEncoder` of its encoder.
        max_windows: integer, most rows of a text.
        max_words: integer, most words if each text had as many as the longest.

    Call arguments:
        text: string tensor `[B]`. What is not UTF-8 counts as U+FFFD.

    Returns:
        The texts `[B]` as they were read; ragged `[B, (W)]` the words, and as int32
        their first characters and the ones behind their last; and of all W words
        together `[W, C]` float32 probabilities.

    Raises:
        tf.errors.InvalidArgumentError: of a call, if a text has more than `max_windows`
            rows, more characters than they can hold, or with SentencePiece a word of
            more than 20,000, or all together more than `max_words` words.
    """

    def __init__(
        self,
        model: TokenClassifier,
        text_encoder: TextEncoder,
        max_windows: int,
        max_words: int,
    ):
        super().__init__()
        self.model = model
        self.text_encoder = text_encoder
        self.tokenizer = text_encoder.tokenizer
        self.sequence_length = text_encoder.sequence_length
        self.max_windows = max_windows
        self.max_words = max_words
        self.most_in_text = most_characters(
            self.tokenizer, max_windows * self.sequence_length
        )

    def __call__(self, text):
        text = few_characters("text", valid(text), self.most_in_text)
        words, starts, ends = split_words(text)
        words = limit_cells("words", words, self.max_words)
        checks = short_words("text", words.flat_values, self.tokenizer)
        words = checked(words, *checks)
        # They get the rows of `words`, so that tensors of them wait for checks, too.
        starts, ends = (words.with_flat_values(x.flat_values) for x in (starts, ends))
        pieces = word_pieces(words.flat_values, self.tokenizer)
        counts = words.row_lengths()
        sizes = sums(pieces.row_lengths(), row_ids(words), words.nrows())
        rows = windows(
            self.sequence_length - TEXT_FRAME, sizes, half(self.sequence_length)
        )
        are_few = require(
            rows <= self.max_windows,
            f"`text` must have at most {self.max_windows} windows of the model's "
            f"{self.sequence_length} tokens. Received: one of so many windows:",
            tf.reduce_max(rows),
        )
        rows, row, position = word_rows(
            pieces, checked(counts, are_few), self.tokenizer, self.sequence_length
        )
        # Words come in the order of their rows; that of a text without any has none.
        positions = tf.RaggedTensor.from_value_rowids(position, row, rows.nrows())
        with_words = indices(positions.row_lengths() > 0)
        asked = [tf.gather(x, with_words) for x in (rows, positions)]
        found = by_parts(self._probabilities, self.text_encoder.width(rows), *asked)
        return text, words, starts, ends, found

    def _probabilities(self, rows, positions):
        """The probabilities `[W, C]` of the words at these positions of rows."""
        logits = self.model(self.text_encoder.inputs(rows), training=False)
        index = tf.stack([row_ids(positions), positions.flat_values], axis=1)
        return tf.nn.softmax(tf.cast(tf.gather_nd(logits, index), tf.float32))
