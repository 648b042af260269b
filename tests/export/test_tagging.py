"""Labels of words and entities of a SavedModel, against the same model in Python."""

import functools
import random

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import randomize
from tests.export.hostile import most_taken
from tests.reference.phrases import phrases
from tests.reference.words import split_words
from tests.subjects.byte_pairs import tokenizer as byte_pairs
from tests.subjects.characters import CORPUS, FRAGMENTS, word_pieces
from tests.subjects.serving import load
from tfeff.data import TokenExamples, token_features
from tfeff.data.text.words import split_words as graph_words
from tfeff.export.entities import entities_endpoint, group, phrase_types
from tfeff.export.tagging import tag_endpoints
from tfeff.export.text_encoder import TextEncoder

LENGTH = 9
LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
TOKENIZERS = {
    "sentence_piece": lambda: tfeff.data.train_tokenizer(CORPUS, vocabulary_size=64),
    "byte_pairs": byte_pairs,
}


def make_model(tokenizer, labels=LABELS, **changes):
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=tokenizer.vocabulary_size() + 2,
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=LENGTH,
        **changes,
    )
    model = tfeff.tasks.TokenClassifier(encoder, len(labels), label_names=labels)
    randomize({variable.path: variable for variable in model.weights}, scale=0.5)
    ids = np.random.default_rng(0).integers(5, tokenizer.vocabulary_size(), (9, LENGTH))
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    # Else one label would be the likeliest of all words.
    bias = model.get_layer("logits").bias
    bias.assign(bias - model.predict(inputs, verbose=0).mean((0, 1)))
    return model


def make_texts(count=30):
    source = random.Random(1)
    texts = ["", " \u200b", "a", "(Ada, in the U.S.) 😀!", "é" * 60, "the fox " * 40]
    return texts + [
        "".join(source.choices(FRAGMENTS, k=source.randrange(80)))
        for _ in range(count - len(texts))
    ]


def expected_probabilities(model, tokenizer, rows):
    """Those of the words of each text, as evaluation finds them."""
    words = tuple(tuple(word for word, _, _ in row) for row in rows if row)
    examples = TokenExamples(words, None, LABELS, tuple(map(str, range(len(words)))))
    features = token_features(examples, tokenizer, LENGTH)
    logits = features.of_words(model.predict(features.inputs, verbose=0))
    found = iter([np.asarray(tf.nn.softmax(row)) for row in logits])
    return [next(found) if row else np.zeros((0, len(LABELS))) for row in rows]


def check_tags(outputs, rows, probabilities):
    """`outputs` of NumPy arrays are these words, with these probabilities."""
    assert outputs["labels"].tolist() == [[x.encode() for x in LABELS]] * len(rows)
    longest = max(map(len, rows), default=0)
    assert outputs["probabilities"].shape == (len(rows), longest, len(LABELS))
    for index, (row, values) in enumerate(zip(rows, probabilities)):
        empty = [("", 0, 0)] * (longest - len(row))
        found = zip(*(outputs[name][index] for name in ("words", "start", "end")))
        assert [(word.decode(), a, b) for word, a, b in found] == row + empty
        padded = np.pad(values, [(0, len(empty)), (0, 0)])
        np.testing.assert_allclose(outputs["probabilities"][index], padded, atol=1e-5)
        labels = [LABELS[i].encode() for i in values.argmax(-1)] + [b""] * len(empty)
        assert outputs["label"][index].tolist() == labels


def check_entities(outputs, texts, rows, probabilities):
    """`outputs` are the phrases of the likeliest labels; returns how many."""
    count = 0
    for index, (text, row, values) in enumerate(zip(texts, rows, probabilities)):
        labels = [LABELS[i] for i in values.argmax(-1)]
        expected = sorted(phrases(labels), key=lambda phrase: phrase[1])
        count += len(expected)
        for number, (kind, first, last) in enumerate(expected):
            start, end = row[first][1], row[last][2]
            assert outputs["entity"][index, number].decode() == text[start:end]
            assert outputs["type"][index, number].decode() == kind
            assert outputs["start"][index, number] == start
            assert outputs["end"][index, number] == end
            mean = values.max(-1)[first : last + 1].mean()
            assert outputs["probability"][index, number] == pytest.approx(
                mean, abs=1e-5
            )
        for name, value in outputs.items():
            rest = value[index, len(expected) :].tolist()
            assert rest == [b"" if name in ("entity", "type") else 0] * len(rest)
    return count


def call(path, name, texts):
    outputs = load(path).signatures[name](text=tf.constant(texts, tf.string))
    return {key: value.numpy() for key, value in outputs.items()}


def check_all(call, model, tokenizer):
    """`call(name, texts)` gives words and entities of any texts as Python does."""
    texts = make_texts()
    rows = [split_words(text) for text in texts]
    probabilities = expected_probabilities(model, tokenizer, rows)
    for part in (slice(None), slice(3, 4), slice(0, 2), slice(0, 0)):
        check_tags(call("tag", texts[part]), rows[part], probabilities[part])
        outputs = call("entities", texts[part])
        check_entities(outputs, texts[part], rows[part], probabilities[part])
    outputs = call("entities", texts)
    types = {x for x in outputs["type"].ravel().tolist() if x}
    assert types == {b"PER", b"LOC"}
    assert check_entities(outputs, texts, rows, probabilities) > 30


