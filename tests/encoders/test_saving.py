"""Encoders of three layers and more, saved in every way, are loaded as they were.

Two layers are not enough: what Keras marks as shared while it loads a file shows in
the third layer that has it.
"""

import os

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close, randomize
from tests.checks.encoder import batch_of
from tests.checks.saving import (
    check_same,
    check_same_encoder,
    check_same_training,
    check_same_weights,
    outputs_of,
    sharing,
)
from tests.subjects.encoders import TINY, tiny
from tests.subjects.partitions import TENTS
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.convert import swap_positions
from tfeff.encoders import Encoder, attentions, build, presets
from tfeff.objectives import MaskedLM
from tfeff.training import DistributedModel, load_checkpoint, save_checkpoint
from tfeff.utils.digests import check_digests, read_digests, write_digests

BIAS = {"name": "relative", "method": "bias", "num_buckets": 8, "max_distance": 5}
ARGUMENTS = {
    "blockwise": {"head_blocks": "3:1"},
    "sparse": {"stride": 3, "expressivity": 1},
    "lightweight_conv": {"kernel_size": 3},
    "dynamic_conv": {"kernel_size": 3},
    "span_dynamic_conv": {"kernel_size": 3},
}
METHODS = ("shaw", "rpe", "huang1", "huang2", "huang3", "huang4", "xlnet")
# All attentions that there are; T5's shared table first, in the middle and last.
KINDS = [
    BIAS,
    *[{"name": n, **ARGUMENTS.get(n, {})} for n in attentions() if n != "relative"],
    BIAS,
    {"name": "one_head", "normalizer": "softmax"},
    {"name": "one_head", "partition": TENTS, "values_by_part": False},
    {"name": "one_head", "layer_index": 1, "spacing": 5.0, "key_projection": True},
    {"name": "partitioned", "alpha": -9.0, "beta": -0.5},
    *[{"name": "relative", "method": method} for method in METHODS],
    BIAS,
]


def random(encoder):
    randomize({w.path: w for w in encoder.weights}, scale=0.3)
    return encoder


def from_file(encoder, folder):
    encoder.save(folder / "encoder.keras")
    return keras.models.load_model(folder / "encoder.keras")


def from_preset(encoder, folder):
    encoder.save_to_preset(str(folder / "preset"))
    return Encoder.from_preset(str(folder / "preset"))


def from_weights(encoder, folder):
    encoder.save_weights(folder / "encoder.weights.h5")
    copy = Encoder.from_config(encoder.get_config())
    copy.load_weights(folder / "encoder.weights.h5")
    return copy


def check_loaded(encoder, folder, *ways):
    """The encoder as each way gives it back."""
    batch = batch_of(encoder)
    expected = outputs_of(encoder, batch)
    for way in ways:
        loaded = way(encoder, folder)
        check_same_encoder(loaded, encoder)
        check_same(outputs_of(loaded, batch), expected)
    return loaded


def tables(encoder):
    return [w for w in encoder.weights if w.path.endswith("relative/embeddings")]


@pytest.mark.slow
def test_all_attentions_in_one_encoder(tmp_path):
    encoder = build("bert_base", **TINY | {"num_layers": len(KINDS)}, attention=KINDS)
    check_loaded(random(encoder), tmp_path, from_file, from_preset)


def test_one_table_of_all_layers(tmp_path):
    encoder = random(tiny("bert_rab_base", num_layers=3))
    assert len(tables(encoder)) == 1
    loaded = check_loaded(encoder, tmp_path, from_file)
    check_loaded(loaded, tmp_path, from_file)


# Sizes of files, in gigabytes, for one file, for two and for more.
@pytest.mark.quick("10-1e-06", "7e-07-2e-06")
@pytest.mark.parametrize(
    "first, second", [(10, 1e-6), (1e-6, 10), (7e-7, 2e-6), (10, 10)]
)
def test_a_preset_has_no_weights_of_an_earlier_one(first, second, tmp_path):
    folder = str(tmp_path)
    encoder, earlier = random(tiny("bert_base")), tiny("bert_base")
    earlier.save_to_preset(folder, max_shard_size=first)
    (tmp_path / "model.txt").write_text("A file of somebody's.")
    encoder.save_to_preset(folder, max_shard_size=second)
    check_same_weights(Encoder.from_preset(folder), encoder)
    again = tmp_path / "again"
    encoder.save_to_preset(str(again), max_shard_size=second)
    assert set(os.listdir(folder)) - {"again", "model.txt"} == set(os.listdir(again))
    assert read_digests(folder).keys() == read_digests(str(again)).keys()


