"""Rows of texts to learn embeddings from."""

import keras_hub
import numpy as np
import pytest

from tfeff.data import SentenceExamples, sentence_features

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]
TOKENIZER = keras_hub.tokenizers.BertTokenizer(PIECES)


def make(*rows):
    return sentence_features(SentenceExamples(list(rows)), TOKENIZER, 5)


def test_inputs_are_those_of_all_rows():
    features = make(("a", "b c"), ("c a b a", "b"))
    assert features.inputs["token_ids"].tolist() == [
        [[2, 5, 3, 0, 0], [2, 6, 7, 3, 0]],
        [[2, 7, 5, 6, 3], [2, 6, 3, 0, 0]],
    ]
    (batch,) = features.dataset(3, shuffle=False, repeat=False)
    inputs, text_ids, weights = batch
    assert weights.numpy().tolist() == [1, 1, 0]
    assert text_ids.numpy().tolist() == [[0, 1], [2, 3], [-1, -1]]
    for name, value in features.inputs.items():
        np.testing.assert_array_equal(inputs[name][:2], value)
    assert not inputs["padding_mask"][2].numpy().any()
    assert features.num_cut == 1  # "c a b a"
    assert make(("a b c a",), ("b",)).num_cut == 1


@pytest.mark.quick("row1-2")
@pytest.mark.parametrize(
    ("row", "least"), [(("a",), 2), (("a", "b"), 2), (("a", "b", "c"), 1)]
)
def test_a_text_is_contrasted_with_another(row, least):
    features = make(row)
    features.dataset(least)
    with pytest.raises(ValueError, match=f"`batch_size` must be .* at least {least}"):
        features.dataset(least - 1)
