"""Span question answering: logits, loss, batches, answers, saving, replicas."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from sentencepiece.sentencepiece_model_pb2 import ModelProto

import tfeff
from tests.checks import assert_close, check_two_replicas, randomize
from tests.reference.span_qa import allowed_tokens, cross_entropy, span_logits
from tfeff.data import (
    Question,
    RobertaTokenizer,
    XLMRobertaTokenizer,
    best_spans,
    make_span_features,
)
from tfeff.data.text.byte_pairs import byte_symbols
from tfeff.export.span_qa import answer_endpoint
from tfeff.export.text_encoder import TextEncoder
from tfeff.tasks.span_qa import SpanQA

PASSAGES = [
    "Ada wrote it in 1843. She was Byron's daughter.",
    "Nobody  knows\twho, it was long ago.",
    "Yes.",
    "The engine was never built, and the notes were long forgotten; Ada was not.",
]
ANSWERS = ["1843", "long ago", "Yes", "never built"]


@functools.cache
def tokenizer():
    documents = [*PASSAGES, "Who wrote it? When was it?"] * 3
    return tfeff.data.train_tokenizer(documents, vocabulary_size=50)


def roberta_tokenizer():
    """Each byte is a token."""
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *byte_symbols()]
    return RobertaTokenizer({piece: id for id, piece in enumerate(pieces)}, [])


def xlm_roberta_tokenizer():
    """The other one's pieces, with RoBERTa's names of the special ones."""
    model = ModelProto.FromString(tokenizer().proto)
    for piece, name in zip(model.pieces, ("<pad>", "<unk>", "<s>", "</s>", "<mask>")):
        piece.piece = name
    return XLMRobertaTokenizer(model.SerializeToString())


def make_features(length=20, tokenizer=tokenizer):
    questions = [
        Question(
            f"q{i}",
            "Who?" if i % 2 else "When was it?",
            passage,
            (answer,),
            ((start := passage.index(answer), start + len(answer)),),
        )
        for i, (passage, answer) in enumerate(zip(PASSAGES, ANSWERS))
    ]
    # One without an answer, at the end.
    questions.append(Question("none", "Who?", PASSAGES[0]))
    return make_span_features(questions, tokenizer(), length, stride=5)


def make_model(preset="bert_tiny", dropout=0.0, encoder=None, **kwargs):
    encoder = tfeff.encoders.build(
        preset,
        **dict(
            vocabulary_size=50,
            num_layers=1,
            hidden_dim=16,
            intermediate_dim=16,
            max_sequence_length=32,
            dropout=dropout,
        )
        | (encoder or {}),
    )
    model = SpanQA(encoder, dropout=dropout)
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.3)
    model.compile(tfeff.training.adamw(1e-3, 2, 40, global_clipnorm=0.5), **kwargs)
    return model


def test_logits_losses_answers_and_saving(tmp_path):
    features, model = make_features(), make_model()
    assert len(features) % 4 != 0  # The last batch is filled up.
    hidden = np.asarray(model.encoder(features.inputs)["sequence_output"], "float64")
    kernel, bias = (np.asarray(w, "float64") for w in model.head.weights)
    start, end = span_logits(hidden, kernel, bias, allowed_tokens(features))
    logits = model(features.inputs)
    assert_close(logits["start"], start, 1e-5, "start")
    assert_close(logits["end"], end, 1e-5, "end")

    evaluation = features.dataset(4, shuffle=False, repeat=False)
    logs = model.evaluate(evaluation, verbose=0, return_dict=True)
    expected = {}
    for name, scores, labels in (
        ("start", start, features.start_positions),
        ("end", end, features.end_positions),
    ):
        losses = [cross_entropy(row, label) for row, label in zip(scores, labels)]
        expected[f"{name}_loss"] = np.mean(losses)
        expected[f"{name}_accuracy"] = np.mean(scores.argmax(-1) == labels)
    expected["loss"] = (expected["start_loss"] + expected["end_loss"]) / 2
    assert logs == pytest.approx(expected, rel=1e-5)

    for threshold in (None, 0.0):
        found = model.answers(features, 4, 3, threshold)
        by_hand = best_spans(features, start, end, 3, threshold)
        assert [a.text for a in found] == [a.text for a in by_hand]
        np.testing.assert_allclose(
            [a.no_answer_probability for a in found],
            [a.no_answer_probability for a in by_hand],
            atol=1e-5,
        )

    history = model.fit(
        features.dataset(4, seed=1), epochs=2, steps_per_epoch=5, verbose=0
    ).history
    assert history["loss"][1] < history["loss"][0]
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for name, value in model(features.inputs).items():
        np.testing.assert_array_equal(loaded(features.inputs)[name], value)
    slots = [keras.ops.convert_to_numpy(v) for v in loaded.optimizer.variables]
    for variable, slot in zip(model.optimizer.variables, slots, strict=True):
        np.testing.assert_array_equal(variable, slot)
    assert loaded.get_compile_config() == model.get_compile_config()


def test_losses_of_the_step_are_those_reported():
    """What the gradient is of, against the sums that the metrics keep."""
    features = make_features()
    model = make_model()
    inputs, labels, weights = next(iter(features.dataset(5, seed=3)))
    weights = {name: [1.0, 0.0, 0.5, 0.0, 2.0] for name in weights}
    weights = {name: keras.ops.convert_to_tensor(w) for name, w in weights.items()}
    logits = model(inputs)
    total = 0.0
    for name in ("start", "end"):
        total += sum(
            float(w) * cross_entropy(z, y) / 3.5
            for z, y, w in zip(np.asarray(logits[name]), labels[name], weights[name])
        )
    loss = model.compute_loss(inputs, labels, logits, weights)
    assert float(loss) == pytest.approx(total / 2, rel=1e-5)


def test_padding_changes_nothing():
    short, long = make_features(20), make_features(20)
    model = make_model("shatter_tiny")
    wide = {n: np.pad(v, [(0, 0), (0, 7)]) for n, v in long.inputs.items()}
    narrow, padded = model(short.inputs), model(wide)
    for name in ("start", "end"):
        np.testing.assert_allclose(
            padded[name][:, :20], narrow[name], rtol=1e-5, atol=1e-5
        )
        assert (np.asarray(padded[name][:, 20:]) == np.float32(-1e30)).all()


def test_mixed_precision_and_dropout():
    features = make_features()
    model = make_model(dropout=0.5, encoder={"dtype": "mixed_bfloat16"})
    logits = model(features.inputs)
    again = model(features.inputs, training=True)
    for name in ("start", "end"):
        assert logits[name].dtype == "float32"
        assert np.isfinite(logits[name]).all()
        np.testing.assert_array_equal(model(features.inputs)[name], logits[name])
        assert np.abs(again[name] - logits[name]).max() > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_pure_precision(dtype, tmp_path):
    """The logits that are masked are finite, and all are as fine as float32's."""
    features, model = make_features(), make_model(encoder={"dtype": dtype})
    model.save(tmp_path / "model.keras")
    tfeff.tasks.save_pretrained(model, tokenizer(), tmp_path / "preset")
    answers = model.answers(features)
    for loaded in (
        keras.models.load_model(tmp_path / "model.keras"),
        tfeff.tasks.load_task(tmp_path / "preset", dtype=dtype)[0],
    ):
        logits = loaded(features.inputs)["start"]
        assert logits.dtype == ("float64" if dtype == "float64" else "float32")
        np.testing.assert_array_equal(logits, model(features.inputs)["start"])
        assert loaded.answers(features) == answers


