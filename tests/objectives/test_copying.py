"""Students that begin with weights of their teacher, of all kinds of layers."""

import numpy as np
import pytest

import tfeff
from tests.checks import randomize
from tests.subjects.encoders import tiny
from tfeff.objectives import copy_layers

BIAS = {"name": "relative", "method": "bias", "num_buckets": 8, "max_distance": 5}
HUANG = {"name": "relative", "method": "huang4", "max_distance": 5}


def pair(student=(), teacher=(), student_layers=2, teacher_layers=4):
    encoders = [
        tiny("bert_tiny", num_layers=student_layers, **dict(student)),
        tiny("bert_tiny", num_layers=teacher_layers, **dict(teacher)),
    ]
    for seed, encoder in enumerate(encoders):
        randomize({w.path: w for w in encoder.weights}, seed=seed)
    return encoders


def values(block):
    return {
        w.path.split("block_")[1].split("/", 1)[1]: w.numpy() for w in block.weights
    }


@pytest.mark.parametrize(
    "both",
    [
        {"attention": BIAS},
        {"attention": HUANG},
        {"attention": "mixed"},
        {"attention": "one_head"},
        {"sharing": "attention"},
        {"sharing": "feedforward"},
        {"sharing": "all"},
        {"feedforward": {"num_groups": 2}},
    ],
    ids=str,
)
def test_every_kind_of_layer(both):
    student, teacher = pair(both, both)
    copy_layers(student, teacher)
    for own, source in zip(student.blocks, teacher.blocks[1::2], strict=True):
        own, source = values(own), values(source)
        assert own.keys() == source.keys() and own
        for name, value in own.items():
            np.testing.assert_array_equal(value, source[name], err_msg=name)


def test_a_shorter_table_of_positions_has_the_first_ones():
    student, teacher = pair(
        {"max_sequence_length": 8, "position": "absolute"},
        {"max_sequence_length": 16, "position": "absolute"},
    )
    copy_layers(student, teacher)
    own, source = (
        x.embedding.position_embedding.embeddings.numpy() for x in (student, teacher)
    )
    np.testing.assert_array_equal(own, source[:8])


def test_from_layers_that_share_to_layers_that_do_not():
    student, teacher = pair({}, {"sharing": "attention"})
    copy_layers(student, teacher)
    for own, source in zip(student.blocks, teacher.blocks[1::2], strict=True):
        np.testing.assert_array_equal(
            own.attention.query_dense.kernel, source.attention.query_dense.kernel
        )


@pytest.mark.parametrize(
    "student, teacher, message",
    [
        ({"sharing": "all"}, {}, "not share weights .* attention of layer 2"),
        ({"sharing": "feedforward"}, {}, "not share .* feedforward of layer 2"),
        ({"attention": "self"}, {"attention": HUANG}, "kind 'SelfAttention' in the st"),
        ({"attention": HUANG}, {"attention": "self"}, "kind 'RelativeAttention' in t"),
        (
            {"attention": {**HUANG, "method": "shaw"}},
            {"attention": HUANG},
            "method 'shaw' in the student, 'huang4' in the teacher",
        ),
        (
            {"attention": {"name": "one_head", "normalizer": "softmax"}},
            {"attention": "one_head"},
            "normalizer 'softmax' in the student",
        ),
        ({"feedforward": {"activation": "relu"}}, {}, "activation 'relu' in the stud"),
        ({"num_heads": 1}, {"num_heads": 2}, "num_heads 1 in the student"),
        ({"embedding_layer_norm": False}, {}, "without norm/beta, norm/gamma of the t"),
    ],
    ids=str,
)
def test_what_cannot_be_copied(student, teacher, message):
    student, teacher = pair(student, teacher)
    before = student.get_weights()
    with pytest.raises(ValueError, match=f"`student` must .*{message}"):
        copy_layers(student, teacher)
    for value, same in zip(before, student.get_weights(), strict=True):
        np.testing.assert_array_equal(value, same)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"activation": "relu"}, "activation 'gelu', of the teacher 'relu'"),
        ({"layer_norm_epsilon": 0.1}, "layer_norm_epsilon 1e-12, of the teacher 0.1"),
    ],
)
def test_heads_of_other_settings_are_not_copied(settings, message):
    student, teacher = pair({}, {})
    teacher = tfeff.objectives.MaskedLM(teacher, **settings)
    with pytest.raises(ValueError, match=f"`student` must have a head.*{message}"):
        tfeff.objectives.copy_head(tfeff.objectives.MaskedLM(student), teacher)
