"""Tokens with their characters inside a graph, against those of Python."""

import random

import keras_hub
import pytest
import tensorflow as tf

from tests.data.finetuning.test_span_features import CORPUS, word_piece_vocabulary
from tfeff.convert.bert_tokenizer import BertTokenizer
from tfeff.data import train_tokenizer
from tfeff.data.text.offsets import encode_with_offsets
from tfeff.export.offset_tokenizer import PlacedTokens

PARTS = [
    *("a", "b", "c", "x", "fox", "T", "H", "E", "é", "0", "12", "9", ".", ",", "-"),
    *("'", '"', "(", ")", "$", " ", "  ", "\t", "\n", "漢", "字", "ß", "½", "ﬁ", "İ"),
    *("e\u0301", "\u0301", "\u200b", "\u00a0", "\u2028", "\x1c", "☃", "😀", "▁"),
    *("[CLS]", "##a", "Ａ", "…", "ｶﾞ", "한", "The", "quick"),
]


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
        tokenizer = BertTokenizer(
            word_piece_vocabulary(), lowercase=True, strip_accents=True
        )
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
            ["".join(source.choices(PARTS, k=source.randrange(40))) for _ in range(25)]
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
