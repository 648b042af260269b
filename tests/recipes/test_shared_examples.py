"""Texts that are in several parts of a data set are told."""

import tfeff
from tfeff.recipes.shared_examples import print_shared


def spans(*questions):
    return tfeff.data.SpanExamples(
        tuple(tfeff.data.Question(str(i), *q) for i, q in enumerate(questions))
    )


def test_questions(capsys):
    a, b, c = ("Who?", "A cat."), ("Who?", "A dog."), ("Where?", "A cat.")
    print_shared({"train": spans(a, b), "dev": spans(b, c), "test": spans(c)})
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2 different texts of dev are in train, too",
        "1 of 1 different texts of test are in dev, too",
    ]
    print_shared({"train": spans(a), "dev": spans(b)})
    assert not capsys.readouterr().out


def test_texts_pairs_options_and_words(capsys):
    def shared(one, other):
        print_shared({"train": one, "dev": other})
        return capsys.readouterr().out

    texts = tfeff.data.TextExamples
    assert shared(texts(["a", "b"]), texts(["b", "c"])).startswith(
        "1 of 2 different texts of dev"
    )
    assert not shared(texts(["a"], ["b"]), texts(["a"], ["c"]))
    assert shared(texts(["a"], ["b"]), texts(["a"], ["b"])).startswith("1 of 1")
    names = dict(label_names=("A", "B"), labels=None, ids=("x",))
    one, other = (
        tfeff.data.ChoiceExamples(("p",), ("q",), ((first, "no"),), **names)
        for first in ("yes", "maybe")
    )
    assert not shared(one, other) and shared(one, one)
    one, other = (
        tfeff.data.TokenExamples(words=((word, "b"),), **names) for word in "ac"
    )
    assert not shared(one, other) and shared(one, one)