def test_batches():
    features = make_features()
    count = len(features)
    rows = {tuple(row): i for i, row in enumerate(features.token_ids)}

    def order(batches):
        return [rows[tuple(r)] for b in batches for r in b[0]["token_ids"].numpy()]

    (*whole, last) = features.dataset(4, shuffle=False, repeat=False)
    assert order([*whole, last])[:count] == [rows[tuple(r)] for r in features.token_ids]
    filled = len([*whole, last]) * 4 - count
    for name in ("start", "end"):
        assert all((batch[2][name] == 1).numpy().all() for batch in whole)
        assert last[2][name].numpy().tolist() == [1.0] * (4 - filled) + [0.0] * filled
    assert (whole[0][1]["end"] == features.end_positions[:4]).numpy().all()

    def endless(seed):
        return list(features.dataset(4, seed).take(count))  # Four epochs.

    epochs = np.array(order(endless(0))).reshape(4, count)
    expected = sorted(rows[tuple(row)] for row in features.token_ids)
    assert all(sorted(epoch) == expected for epoch in epochs.tolist())
    assert len({tuple(epoch) for epoch in epochs.tolist()}) == 4
    assert order(endless(0)) == epochs.ravel().tolist() != order(endless(1))
    inputs, labels, _ = endless(0)[1]
    for row, start in zip(inputs["token_ids"].numpy(), labels["start"]):
        assert start == features.start_positions[rows[tuple(row)]]


