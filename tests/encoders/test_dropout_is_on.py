"""Each dropout acts in training, alone, in every model and where it is documented."""

import keras
import numpy as np
import pytest

from tests.checks import randomize
from tests.subjects import distillation
from tests.subjects.objectives import KINDS, batches, make_encoder, make_model
from tfeff import tasks
from tfeff.layers import (
    EncoderBlock,
    FeedForward,
    LayerwisePooling,
    SelfAttention,
    TwoStreamBlocks,
)
from tfeff.objectives import Distillation

TASKS = {
    "classifier": lambda encoder: tasks.Classifier(encoder, 3, dropout=0.0),
    "layerwise": lambda encoder: tasks.Classifier(
        encoder, 3, pooling="layerwise", dropout=0.0
    ),
    "segments": lambda encoder: tasks.Regressor(
        encoder, pooling="segments", dropout=0.0
    ),
    "tokens": lambda encoder: tasks.TokenClassifier(encoder, 3, dropout=0.0),
    "spans": tasks.SpanQA,
    "choice": lambda encoder: tasks.MultipleChoice(encoder, dropout=0.0),
    "embedding": tasks.SentenceEmbedding,
}
RATES = ({"dropout": 0.5, "attention_dropout": 0.0}, {"attention_dropout": 0.5})
HIDDEN = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")


def check_dropout(call, is_on=True):
    """Two calls in training differ from each other where dropout is on; others not."""
    plain, again, *trained = (
        np.concatenate([np.ravel(x) for x in keras.tree.flatten(call(training))])
        for training in (False, False, True, True)
    )
    np.testing.assert_array_equal(plain, again)
    for one in trained:
        assert bool(np.abs(one - plain).max() > 1e-4) is is_on
    assert bool(np.abs(trained[0] - trained[1]).max() > 1e-4) is is_on


def spread(model):
    """The model with weights large enough for all that is dropped to show."""
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.5)
    return model


@pytest.mark.quick(
    "replaced_token-dropout",
    "masked_lm-attention_dropout",
    "permutation_lm-attention_dropout",
    "sentence_order-dropout",
    "layerwise-attention_dropout",
    "spans-dropout",
    "embedding-dropout",
)
@pytest.mark.parametrize("rates", RATES, ids=["dropout", "attention_dropout"])
@pytest.mark.parametrize("kind", [*KINDS, *TASKS])
def test_models(kind, rates):
    keras.utils.set_random_seed(0)
    if kind in TASKS:
        model = spread(TASKS[kind](make_encoder(**rates)))
        inputs, _, _ = next(iter(batches("masked_lm", 1)))
        inputs = {name: inputs[name] for name in model.input}
        if len(model.input["token_ids"].shape) == 3:  # Several texts a row.
            inputs = {name: x[:, None] for name, x in inputs.items()}
    else:
        model = spread(make_model(kind, **rates))
        inputs, *_ = next(iter(batches(kind, 1)))

    def call(training):
        outputs = model(inputs, training=training)
        if isinstance(outputs, dict):  # What is sampled differs in any case.
            outputs = {k: v for k, v in outputs.items() if k != "samples"}
        return outputs if kind != "replaced_token" else outputs["masked_lm"]

    check_dropout(call)


@pytest.mark.parametrize("kind", [tasks.Classifier, tasks.TokenClassifier])
def test_heads_of_tasks(kind):
    model = spread(kind(make_encoder(), 3, dropout=0.5))
    inputs, _, _ = next(iter(batches("masked_lm", 1)))
    inputs = {name: inputs[name] for name in model.input}
    check_dropout(lambda training: model(inputs, training=training))


@pytest.mark.parametrize("student, teacher", [(0.5, 0.0), (0.0, 0.9), (0.0, 0.0)])
def test_a_teacher_has_none(student, teacher):
    keras.utils.set_random_seed(0)
    inputs, _ = distillation.make_inputs()
    models = (distillation.make_encoder(2, dropout=rate) for rate in (student, teacher))
    model = Distillation(*map(spread, models))
    check_dropout(lambda training: model(inputs, training=training), student > 0)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_layers_that_run_blocks(rate):
    """Of the scores, which they compute by the attention's parts."""
    keras.utils.set_random_seed(0)
    blocks = [
        EncoderBlock(SelfAttention(2, dropout=rate), FeedForward(12)) for _ in range(2)
    ]
    pooling, streams = LayerwisePooling(blocks), TwoStreamBlocks(blocks)
    pooling([HIDDEN] * 3)
    spread(pooling)
    ranks = np.array([[0, 1, 2, -1, 3]] * 2, "int32")
    for call in (
        lambda training: pooling([HIDDEN] * 3, training=training),
        lambda training: streams(HIDDEN, ranks, training=training),
    ):
        check_dropout(call, rate > 0)


def test_the_residual_stream_keeps_all():
    """A block whose branches give 0 drops nothing of its input."""
    block = EncoderBlock(SelfAttention(2), FeedForward(12), dropout=0.5)
    block(HIDDEN)
    for part in (block.attention, block.feedforward):
        for weight in part.weights:
            if "output" in weight.path:
                weight.assign(keras.ops.zeros(weight.shape))
    check_dropout(lambda training: block(HIDDEN, training=training), False)