def test_digests_of_names_that_are_not_utf8_stay(tmp_path):
    encoder, name = tiny("bert_base"), os.fsdecode(b"a\xff.txt")
    encoder.save_to_preset(str(tmp_path), max_shard_size=1e-6)
    (tmp_path / name).write_text("A file of somebody's.")
    write_digests(str(tmp_path))
    encoder.save_to_preset(str(tmp_path))
    assert name in read_digests(str(tmp_path))
    check_digests(str(tmp_path))


# Arguments of attentions that may be arrays.
ARRAYS = [
    {"name": "blockwise", "head_blocks": np.array([3, 1])},
    {"name": "one_head", "boundaries": np.array([-1, 0, 1])},
    {"name": "partitioned", "boundaries": np.array([-1.0, 0.0, 1.0])},
    {"name": "self", "disabled_heads": np.array([0, 2])},
]


def with_arrays():
    encoder = build("bert_base", **TINY | {"num_layers": 4}, attention=ARRAYS)
    return random(encoder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["encoder", "objective", "functional"])
def test_the_earlier_format_of_keras_is_refused(kind, tmp_path):
    encoder = tiny("shatter_base")
    model = {
        "encoder": lambda: encoder,
        "objective": lambda: MaskedLM(encoder),
        "functional": lambda: DistributedModel(encoder.input, encoder.output),
    }[kind]()
    for name in (tmp_path / "model.h5", f"{tmp_path}/model.hdf5"):
        with pytest.raises(ValueError, match="`filepath` must end in .keras.*model.h"):
            model.save(name)
        assert not os.path.exists(name)
    model.save_weights(tmp_path / "model.weights.h5")


def test_arrays_are_lists(tmp_path):
    check_loaded(with_arrays(), tmp_path, from_file, from_preset)


def test_arrays_of_earlier_configurations():
    encoder = with_arrays()
    saved = keras.saving.serialize_keras_object(ARRAYS)
    config = {**encoder.get_config(), "attention": saved}
    assert "__numpy__" in str(config)
    assert Encoder.from_config(config).get_config() == encoder.get_config()


def test_layers_that_share_have_equal_arrays():
    specs = [{"name": "self", "disabled_heads": np.array([0, 2])} for _ in range(2)]
    encoder = build("bert_base", **TINY, attention=specs, sharing="all")
    assert encoder.blocks[0] is encoder.blocks[1]


def test_tables_of_two_sizes(tmp_path):
    other = {**BIAS, "num_buckets": 6}
    encoder = build(
        "bert_base",
        **TINY | {"num_layers": 5},
        attention=[BIAS, other, BIAS, BIAS, other],
    )
    assert len(tables(encoder)) == 2
    check_loaded(random(encoder), tmp_path, from_file)


@pytest.mark.slow
def test_models_of_the_papers_by_arguments(tmp_path):
    """Sinusoids, XLNet's terms without biases, and permutations of blocks."""
    attention = [
        {"name": "relative", "method": "xlnet", "query_bias": False},
        "self",
        {
            "name": "blockwise",
            "head_blocks": [[1, 2, 0], [0, 2, 1], [2, 1, 0]] + [[0, 1, 2]],
        },
    ]
    encoder = build(
        "huang_absolute_base",
        **TINY | {"num_layers": 3, "num_segments": 1},
        attention=attention,
        position="sinusoid",
    )
    check_loaded(random(encoder), tmp_path, from_file, from_preset, from_weights)


def test_swapped_positions(tmp_path):
    encoder = build("bert_base", **TINY | {"num_layers": 3})
    swapped = swap_positions(encoder, "bias")
    assert len(tables(swapped)) == 1
    check_loaded(random(swapped), tmp_path, from_file)


