"""Serving with byte-level BPE, whose mask is `<mask>`."""

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects.byte_pairs import library, tokenizer
from tests.subjects.serving import make_encoder
from tfeff.export.text_encoder import TextEncoder

CLS, SEP, MASK = 0, 2, 4


def ids(text):
    return library().encode(text).ids


def masked(text_encoder, texts):
    return tf.function(text_encoder.with_masks)(tf.constant(texts)).to_list()


@pytest.mark.slow
def test_masks_in_texts():
    text_encoder = TextEncoder(tokenizer(), 64)
    texts = {
        "The <mask> jumps.": [*ids("The"), MASK, *ids(" jumps.")],
        "The [MASK] jumps.": [*ids("The"), MASK, *ids(" jumps.")],
        "<mask>. <mask>[MASK]s": [MASK, *ids("."), MASK, MASK, *ids("s")],
        " a\u2003 <mask> b ": [*ids(" a"), MASK, *ids(" b ")],
        "none": ids("none"),
        "": [],
    }
    rows = masked(text_encoder, list(texts))
    assert rows == [[CLS, *row, SEP] for row in texts.values()]
    plain = tf.function(text_encoder.plain)(tf.constant(["a <mask>"])).to_list()[0]
    assert plain == [CLS, *ids("a <mask>"), SEP]
    # Behind a mask no space is added.
    prefixed = TextEncoder(tokenizer(True), 64)
    (row,) = masked(prefixed, ["<mask>s go"])
    words = library(True).encode("x go").ids[-len(ids(" go")) :]
    assert row[1] == MASK and row[-1 - len(words) : -1] == words
    assert tokenizer(True).id_to_token(row[2]).startswith("Ġ") is False


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    path = tmp_path_factory.mktemp("export") / "1"
    encoder = make_encoder(vocabulary_size=tokenizer().vocabulary_size())
    model = tfeff.objectives.MaskedLM(encoder)
    tfeff.export.save_for_serving(model, tokenizer(), path)
    return model, tf.saved_model.load(str(path))


@pytest.mark.slow
def test_fillings_are_words(served):
    model, loaded = served
    text = tf.constant(["The <mask> jumps 🙂.", "[MASK]"])
    outputs = loaded.signatures["fill_mask"](text)
    fillings, token_ids = outputs["fillings"].numpy(), outputs["token_ids"].numpy()
    assert fillings.shape == (2, 1, 5)
    pieces = tokenizer().piece_bytes()
    for words, numbers in zip(fillings[:, 0], token_ids[:, 0]):
        for word, number in zip(words, numbers):
            piece = pieces[number].removeprefix(b" ").decode("utf-8", "replace")
            assert word.decode("utf-8") == piece
    row = [CLS, *ids("The"), MASK, *ids(" jumps 🙂."), SEP]
    inputs = {
        "token_ids": tf.constant([row]),
        "segment_ids": tf.zeros([1, len(row)], tf.int32),
        "padding_mask": tf.ones([1, len(row)], tf.int32),
        "mask_positions": tf.constant([[row.index(MASK)]]),
    }
    probabilities = tf.nn.softmax(model(inputs, training=False)[0, 0])
    expected = np.sort(probabilities.numpy())[::-1][:5]
    np.testing.assert_allclose(outputs["probabilities"][0, 0], expected, atol=1e-5)


@pytest.mark.slow
def test_texts_of_any_bytes(served):
    _, loaded = served
    texts = [
        b"",
        b"\xff\xfe",
        b"a\x00b",
        "日本 🙂 it's".encode(),
        b" " * 5000,
        b"a" * 9000,
    ]
    outputs = loaded.signatures["token_embeddings"](tf.constant(texts))
    assert np.isfinite(outputs["embeddings"].numpy()).all()
    assert outputs["token_ids"].numpy()[0, :2].tolist() == [CLS, SEP]
    count = outputs["mask"].numpy()[3].sum()
    assert outputs["token_ids"].numpy()[3, 1 : count - 1].tolist() == ids(
        "日本 🙂 it's"
    )


@pytest.mark.slow
def test_pairs_and_questions(tmp_path):
    encoder = make_encoder(vocabulary_size=tokenizer().vocabulary_size())
    model = tfeff.tasks.Classifier(encoder, num_classes=2)
    path = tmp_path / "pairs"
    tfeff.export.save_for_serving(model, tokenizer(), path, pairs=True)
    classify = tf.saved_model.load(str(path)).signatures["classify"]
    outputs = classify(text=tf.constant(["a fox"]), text_pair=tf.constant(["a dog"]))
    examples = tfeff.data.TextExamples(("a fox",), ("a dog",), None, None, ("0",))
    inputs = tfeff.data.text_features(examples, tokenizer(), 60).inputs
    expected = tf.nn.softmax(model.predict(inputs, verbose=0)).numpy()
    np.testing.assert_allclose(outputs["probabilities"], expected, atol=1e-5)
    path = tmp_path / "answers"
    tfeff.export.save_for_serving(tfeff.tasks.SpanQA(encoder), tokenizer(), path)
    answer = tf.saved_model.load(str(path)).signatures["answer"]
    passage = "Naïve 🙂 foxes, they jump. " * 8
    outputs = answer(question=tf.constant(["Who?"]), passage=tf.constant([passage]))
    start, end = outputs["start"][0].numpy(), outputs["end"][0].numpy()
    assert outputs["answer"][0].numpy().decode() == passage[start:end] != ""
