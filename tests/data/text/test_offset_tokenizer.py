"""Tokens with their characters inside a graph, against those of Python."""

import random

import keras_hub
import pytest
import tensorflow as tf

from tests.subjects.characters import (
    CORPUS,
    FRAGMENTS,
    word_piece_vocabulary,
    word_pieces,
)
from tfeff.data import train_tokenizer
from tfeff.data.text.offset_tokenizer import PlacedTokens
from tfeff.data.text.offsets import encode_with_offsets


@pytest.mark.parametrize(
    "kind",
    [
        "unigram",
        "bert",
        pytest.param("cased", marks=pytest.mark.slow),
        pytest.param("kerashub", marks=pytest.mark.slow),
    ],
)
def test_ids_and_places_are_those_of_python(kind):
    if kind in ("unigram", "cased"):
        lowercase = kind == "unigram"
        tokenizer = train_tokenizer(CORPUS, vocabulary_size=64, lowercase=lowercase)
    elif kind == "bert":
        tokenizer = word_pieces()
    else:
        tokenizer = keras_hub.tokenizers.BertTokenizer(
            word_piece_vocabulary(), lowercase=True
        )
    tokens = PlacedTokens(tokenizer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def encode(text):
        ids, starts, ends = tokens(text)
        first = tokens.characters(text)[0].row_starts()
        shift = tf.gather(first, ids.value_rowids())
        return ids, ids.with_values(starts - shift), ids.with_values(ends - shift)

    source = random.Random(0)
    batches = [["", "  ", "fox", ""], ["\u200b"], []]
    for _ in range(3):
        batches.append(
            [
                "".join(source.choices(FRAGMENTS, k=source.randrange(40)))
                for _ in range(25)
            ]
        )
    for batch in batches:
        ids, starts, ends = (
            ragged.to_list() for ragged in encode(tf.constant(batch, tf.string))
        )
        assert len(ids) == len(batch)
        for row, expected in enumerate(encode_with_offsets(tokenizer, batch)):
            assert ids[row] == expected[0].tolist(), batch[row]
            places = [list(place) for place in zip(starts[row], ends[row])]
            assert places == expected[1].tolist(), batch[row]


def test_other_tokenizers_are_refused():
    bytes_alone = keras_hub.tokenizers.ByteTokenizer()
    with pytest.raises(TypeError, match="must be a SentencePiece or WordPiece"):
        PlacedTokens(bytes_alone)
