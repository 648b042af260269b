"""Answers of a SavedModel, against those of the same model in Python."""

import random
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import randomize
from tests.subjects.characters import CORPUS, FRAGMENTS, word_pieces
from tfeff.data import Question, make_span_features
from tfeff.datasets import read_squad
from tfeff.export import parts
from tfeff.export.span_qa import answer_endpoint
from tfeff.export.text_encoder import TextEncoder

LENGTH, STRIDE, LONGEST = 24, 7, 5
SPECS = [tf.TensorSpec([None], tf.string)] * 2


def make_tokenizer(kind):
    if kind == "sentence_piece":
        return tfeff.data.train_tokenizer(CORPUS, vocabulary_size=64)
    return word_pieces()


def make_model(tokenizer, length=LENGTH, **changes):
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=tokenizer.vocabulary_size() + 2,
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=length,
        **changes,
    )
    model = tfeff.tasks.SpanQA(encoder)
    randomize({variable.path: variable for variable in model.weights}, scale=0.5)
    return model


def make_questions(count=25):
    source = random.Random(1)
    fixed = ["x", "The\tquick  brown\n fox,  12½ times\u2028 jumps", "é" * 60]
    passages = fixed + [
        "".join(source.choices(FRAGMENTS, k=source.randrange(120))) + "x"
        for _ in range(count - len(fixed))
    ]
    return [
        Question(f"q{i}", "".join(source.choices(FRAGMENTS[:20], k=4)), passage)
        for i, passage in enumerate(passages)
    ]


def check(outputs, expected):
    """`outputs` of NumPy arrays are these answers; some of them must be."""
    texts = [text.decode() for text in outputs["answer"]]
    assert texts == [answer.text for answer in expected]
    assert outputs["start"].tolist() == [answer.start for answer in expected]
    assert outputs["end"].tolist() == [answer.end for answer in expected]
    for name, tolerance in (("score", 1e-4), ("no_answer_probability", 1e-5)):
        assert outputs[name].dtype == np.float32
        np.testing.assert_allclose(
            outputs[name], [getattr(a, name) for a in expected], atol=tolerance
        )


def texts_of(questions):
    return (
        tf.constant([question.question for question in questions]),
        tf.constant([question.passage for question in questions]),
    )


def make_answer(model, tokenizer, length=LENGTH, stride=STRIDE, **options):
    """The graph of the function `answer` of a model."""
    dependent = model.encoder.length_dependent
    text_encoder = TextEncoder(tokenizer, length, dependent)
    function = answer_endpoint(model, text_encoder, stride, **options)["answer"]
    return tf.function(function, input_signature=SPECS)


def numbers(outputs):
    return {name: value.numpy() for name, value in outputs.items()}


@pytest.mark.quick("word_piece")
@pytest.mark.parametrize("kind", ["sentence_piece", "word_piece"])
def test_answers_are_those_of_python(kind, monkeypatch):
    tokenizer = make_tokenizer(kind)
    model, questions = make_model(tokenizer), make_questions()
    features = make_span_features(questions, tokenizer, LENGTH, STRIDE)
    assert len(features) > 2 * 64 > 2 * len(questions)
    monkeypatch.setattr(parts, "TOKENS_AT_ONCE", 64 * LENGTH)
    gaps = [
        np.log(a.no_answer_probability / (1 - a.no_answer_probability))
        for a in model.answers(features, 64, LONGEST)
    ]
    threshold = float(sum(sorted(gaps)[9:11]) / 2)
    # Where the tokens lie differs between the kinds; what follows does not.
    for limit in (None, threshold) if kind == "sentence_piece" else (threshold,):
        options = dict(max_answer_tokens=LONGEST, no_answer_threshold=limit)
        answer = make_answer(model, tokenizer, **options)
        expected = model.answers(features, 64, LONGEST, limit)
        assert len({a.text == "" for a in expected}) == (1 if limit is None else 2)
        check(numbers(answer(*texts_of(questions))), expected)
        check(numbers(answer(*texts_of(questions[1:2]))), expected[1:2])
    empty = numbers(answer(*[tf.constant([], tf.string)] * 2))
    assert all(value.shape == (0,) for value in empty.values())
    nothing = numbers(answer(tf.constant(["a", "b"]), tf.constant(["", " \u200b"])))
    assert nothing["answer"].tolist() == [b"", b""]
    assert nothing["no_answer_probability"].tolist() == [1.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="`question` must leave"):
        answer(tf.constant(["fox " * 30]), tf.constant(["fox"]))


