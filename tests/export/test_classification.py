"""Fine-tuned models serve labels, ratings and choices from text."""

import keras_hub
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import randomize
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.serving import load, make_encoder, serve
from tfeff.data import ChoiceExamples, TextExamples, text_features
from tfeff.tasks import Classifier, MultipleChoice, Regressor

TEXTS = ("A tiger followed seven boxes", "", "Zebra ÉTÉ 日本 🦓 [MASK]", DOCUMENTS[0])
PAIRS = (DOCUMENTS[5], "zebras", "", "My neighbour; was it?")
LENGTH = 24


def randomized(model):
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.5)
    return model


def examples(pairs):
    return TextExamples(TEXTS, PAIRS if pairs else None, None, None, tuple(range(4)))


def expected_outputs(model, rows):
    """What the model gives for the features that it is trained on."""
    inputs = text_features(rows, tokenizer(), LENGTH).inputs
    return model.predict(inputs, verbose=0)


def softmax(logits):
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def export(tmp_path, model, **options):
    path = tmp_path / "model"
    tfeff.export.save_for_serving(
        model, tokenizer(), path, sequence_length=LENGTH, **options
    )
    return path


def call(path, name, **inputs):
    inputs = {key: tf.constant(value) for key, value in inputs.items()}
    return {k: v.numpy() for k, v in load(path).signatures[name](**inputs).items()}


def test_classify_texts(tmp_path):
    model = randomized(Classifier(make_encoder(), 3, "layerwise"))
    names = ["no", "é 日", "maybe"]
    path = export(tmp_path, model, label_names=names)
    outputs = call(path, "classify", text=TEXTS)
    logits = expected_outputs(model, examples(pairs=False))
    np.testing.assert_allclose(outputs["probabilities"], softmax(logits), atol=1e-5)
    assert [name.decode() for name in outputs["label"]] == [
        names[c] for c in logits.argmax(-1)
    ]
    assert np.ptp(logits, axis=0).max() > 0.05
    np.testing.assert_array_equal(
        outputs["labels"], [[name.encode() for name in names]] * 4
    )
    assert set(load(path).signatures) == {"classify", "serving_default"}
    assert serve(path, "classify", [])["probabilities"].shape == (0, 3)


@pytest.mark.slow
def test_a_model_gives_its_own_label_names(tmp_path):
    model = Classifier(make_encoder(), 2, label_names=["down", "up"])
    path = export(tmp_path, model)
    assert serve(path, "classify", ["a"])["labels"].tolist() == [[b"down", b"up"]]


@pytest.mark.slow
def test_blockwise_attention_reads_rows_of_the_length_it_was_trained_on(tmp_path):
    attention = {"name": "blockwise", "head_blocks": "3:1"}
    encoder = make_encoder(attention=attention)
    assert encoder.length_dependent and not make_encoder().length_dependent
    model = randomized(Classifier(encoder, 3))
    expected = softmax(expected_outputs(model, examples(pairs=False)))
    path = export(tmp_path / "task", model)
    for count in (1, 4):
        outputs = call(path, "classify", text=TEXTS[:count])["probabilities"]
        np.testing.assert_allclose(outputs, expected[:count], atol=1e-5)
    inputs = text_features(examples(pairs=False), tokenizer(), LENGTH).inputs
    hidden = encoder.predict(inputs, verbose=0)["sequence_output"]
    path = export(tmp_path / "encoder", encoder)
    outputs = call(path, "token_embeddings", text=TEXTS[:1])["embeddings"]
    np.testing.assert_allclose(outputs, hidden[:1], atol=1e-5)


def test_classify_pairs_of_word_pieces(tmp_path):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "."]
    pieces = keras_hub.tokenizers.BertTokenizer(vocabulary=words, lowercase=True)
    model = randomized(Classifier(make_encoder(), 2))
    path = tmp_path / "model"
    tfeff.export.save_for_serving(model, pieces, path, sequence_length=8, pairs=True)
    first, second = ("The cats.", "dog"), ("Cat. Cat. cats the", "the")
    outputs = call(path, "classify", text=first, text_pair=second)
    rows = TextExamples(first, second, None, None, (0, 1))
    logits = model.predict(text_features(rows, pieces, 8).inputs, verbose=0)
    np.testing.assert_allclose(outputs["probabilities"], softmax(logits), atol=1e-5)
    assert outputs["labels"].tolist() == [[b"0", b"1"]] * 2


@pytest.mark.slow
def test_rate_pairs(tmp_path):
    model = randomized(Regressor(make_encoder()))
    path = export(tmp_path, model, pairs=True)
    outputs = call(path, "rate", text=TEXTS, text_pair=PAIRS)
    expected = expected_outputs(model, examples(pairs=True))
    np.testing.assert_allclose(outputs["score"], expected, atol=1e-5)
    assert np.ptp(expected) > 0.1


@pytest.mark.slow
def test_choose(tmp_path):
    model = randomized(MultipleChoice(make_encoder()))
    path = export(tmp_path, model)
    passages = (DOCUMENTS[0], DOCUMENTS[9], "", TEXTS[2])
    questions = ("was _?", "__it", "was it?", "_ or _")
    options = (("it", "a"), ("\\0 is", ""), ("no_", "cat"), ("_", "zebras"))
    outputs = call(
        path, "choose", passage=passages, question=questions, options=options
    )
    rows = ChoiceExamples(passages, questions, options, None, ("A", "B"), tuple("wxyz"))
    logits = expected_outputs(model, rows)
    np.testing.assert_allclose(outputs["probabilities"], softmax(logits), atol=1e-5)
    best = logits.argmax(-1)
    np.testing.assert_array_equal(outputs["index"], best)
    assert [o.decode() for o in outputs["option"]] == [
        row[place] for row, place in zip(options, best)
    ]


def test_bad_options_are_named(tmp_path):
    model = Classifier(make_encoder(), 3)

    def refused(error, match, model=model, **options):
        with pytest.raises(error, match=match):
            tfeff.export.save_for_serving(
                model, tokenizer(), tmp_path / "model", **options
            )
        assert not (tmp_path / "model").exists()

    wrong = (["a", "b"], [0, 1, 2], "abc", {"a", "b", "c"}, 5, [])
    for names in (*wrong, ["a", "b", "b"], ["a", "b", "\ud800"]):
        refused(ValueError, "`label_names` must be 3 strings", label_names=names)
    refused(TypeError, "`pairs` must be", pairs="yes")
    refused(TypeError, "`top_k` must be an option of Classifier.*'pairs'", top_k=3)
    refused(
        ValueError,
        "`sequence_length` must be.*=4",
        model=MultipleChoice(make_encoder()),
        sequence_length=4,
    )