@pytest.mark.quick("1")
@pytest.mark.parametrize("num_segments", [0, 1])
def test_an_encoder_of_one_segment_finds_answers_in_the_passage(num_segments):
    """Segment ids tell the head where the passage is; the encoder does not use them."""
    one, two = make_model(encoder={"num_segments": num_segments}), make_model()
    dataset = make_features().dataset(2, shuffle=False, repeat=False)
    inputs = next(iter(dataset))[0]
    seen, expected = (np.asarray(m(inputs)["start"]) > -1e30 for m in (one, two))
    np.testing.assert_array_equal(seen, expected)
    assert expected.any() and not expected.all()
    zeros = {**inputs, "segment_ids": 0 * inputs["segment_ids"]}
    outputs = [one.encoder(x)["sequence_output"] for x in (inputs, zeros)]
    np.testing.assert_array_equal(*outputs)
    assert np.isfinite(one.evaluate(dataset, verbose=0, return_dict=True)["loss"])


@pytest.mark.slow
@pytest.mark.parametrize("make", [roberta_tokenizer, xlm_roberta_tokenizer])
def test_rows_of_one_segment(make):
    """Separators tell where the passage is; the encoder sees one segment."""
    features = make_features(96, make)
    assert not features.segment_ids.any()
    model = make_model(encoder=dict(vocabulary_size=300, max_sequence_length=96))
    allowed = np.array(allowed_tokens(features))
    for logits in model(features.inputs).values():
        np.testing.assert_array_equal(np.asarray(logits) > -1e30, allowed)
    check_served(model, features, make())


@pytest.mark.slow
@pytest.mark.parametrize("make", [roberta_tokenizer, xlm_roberta_tokenizer])
def test_answers_are_learnt_in_rows_of_one_segment(make):
    features = make_features(96, make)
    encoder = dict(vocabulary_size=300, max_sequence_length=96, num_segments=1)
    model = make_model(encoder=encoder)
    model.compile(tfeff.training.AdamW(3e-2))
    dataset = features.dataset(5, shuffle=False)
    losses = model.fit(dataset, epochs=2, steps_per_epoch=30, verbose=0).history["loss"]
    assert losses[1] < losses[0] < 10
    answers = check_served(model, features, make(), 0.0)
    assert [answer.text for answer in answers] == [*ANSWERS, ""]


