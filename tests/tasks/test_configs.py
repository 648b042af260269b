"""Tasks and objectives come back from their configuration with each argument."""

import inspect

import pytest

from tests.subjects.encoders import tiny
from tfeff import objectives, tasks, training

LABELS = ["a", "b", "c"]
# Each argument beside the encoders, with another value than its default.
ARGUMENTS = {
    tasks.Classifier: dict(
        num_classes=3,
        pooling="mean",
        dropout=0.3,
        pooler_activation="relu",
        label_names=LABELS,
    ),
    tasks.MultipleChoice: dict(pooling="mean", dropout=0.3, pooler_activation="relu"),
    tasks.Regressor: dict(
        pooling="mean", dropout=0.3, pooler_activation="relu", scale=2.0, offset=3.0
    ),
    tasks.SentenceEmbedding: dict(
        pooling="cls", temperature=0.2, sequence_length=7, normalize=True
    ),
    tasks.SpanQA: dict(dropout=0.3),
    tasks.TokenClassifier: dict(num_classes=3, dropout=0.3, label_names=LABELS),
    objectives.MaskedLM: dict(activation="relu", layer_norm_epsilon=1e-3),
    objectives.PermutationLM: dict(),
    objectives.SentencePairPrediction: dict(
        masked_lm=False, kind="next", activation="relu", layer_norm_epsilon=1e-3
    ),
    objectives.ReplacedTokenDetection: dict(
        discriminator_weight=7.0, temperature=0.5, seed=3, activation="relu"
    ),
    objectives.Distillation: dict(
        layer_map=[2, 1],
        attention="probabilities",
        hidden=False,
        embedding=False,
        prediction=True,
        reduction="sum_squares",
        temperature=2.0,
        soften="student",
        cosine=True,
        label=True,
        loss_weights={"prediction": 3.0},
        layer_weights=[1.0, 2.0, 3.0, 4.0],
    ),
}
# Encoders, what is made of an encoder's, and Keras' own.
OTHERS = {"self", "encoder", "generator", "discriminator", "student", "teacher"}
OTHERS |= {"kwargs", "tokenizers", "generator_head"}


def encoders(cls):
    """The encoders that the class takes."""
    if cls is objectives.PermutationLM:
        return [tiny("xlnet_base")]
    if cls is objectives.ReplacedTokenDetection:
        return [tiny("bert_tiny"), tiny("bert_tiny")]
    if cls is objectives.Distillation:
        return [objectives.MaskedLM(tiny("bert_tiny")) for _ in range(2)]
    return [tiny("bert_tiny")]


@pytest.mark.parametrize("cls", ARGUMENTS, ids=lambda cls: cls.__name__)
def test_each_argument_comes_back(cls):
    given = ARGUMENTS[cls]
    assert {*given} == {*inspect.signature(cls.__init__).parameters} - OTHERS
    config = cls(*encoders(cls), **given).get_config()
    assert {name: config[name] for name in given} == given
    again = cls.from_config(config).get_config()
    assert {name: again[name] for name in given} == given


@pytest.mark.parametrize(
    ("function", "defaults"),
    [
        (
            training.adamw,
            dict(
                weight_decay=0.01,
                epsilon=1e-6,
                global_clipnorm=1.0,
                beta_1=0.9,
                beta_2=0.999,
            ),
        ),
        (tasks.Classifier, dict(dropout=0.1, pooling="cls", pooler_activation="tanh")),
        (tasks.SentenceEmbedding, dict(temperature=0.05, pooling="mean")),
        (objectives.ReplacedTokenDetection, dict(discriminator_weight=50.0)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_defaults_are_the_papers(function, defaults):
    parameters = inspect.signature(function).parameters
    assert {name: parameters[name].default for name in defaults} == defaults