@pytest.mark.slow
def test_windows_of_blockwise_attention_are_of_full_length():
    tokenizer = make_tokenizer("word_piece")
    attention = {"name": "blockwise", "head_blocks": "1:1"}
    model = make_model(tokenizer, attention=attention)
    questions = make_questions(5)
    features = make_span_features(questions, tokenizer, LENGTH, STRIDE)
    expected = model.answers(features, 64, LONGEST)
    answer = make_answer(model, tokenizer, max_answer_tokens=LONGEST)
    for count in (1, 5):
        check(numbers(answer(*texts_of(questions[:count]))), expected[:count])


@pytest.mark.slow
def test_real_passages(data_dir):
    path = data_dir / "squad" / "dev-v1.1.json"
    if not path.is_file():
        pytest.skip(f"no {path}")
    questions = read_squad(path).questions[::12]
    passages = [question.passage for question in questions]
    tokenizer = tfeff.data.train_tokenizer(passages, vocabulary_size=400)
    model = make_model(tokenizer, 96)
    features = make_span_features(questions, tokenizer, 96, 40)
    answer = make_answer(model, tokenizer, 96, 40)
    check(numbers(answer(*texts_of(questions))), model.answers(features))


LOADER = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"keras_hub", "sentencepiece", "tfeff"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import numpy, tensorflow, tensorflow_text

path, target, texts = sys.argv[1:]
with numpy.load(texts, allow_pickle=True) as file:
    texts = {name: tensorflow.constant(file[name].tolist()) for name in file}
signature = tensorflow.saved_model.load(path).signatures["answer"]
numpy.savez(target, **{k: v.numpy() for k, v in signature(**texts).items()})
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sentence_piece", "word_piece"])
def test_a_process_with_tensorflow_alone_agrees(kind, tmp_path):
    tokenizer = make_tokenizer(kind)
    model, questions = make_model(tokenizer), make_questions()
    tfeff.export.save_for_serving(
        model,
        tokenizer,
        tmp_path / "export",
        stride=STRIDE,
        max_answer_tokens=LONGEST,
        no_answer_threshold=0.0,
    )
    question, passage = texts_of(questions)
    texts = tmp_path / "texts.npz"
    np.savez(texts, question=question.numpy(), passage=passage.numpy())
    arguments = [str(tmp_path / "export"), str(tmp_path / "outputs.npz"), str(texts)]
    subprocess.run([sys.executable, "-c", LOADER, *arguments], check=True)
    outputs = dict(np.load(tmp_path / "outputs.npz", allow_pickle=True))
    features = make_span_features(questions, tokenizer, LENGTH, STRIDE)
    check(outputs, model.answers(features, 64, LONGEST, 0.0))


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 0.0])
def test_windows_without_numbers_have_no_answer(limit):
    """A text that overflows fails neither its batch nor its other windows."""
    tokenizer = make_tokenizer("word_piece")
    model = make_model(tokenizer)
    plain, hostile = "The quick brown fox", "jumps"
    table = model.encoder.token_embedding.embeddings
    rows = table.numpy()
    rows[tokenizer(hostile)[-1]] = np.nan
    table.assign(rows)
    options = dict(max_answer_tokens=LONGEST, no_answer_threshold=limit)
    answer = make_answer(model, tokenizer, **options)
    passages = [plain, hostile, f"{hostile} {plain * 9}", ""]
    outputs = numbers(answer(tf.constant(["x"] * 4), tf.constant(passages)))
    assert outputs["score"].tolist()[1] == outputs["score"].tolist()[3]
    assert outputs["no_answer_probability"].tolist()[1] == 1.0
    for name in ("start", "end"):
        assert outputs[name].tolist()[1] == 0
    assert np.isfinite(outputs["score"]).all() and outputs["score"][2] > -1e3
    assert (outputs["answer"][2] == b"") == (
        limit is not None and outputs["no_answer_probability"][2] > 0.5
    )
    alone = numbers(answer(tf.constant(["x"]), tf.constant([plain])))
    for name in ("answer", "start", "end"):
        assert outputs[name][0] == alone[name][0]


def test_bad_options():
    tokenizer = make_tokenizer("word_piece")
    model = make_model(tokenizer)
    with pytest.raises(ValueError, match="`sequence_length` must be"):
        make_answer(model, tokenizer, 3)
    with pytest.raises(ValueError, match="`stride` must be"):
        make_answer(model, tokenizer, stride=0)
    with pytest.raises(TypeError, match="`max_answer_tokens` must be"):
        make_answer(model, tokenizer, max_answer_tokens=2.5)
    for bad in (float("nan"), "0"):
        with pytest.raises(ValueError, match="`no_answer_threshold` must be"):
            make_answer(model, tokenizer, no_answer_threshold=bad)