def check_served(model, features, tokenizer, threshold=None):
    """What is served is what Python answers, and not always the first token."""
    answers = model.answers(features, 5, 30, threshold)
    assert max(answer.start for answer in answers) > 0
    texts = (
        [getattr(q, n) for q in features.questions] for n in ("question", "passage")
    )
    length = features.token_ids.shape[1]
    text_encoder = TextEncoder(tokenizer, length)
    answer = answer_endpoint(model, text_encoder, 5, 30, threshold)["answer"]
    served = tf.function(answer)(*map(tf.constant, texts))
    assert [x.decode() for x in served["answer"].numpy()] == [a.text for a in answers]
    scores = [answer.score for answer in answers]
    np.testing.assert_allclose(served["score"], scores, atol=1e-4)
    return answers


def test_bad_arguments():
    with pytest.raises(TypeError, match="`encoder` must be a"):
        SpanQA("bert_tiny")
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=9, hidden_dim=8)
    with pytest.raises(ValueError, match="`dropout` must be"):
        SpanQA(encoder, dropout=1.0)
    features = make_features()
    with pytest.raises(ValueError, match="`batch_size` must be"):
        features.dataset(0)
    with pytest.raises(TypeError, match="`seed` must be"):
        features.dataset(2, seed=0.5)
    logits = np.zeros(features.token_ids.shape)
    with pytest.raises(TypeError, match="`features` must be from"):
        best_spans(None, logits, logits)
    for wrong in ("x", None, [["a"]]):
        with pytest.raises((TypeError, ValueError), match="`end_logits` must"):
            best_spans(features, logits, wrong)
    model = SpanQA(encoder)  # Its table ends before the ids, so it cannot be called.
    for wrong in ("x", float("nan"), True, [0.5]):
        with pytest.raises(ValueError, match="`no_answer_threshold` must be a number"):
            best_spans(features, logits, logits, no_answer_threshold=wrong)
    halves = np.float32(0.5), tf.constant(0.5), tf.constant(0.5, tf.bfloat16)
    for right in (float("inf"), -1, None, *halves):
        best_spans(features, logits, logits, no_answer_threshold=right)
    with pytest.raises(ValueError, match="`features` must be made with the tokenizer"):
        model.answers(features)


def test_numbers_are_checked_before_the_model_is_called(monkeypatch):
    model, features = make_model(), make_features()
    monkeypatch.setattr(model, "predict", None)
    with pytest.raises(ValueError, match="`no_answer_threshold` must be a number"):
        model.answers(features, no_answer_threshold="x")
    with pytest.raises(ValueError, match="`max_answer_tokens` must be"):
        model.answers(features, max_answer_tokens=0)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["bert_tiny", "shatter_tiny"])
def test_two_replicas_equal_one_device(preset):
    features = make_features()
    single, double = check_two_replicas(
        # In float32, the two orders of summation differ by more than the tolerance.
        lambda: make_model(preset, encoder={"dtype": "float64"}),
        features.dataset(4),
        steps=10,
    )
    # The replicas see different weights in the batch that is filled up.
    evaluation = features.dataset(4, shuffle=False, repeat=False)
    logs = [
        model.evaluate(evaluation, verbose=0, return_dict=True)
        for model in (single, double)
    ]
    assert logs[1] == pytest.approx(logs[0], rel=1e-4)


@pytest.mark.quick("1")
@pytest.mark.parametrize("accumulation_steps", [1, 2])
def test_names_of_targets_and_weights_are_checked(accumulation_steps):
    """And a model that an error has stopped trains on."""
    model = make_model(accumulation_steps=accumulation_steps)
    inputs, labels, weights = next(iter(make_features().dataset(4)))
    start = {"start": weights["start"]}
    with pytest.raises(ValueError, match="`sample_weight` must .* start, end. .*start"):
        model.train_on_batch(inputs, labels, start)
    with pytest.raises(ValueError, match="`y` must have targets of start, end"):
        model.train_on_batch(inputs, {"start": labels["start"]})
    for run in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match="`class_weight` .* by name"):
            run(inputs, labels, class_weight={0: 1.0})
    assert np.isfinite(model.train_on_batch(inputs, labels, weights)[0])