@pytest.mark.quick("byte_pairs")
@pytest.mark.parametrize("kind", ["sentence_piece", "byte_pairs"])
def test_words_and_entities_are_those_of_python(kind):
    tokenizer = TOKENIZERS[kind]()
    model = make_model(tokenizer)
    text_encoder = TextEncoder(tokenizer, LENGTH)
    endpoints = {
        name: tf.function(function, input_signature=[tf.TensorSpec([None], tf.string)])
        for name, function in tag_endpoints(model, text_encoder, LABELS, 99).items()
    }

    def call(name, texts):
        outputs = endpoints[name](tf.constant(texts, tf.string))
        return {key: value.numpy() for key, value in outputs.items()}

    check_all(call, model, tokenizer)


@pytest.mark.slow
def test_an_export_of_an_encoder_that_depends_on_the_length(tmp_path):
    tokenizer = word_pieces()
    attention = {"name": "blockwise", "head_blocks": "1:1"}
    model = make_model(tokenizer, attention=attention)
    assert model.encoder.length_dependent
    path = tmp_path / "export"
    tfeff.export.save_for_serving(model, tokenizer, path)
    assert set(load(path).signatures) == {"tag", "entities", "serving_default"}
    check_all(functools.partial(call, path), model, tokenizer)


def test_entities_are_those_of_conlleval():
    source = np.random.default_rng(0)
    labels = source.integers(0, len(LABELS), 200)
    rows = np.sort(source.integers(0, 25, 200))
    kinds = np.array([-1, 0, 0, 1, 1])[labels]
    begins = np.array([False, True, False, True, False])[labels]
    phrase, first, last = (
        x.numpy() for x in group(*map(tf.constant, (begins, kinds, rows)))
    )
    expected = set()
    for row in set(rows):
        words = np.flatnonzero(rows == row)
        expected |= {
            (kind, words[a], words[b])
            for kind, a, b in phrases([LABELS[i] for i in labels[words]])
        }
    types = [("PER", "LOC")[i] for i in kinds[first]]
    assert set(zip(types, first, last)) == expected and len(types) == len(expected)
    for number, (a, b) in enumerate(zip(first, last)):
        assert (phrase[a : b + 1] == number).all()
    assert ((phrase == -1) == (kinds == -1)).all()


def entities_of_each_word():
    """A function of texts, each of whose words is an entity."""

    def tagger(text):
        words = graph_words(text)
        return text, *words, tf.fill([tf.size(words[0].flat_values), 1], 1.0)

    return tf.function(
        entities_endpoint(tagger, ["B-PER"], ["PER"]),
        input_signature=[tf.TensorSpec([None], tf.string)],
    )


def test_entities_are_cut_out_of_any_text():
    texts = ["", "a\0b 😀é \ufdd0 \U0010ffff", "\ufffd 漢字", " ", *make_texts()]
    found = entities_of_each_word()(tf.constant(texts))["entity"].numpy()
    for text, row in zip(texts, found):
        words = [word for word, _, _ in split_words(text)]
        assert [x.decode() for x in row] == words + [""] * (len(row) - len(words))


def test_many_entities_make_no_copies_of_their_text():
    """20,000 copies of 40 kB would be 800 MB."""
    entities = entities_of_each_word()
    entities(tf.constant(["a"]))
    text = tf.constant(["a " * 20_000])
    found, taken = most_taken(lambda: entities(text))
    assert found["entity"].shape == (1, 20_000)
    assert taken < 200


@pytest.mark.slow
def test_labels_that_mark_no_phrases_have_no_entities(tmp_path):
    assert phrase_types(["O", "B-x-y", "I-x-y", "B-"]) is None
    assert phrase_types(["O", "I-x-y", "B-z"]) == ["x-y", "z"]
    assert phrase_types(["O"]) is phrase_types(["NOUN", "B-PER"]) is None
    tokenizer = word_pieces()
    model = make_model(tokenizer)
    names = ["NOUN", "VERB", "ADP", "DET", "X"]
    path = tmp_path / "export"
    tfeff.export.save_for_serving(model, tokenizer, path, label_names=names)
    assert set(load(path).signatures) == {"tag", "serving_default"}
    assert call(path, "tag", ["the fox"])["labels"][0].tolist() == [
        name.encode() for name in names
    ]


@pytest.mark.slow
def test_bad_requests_and_options_are_named(tmp_path):
    tokenizer = word_pieces()
    model = make_model(tokenizer)
    path = tmp_path / "export"
    with pytest.raises(ValueError, match="`max_windows` must be .*max_windows=0"):
        tfeff.export.save_for_serving(model, tokenizer, path, max_windows=0)
    with pytest.raises(ValueError, match="`label_names` must be 5 strings"):
        tfeff.export.save_for_serving(model, tokenizer, path, label_names=["O"])
    with pytest.raises(TypeError, match="`pairs` must be an option of TokenClassifier"):
        tfeff.export.save_for_serving(model, tokenizer, path, pairs=True)
    tfeff.export.save_for_serving(model, tokenizer, path, max_windows=2)
    # Rows of 7 tokens begin 4 tokens apart.
    assert call(path, "tag", ["a " * 11])["words"].shape == (1, 11)
    error = tf.errors.InvalidArgumentError
    for name in ("tag", "entities"):
        with pytest.raises(error, match=r"`text` must have at most 2 windows.*\[3\]"):
            call(path, name, ["fox", "a " * 12])
        with pytest.raises(error, match=r"`text` must have at most \d+ characters"):
            call(path, name, ["fox", b"\xff" * 10**5])
    broken = call(path, "tag", [b"the \xff\xff fox"])
    words = [word.decode() for word in broken["words"][0]]
    assert words == ["the", "\ufffd\ufffd", "fox"]
