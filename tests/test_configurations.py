"""Configurations are the caller's: changing one changes no layer and no model."""

import copy

import keras
import pytest

import tfeff
from tests.subjects.encoders import tiny
from tests.subjects.partitions import TENTS
from tfeff import layers, objectives

ATTENTIONS = [
    {"name": "relative", "method": "huang4", "max_distance": 5},
    {"name": "one_head", "partition": TENTS, "values_by_part": False},
    {"name": "one_head", "boundaries": [-2, 0, 3]},
    {"name": "blockwise", "head_blocks": [[0, 1], [1, 0], [0, 1], [1, 0]]},
    {"name": "sparse", "stride": 3, "expressivity": 1},
]


def encoder(attention="self", **changes):
    changes = {"num_layers": 2, "num_heads": 4, **changes}
    return tiny("bert_tiny", attention=attention, **changes)


def distillation():
    return objectives.Distillation(
        encoder(num_layers=1),
        encoder(),
        layer_map=[2],
        loss_weights={"hidden": 2.0},
        layer_weights=[1.0, 2.0, 3.0],
    )


def replaced_token():
    discriminator = encoder()
    generator = objectives.generator_for(discriminator, 1 / 2)
    return objectives.ReplacedTokenDetection(
        generator, discriminator, generator_head={"activation": "relu"}
    )


MAKE = {
    **{
        f"{a['name']}-{len(a)}-{index}": (lambda a=a: encoder([a, a]))
        for index, a in enumerate(ATTENTIONS)
    },
    "feedforward": lambda: encoder(feedforward={"num_groups": 2}),
    "disabled": lambda: encoder({"name": "self", "disabled_heads": [1]}),
    "masked_lm": lambda: objectives.MaskedLM(encoder(ATTENTIONS[0])),
    "permutation_lm": lambda: objectives.PermutationLM(encoder(ATTENTIONS[0])),
    "pairs": lambda: objectives.SentencePairPrediction(encoder()),
    "replaced_token": replaced_token,
    "distillation": distillation,
    "classifier": lambda: tfeff.tasks.Classifier(encoder(), num_classes=2),
    "mask": lambda: layers.PartitionOfUnityMask(4, boundaries=[-2, 0, 3]),
    "registered": lambda: layers.PartitionOfUnityMask(4, partition=TENTS),
    "heads": lambda: layers.BlockwiseAttention(4, head_blocks=[3, 1]),
}


def spoil(value):
    """Changes all containers within a configuration."""
    below = value.values() if isinstance(value, dict) else value
    for one in list(below):
        if isinstance(one, (dict, list)):
            spoil(one)
    if isinstance(value, dict):
        value.update(dict.fromkeys(value, "spoiled"))
    else:
        value[:] = ["spoiled"]


@pytest.mark.quick(
    "blockwise-2-3", "masked_lm", "one_head-2-2", "relative-3-0", "distillation"
)
@pytest.mark.parametrize("name", MAKE)
def test_a_changed_configuration(name):
    subject = MAKE[name]()
    before = copy.deepcopy(keras.saving.serialize_keras_object(subject))
    spoil(subject.get_config())
    assert keras.saving.serialize_keras_object(subject) == before


def test_a_changed_argument():
    attention = [dict(ATTENTIONS[0]), dict(ATTENTIONS[3])]
    feedforward = {"num_groups": 2}
    subject = encoder(attention, feedforward=feedforward)
    before = copy.deepcopy(subject.get_config())
    spoil(attention)
    spoil(feedforward)
    assert subject.get_config() == before
