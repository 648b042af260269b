"""What recipes say of texts that their tokenizer does not know."""

import keras_hub
import pytest

import tfeff
from tfeff.recipes.unknown_tokens import print_unknown, print_unknown_in_corpus

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b"]


def token_ids(tokenizer, *texts):
    return tfeff.data.text_features(
        tfeff.data.TextExamples(texts), tokenizer, 8
    ).token_ids


@pytest.mark.quick("True")
@pytest.mark.parametrize("lowercase", [True, False])
def test_many_unknown_tokens_are_told(lowercase, capsys):
    tokenizer = keras_hub.tokenizers.BertTokenizer(WORDS, lowercase=lowercase)
    parts = {
        "examples to train on": token_ids(tokenizer, "A B", "A a"),
        "of dev": token_ids(tokenizer, "a b", "b"),
    }
    print_unknown(parts, tokenizer)
    # Of the eight tokens of the first part, three; [CLS] and [SEP] count.
    told = "Many tokens are unknown to the tokenizer: 38% (examples to train on). "
    assert capsys.readouterr().out.startswith(told) is not lowercase


def test_few_unknown_tokens_are_not_told(capsys):
    tokenizer = keras_hub.tokenizers.BertTokenizer(WORDS)
    texts = 30 * ["a b a b a b"]
    print_unknown({"of dev": token_ids(tokenizer, *texts, "é")}, tokenizer)
    assert not capsys.readouterr().out


def test_pieces_of_another_language(capsys):
    tokenizer = tfeff.data.train_tokenizer(["words and deeds"] * 9, 15)
    print_unknown({"of dev": token_ids(tokenizer, "слово и дело")}, tokenizer)
    assert "(of dev)" in capsys.readouterr().out


def test_a_corpus_of_another_language(capsys):
    tokenizer = tfeff.data.train_tokenizer(["words and deeds"] * 9, 15)
    print_unknown_in_corpus([" ", "слово и дело"], tokenizer)
    assert "(of the first documents)" in capsys.readouterr().out
    print_unknown_in_corpus(["words", "deeds", " "], tokenizer)
    print_unknown_in_corpus([], tokenizer)
    assert not capsys.readouterr().out


def test_a_tokenizer_that_knows_all_text(capsys):
    class Bytes(keras_hub.tokenizers.Tokenizer):
        def tokenize(self, inputs):
            raise AssertionError("It is not called.")

    print_unknown_in_corpus(["слово"], Bytes())
    assert not capsys.readouterr().out
