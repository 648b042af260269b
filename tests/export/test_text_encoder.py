import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.export.text_encoder import TextEncoder

PAD, CLS, SEP, MASK = 0, 2, 3, 4


def processor():
    return sentencepiece.SentencePieceProcessor(model_proto=tokenizer().proto)


def ids_of(texts, name="plain", sequence_length=512):
    """What the method of that name gives for the texts, in a graph, as lists."""
    text_encoder = TextEncoder(tokenizer(), sequence_length)
    method = tf.function(
        lambda text: getattr(text_encoder, name)(text),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    return method(tf.constant(texts)).to_list()


def test_plain_is_sentencepiece_between_cls_and_sep():
    texts = [*DOCUMENTS, "", "   ", "Zebra ÉTÉ 日本 🦓", "cat", "an [MASK] [CLS]"]
    ids = ids_of(texts)
    assert ids == [[CLS, *processor().encode(text), SEP] for text in texts]


@pytest.mark.parametrize("sequence_length", [3, 4, 9, 512])
def test_truncation_keeps_the_beginning_and_sep(sequence_length):
    ids = ids_of(DOCUMENTS, sequence_length=sequence_length)
    for row, text in zip(ids, DOCUMENTS, strict=True):
        assert row == [CLS, *processor().encode(text)[: sequence_length - 2], SEP]


def test_masked_text_is_the_text_with_whole_pieces_replaced():
    """As in training: replacing pieces of a sentence by masks changes no other piece.

    The text with masks is spelled from the pieces, so masks stand between words,
    before points, within words, side by side, and at both ends.
    """
    rng = np.random.default_rng(0)
    texts, expected = [], []
    for document in DOCUMENTS:
        ids = np.array(processor().encode(document))
        pieces = processor().encode(document, out_type=str)
        for rate in (0.0, 0.1, 0.3, 0.7, 1.0):
            masked = rng.random(len(ids)) < rate
            # " [MASK]" is one masked word, not a space and the rest of the word.
            lone_mark = (np.array(pieces[:-1]) == "▁") & ~masked[:-1]
            masked[1:] &= ~lone_mark
            spelled = "".join(
                piece.startswith("▁") * "▁" + "[MASK]" if mask else piece
                for piece, mask in zip(pieces, masked, strict=True)
            )
            texts.append(spelled.replace("▁", " ").removeprefix(" "))
            expected.append([CLS, *np.where(masked, MASK, ids).tolist(), SEP])
    ids = ids_of(texts, "with_masks")
    assert ids == expected


@pytest.mark.quick("-pieces0", " [MASK] \\t [MASK]\\n-pieces3", "[MASK]\\nwas-pieces6")
@pytest.mark.parametrize(
    "text, pieces",
    [
        ("", []),
        ("[MASK]", ["[MASK]"]),
        ("[MASK][MASK]", ["[MASK]", "[MASK]"]),
        (" [MASK] \t [MASK]\n", ["[MASK]", "[MASK]"]),
        ("[MASK]?", ["[MASK]", "?"]),
        ("[MASK]\u3000was", ["[MASK]", "▁was"]),
        ("[MASK]\nwas", ["[MASK]", "▁was"]),
        ("the [MASK] was", ["▁the", "[MASK]", "▁was"]),
    ],
)
def test_masked_text_by_hand(text, pieces):
    ids = ids_of([text], "with_masks")
    assert processor().id_to_piece(ids[0]) == ["[CLS]", *pieces, "[SEP]"]


def test_inputs_are_padded_to_the_longest():
    ids = tf.ragged.constant([[CLS, 7, 8, SEP], [CLS, SEP]], dtype=tf.int32)
    inputs = TextEncoder(tokenizer(), 512).inputs(ids)
    expected = {
        "token_ids": [[CLS, 7, 8, SEP], [CLS, SEP, PAD, PAD]],
        "segment_ids": [[0] * 4, [0] * 4],
        "padding_mask": [[1, 1, 1, 1], [1, 1, 0, 0]],
    }
    assert inputs.keys() == expected.keys()
    for name, value in expected.items():
        assert inputs[name].dtype == tf.int32
        np.testing.assert_array_equal(inputs[name], value)