def test_groups_of_layers(tmp_path):
    encoder = tiny("bert_rab_base", num_layers=6, sharing="all", sharing_group_size=2)
    assert len(tables(encoder)) == 1
    assert len({id(block) for block in encoder.blocks}) == 3
    check_loaded(random(encoder), tmp_path, from_file)


def test_initializers_that_all_layers_have(tmp_path):
    """Keras also marks an object that is in the configuration twice."""
    initializer = keras.initializers.TruncatedNormal(stddev=0.1)
    spec = {**BIAS, "kernel_initializer": initializer}
    encoder = build("bert_base", **TINY | {"num_layers": 3}, attention=[spec] * 3)
    loaded = from_file(encoder, tmp_path)
    assert sharing(loaded) == sharing(encoder)
    batch = batch_of(encoder)
    check_same(outputs_of(loaded, batch), outputs_of(encoder, batch))


def exported(encoder, folder):
    """The outputs of an exported encoder for a batch."""
    encoder.export(folder / "exported", verbose=False)
    endpoint = tf.saved_model.load(folder / "exported").signatures["serving_default"]
    batch = batch_of(encoder)
    return endpoint(**{name: tf.constant(x) for name, x in batch.items()})


def check_export(encoder, folder):
    outputs = exported(encoder, folder)
    expected = encoder(batch_of(encoder))
    states = expected["hidden_states"]
    assert isinstance(states, list)
    names = [f"hidden_states_{index}" for index in range(len(states))]
    assert set(outputs) == {"sequence_output", *names}
    for name, state in zip((*names, "sequence_output"), (*states, states[-1])):
        assert outputs[name].dtype == state.dtype
        assert_close(outputs[name], state, 1e-5, name)


@pytest.mark.slow
def test_exported_encoder(tmp_path):
    check_export(random(tiny("bert_rab_base", num_layers=3)), tmp_path)


def served(model, folder):
    """The embeddings that a served model and its encoder give for the same tokens."""
    tfeff.export.save_for_serving(model, tokenizer(), folder / "served")
    endpoint = tf.saved_model.load(folder / "served").signatures["token_embeddings"]
    tokens = endpoint(text=tf.constant(DOCUMENTS[:3]))
    batch = {
        "token_ids": tokens["token_ids"],
        "segment_ids": tf.zeros_like(tokens["token_ids"]),
        "padding_mask": tokens["mask"],
    }
    visible = tokens["mask"].numpy().astype(bool)
    expected = model.encoder(batch)["sequence_output"]
    return np.asarray(tokens["embeddings"])[visible], np.asarray(expected)[visible]


def dataset_of(encoder):
    batch = batch_of(encoder, lengths=(7, 4))
    positions = np.array([[1, 5], [0, 2]], "int32")
    labels = np.take_along_axis(batch["token_ids"], positions, axis=1)
    return tf.data.Dataset.from_tensors(
        ({**batch, "mask_positions": positions}, labels, np.ones((2, 2), "float32"))
    ).repeat(2)


def check_resumed(encoder, folder):
    """A checkpoint of a training run goes on as the run itself."""
    model = MaskedLM(encoder)
    model.compile(optimizer=tfeff.training.adamw(1e-3, 2, 100), run_eagerly=True)
    model.fit(dataset_of(encoder), shuffle=False, verbose=0)
    save_checkpoint(model, str(folder / "step.keras"))
    loaded = load_checkpoint(str(folder / "step.keras"))
    check_same_encoder(loaded.encoder, encoder)
    check_same_training(loaded, model, dataset_of(encoder))
    return model


@pytest.mark.slow
def test_training_of_a_shared_table_goes_on(tmp_path):
    encoder = tiny("bert_rab_base", num_layers=3, dropout=0.2)
    check_resumed(encoder, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("preset", list(presets()))
def test_every_preset_in_every_way(preset, tmp_path):
    encoder = tiny(preset, num_layers=3, vocabulary_size=60, max_sequence_length=40)
    random(encoder)
    check_loaded(encoder, tmp_path, from_file, from_preset, from_weights)
    check_export(encoder, tmp_path)
    model = check_resumed(encoder, tmp_path)
    assert_close(*served(model, tmp_path), 1e-5, "served")
