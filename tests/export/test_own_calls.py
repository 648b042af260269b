"""What a model of a user's class serves has the structure that its class promises."""

import os

import pytest
import tensorflow as tf

from tests.subjects.sentences import tokenizer
from tests.subjects.serving import make_encoder
from tfeff.export import save_for_serving
from tfeff.objectives import MaskedLM
from tfeff.tasks import (
    Classifier,
    Regressor,
    SentenceEmbedding,
    SpanQA,
    TokenClassifier,
)

WRONG = {
    "nothing": (Classifier, (3,), lambda x: None),
    "a tuple": (Classifier, (3,), lambda x: (x, x)),
    "too few classes": (Classifier, (3,), lambda x: x[:, :2]),
    "a dict": (Classifier, (3,), lambda x: {"logits": x}),
    "integers": (Classifier, (3,), lambda x: tf.cast(x, tf.int32)),
    "a column of ratings": (Regressor, (), lambda x: x[:, tf.newaxis]),
    "tokens but the first": (TokenClassifier, (3,), lambda x: x[:, 1:]),
    "a dict of embeddings": (SentenceEmbedding, (), lambda x: {"pooled": x}),
    "a tuple of spans": (SpanQA, (), lambda x: tuple(x.values())),
    "no end of spans": (SpanQA, (), lambda x: {"start": x["start"]}),
    "logits twice": (MaskedLM, (), lambda x: [x, x]),
}


def with_call(kind, arguments, change):
    class Own(kind):
        def call(self, inputs, training=None, mask=None):
            return change(super().call(inputs, training=training))

    return Own(make_encoder(), *arguments)


@pytest.mark.parametrize("case", WRONG)
def test_other_outputs_are_refused_before_anything_is_written(case, tmp_path):
    model = with_call(*WRONG[case])
    message = "`model` must have a `call` whose outputs are those of its class"
    with pytest.raises(ValueError, match=message):
        save_for_serving(model, tokenizer(), tmp_path / "export")
    assert not os.listdir(tmp_path)


def test_a_call_that_fails_on_texts_is_named(tmp_path):
    def fail(x):
        raise KeyError("input_ids")

    model = with_call(Classifier, (3,), fail)
    message = "`model` must have a `call` for texts. .* ends in KeyError: "
    with pytest.raises(ValueError, match=message):
        save_for_serving(model, tokenizer(), tmp_path / "export")
    assert not os.listdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda x: tf.cast(x[..., :8], tf.float16),
        lambda x: tf.concat([x, x], -1),
    ],
)
def test_embeddings_may_have_any_size(change, tmp_path):
    model = with_call(SentenceEmbedding, (), change)
    save_for_serving(model, tokenizer(), tmp_path / "1")


@pytest.mark.slow
def test_other_values_and_further_outputs_are_served(tmp_path):
    model = with_call(Classifier, (3,), lambda x: x + tf.constant([0.0, 9.0, 0.0]))
    save_for_serving(model, tokenizer(), tmp_path / "1")
    served = tf.saved_model.load(str(tmp_path / "1")).signatures["classify"]
    assert served(text=tf.constant(["a"]))["label"].numpy() == [b"1"]
    more = with_call(SpanQA, (), lambda x: x | {"more": x["start"]})
    save_for_serving(more, tokenizer(), tmp_path / "2")
