"""What training labels alone predict, counted by hand, and its official metrics."""

import math

import numpy as np
import pytest

from tests.datasets.examples import examples
from tfeff.data import Question, SpanExamples, TokenExamples
from tfeff.datasets import baseline_name, baseline_predictions, get

NAMES = get("WikiANN").label_names


def words(*sentences, labels=None):
    sentences = tuple(tuple(sentence.split()) for sentence in sentences)
    return TokenExamples(sentences, labels, NAMES, tuple(map(str, range(len(labels)))))


def asked(*answers):
    return SpanExamples(
        tuple(Question(f"q{i}", "Who?", "…", a) for i, a in enumerate(answers))
    )


def test_the_commonest_class_and_its_metrics():
    train = examples("MRPC", [0, 1, 1, 0, 1])
    dev = examples("MRPC", [1, 1, 0])
    assert baseline_name(train) == "majority baseline"
    assert baseline_predictions(train, dev).tolist() == [1, 1, 1]
    scores = get("MRPC").baseline(train, dev)
    assert scores == pytest.approx({"f1": 0.8, "accuracy": 2 / 3})
    # Of two equally common ones it is the first.
    even = examples("MRPC", [1, 0])
    assert baseline_predictions(even, dev).tolist() == [0, 0, 0]
    constant = get("CoLA").baseline(examples("CoLA", [1, 1]), examples("CoLA", [0, 1]))
    assert math.isnan(constant["matthews_correlation"])
    assert constant["accuracy"] == 0.5


def test_the_commonest_option():
    train, dev = examples("RACE", [3, 2, 3]), examples("RACE", [3, 0, 1, 3])
    assert baseline_predictions(train, dev).tolist() == [3] * 4
    assert baseline_name(train) == "majority baseline"
    assert get("RACE").baseline(train, dev)["accuracy"] == 0.5


def test_the_mean_rating_has_no_correlation():
    train = examples("STS-B", np.array([1.0, 2.0, 5.0], "float32"))
    dev = examples("STS-B", np.array([1.0, 4.0], "float32"))
    assert baseline_name(train) == "mean baseline"
    assert baseline_predictions(train, dev) == pytest.approx([8 / 3] * 2)
    assert all(math.isnan(x) for x in get("STS-B").baseline(train, dev).values())


def test_the_commonest_answer():
    train = asked(("Ada",), ("Bob", "Ada"), ("Ada", "Eve"))
    dev = asked(("Ada",), ("Ada Eve",))
    assert baseline_name(train) == "majority baseline"
    assert baseline_predictions(train, dev) == {"q0": "Ada", "q1": "Ada"}
    scores = get("SQuAD1.1").baseline(train, dev)
    assert scores == pytest.approx({"f1": (1 + 2 / 3) / 2, "exact_match": 0.5})
    # Where most questions have no answer, that is the commonest one.
    train, dev = asked((), ("Ada",), ()), asked((), ("Ada",), ())
    assert baseline_predictions(train, dev) == dict.fromkeys(("q0", "q1", "q2"), "")
    scores = get("SQuAD2.0").baseline(train, dev)
    assert scores == pytest.approx({"f1": 2 / 3, "exact_match": 2 / 3})


def test_each_words_commonest_tag():
    outside, begin, more = NAMES.index("O"), NAMES.index("B-PER"), NAMES.index("I-PER")
    train = words(
        "Ada saw Ada",
        "the Ada Lovelace saw it",
        labels=[[begin, outside, begin], [outside, more, more, begin, outside]],
    )
    dev = words("Eve saw Ada Lovelace", labels=[[begin, outside, begin, more]])
    assert baseline_name(train) == "most-frequent-tag baseline"
    # "saw" has two tags equally often. Eve is unknown: of all tags O and B-PER, three
    # times each, are the commonest, and O is the first.
    (found,) = baseline_predictions(train, dev)
    assert found.tolist() == [outside, outside, begin, more]
    scores = get("WikiANN").baseline(train, dev)
    expected = {"precision": 1.0, "recall": 0.5, "f1": 2 / 3, "accuracy": 0.75}
    assert scores == pytest.approx(expected)


def test_arguments():
    train, dev = examples("MRPC", [0]), words("Ada", labels=[[0]])
    with pytest.raises(TypeError, match="`train` and `examples` must be of one kind"):
        baseline_predictions(train, dev)
    with pytest.raises(TypeError, match="`train` must be one of .*train='MRPC'"):
        baseline_predictions("MRPC", dev)
    with pytest.raises(ValueError, match="`train` must have .*no labels"):
        baseline_predictions(examples("MRPC", None, ids=("a",)), train)
    with pytest.raises(ValueError, match="`train` must have .*no examples"):
        baseline_predictions(SpanExamples(()), SpanExamples(()))
    with pytest.raises(TypeError, match="`examples` must be `TextExamples` of MRPC"):
        get("MRPC").baseline(train, dev)


@pytest.mark.slow
def test_baselines_of_real_data(data_dir):
    def of(name, folder):
        dataset = get(name)
        return dataset.baseline(
            *(dataset.read(part, data_dir / folder) for part in ("train", "dev"))
        )

    # 279 of MRPC's 408 pairs are paraphrases.
    assert of("MRPC", "glue")["f1"] == pytest.approx(2 * 279 / (408 + 279))
    assert of("CoNLL-2000", "ner/conll2000")["f1"] == pytest.approx(0.70248, abs=1e-5)
