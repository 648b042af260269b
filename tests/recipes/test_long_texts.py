"""What recipes say of texts that are longer than their rows."""

import keras_hub
import pytest

import tfeff
from tfeff.recipes.long_texts import print_long

TOKENIZER = keras_hub.tokenizers.BertTokenizer(
    ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]
)


def rows(*texts, length=5):
    examples = tfeff.data.TextExamples(texts)
    return tfeff.data.text_features(examples, TOKENIZER, length)


def sentences(*words):
    names, ids = ("O", "B-X"), tuple(range(len(words)))
    examples = tfeff.data.TokenExamples(words, None, names, ids)
    return tfeff.data.token_features(examples, TOKENIZER, 5)


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ({"examples to train on": rows("a", "a b a"), "of dev": rows("b")}, ""),
        (
            {"examples to train on": rows("a", "a b a b"), "of dev": rows("b")},
            "1 of 2 examples to train on are longer than 5 tokens and lose their "
            "ends; --sequence_length gives more\n",
        ),
        (
            {
                "examples to train on": rows("a b a b"),
                "of dev": rows("b a b a", "a", "b"),
            },
            "1 of 1 examples to train on, 1 of 3 of dev are longer than 5 tokens "
            "and lose their ends; --sequence_length gives more\n",
        ),
        (
            {"examples to train on": sentences(["a"] * 4, ["b"])},
            "1 of 2 examples to train on are longer than 5 tokens and are read in "
            "several rows, without the words of the others; --sequence_length gives "
            "more\n",
        ),
    ],
)
def test_long_texts_are_told(parts, told, capsys):
    print_long(parts)
    assert capsys.readouterr().out == told
