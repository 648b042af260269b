"""Parts of a model that are frozen stay so when it is saved, and training goes on."""

import keras
import numpy as np
import pytest

from tests.subjects.distillation import make_encoder
from tests.subjects.objectives import batches, make_model
from tfeff.encoders import Encoder, disable_heads, extend_length, merge_lora
from tfeff.objectives.token_logits import TableLayer
from tfeff.tasks import Classifier
from tfeff.training import double_depth, load_checkpoint, save_checkpoint

KINDS = ("masked_lm", "replaced_token", "permutation_lm")


def trainable(model):
    return [(w.path, w.trainable) for w in model.weights]


def freeze_parts(encoder):
    encoder.embedding.trainable = False
    encoder.blocks[0].attention.trainable = False


def freeze(encoder):
    encoder.trainable = False


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, freezes", [("masked_lm", freeze), *((kind, freeze_parts) for kind in KINDS)]
)
def test_training_goes_on(kind, freezes, tmp_path):
    model = make_model(kind)
    freezes(model.encoder)
    model.compile()
    data = batches(kind, 2)
    model.fit(data, verbose=0)
    save_checkpoint(model, str(tmp_path / "model.keras"))
    loaded = load_checkpoint(str(tmp_path / "model.keras"))
    assert trainable(loaded) == trainable(model)
    assert len(loaded.trainable_weights) < len(loaded.weights)
    for variable, same in zip(
        model.optimizer.variables, loaded.optimizer.variables, strict=True
    ):
        np.testing.assert_array_equal(variable, same)
    for one in (model, loaded):
        one.fit(data, verbose=0)
    for weight, same in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_allclose(same, weight, rtol=1e-6, atol=1e-7)


def partly_frozen():
    encoder = make_encoder(position="absolute")
    encoder.embedding.token_embedding.trainable = False
    encoder.blocks[1].trainable = False
    return encoder


def frozen():
    encoder = make_encoder(position="absolute")
    encoder.trainable = False
    return encoder


def freed():
    """All is frozen but most of the last block."""
    encoder = frozen()
    encoder.blocks[1].trainable = True
    encoder.blocks[1].attention.trainable = False
    return encoder


@pytest.mark.quick(
    "config-partly_frozen",
    "heads-frozen",
    "length-freed",
    "task-partly_frozen",
    "config of a task-frozen",
)
@pytest.mark.parametrize("make", [partly_frozen, frozen, freed])
@pytest.mark.parametrize(
    "change",
    [
        lambda encoder: Encoder.from_config(encoder.get_config()),
        lambda encoder: disable_heads(encoder, {0: [0]}),
        lambda encoder: extend_length(encoder, 2 * encoder.max_sequence_length),
        lambda encoder: Classifier(encoder, 2).encoder,
        lambda encoder: (
            Classifier.from_config(Classifier(encoder, 2).get_config()).encoder
        ),
    ],
    ids=["config", "heads", "length", "task", "config of a task"],
)
def test_what_is_made_of_it_is_frozen_alike(change, make):
    encoder = make()
    changed = change(encoder)
    assert [w.trainable for w in changed.weights] == [
        w.trainable for w in encoder.weights
    ]


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_whole_model(kind):
    model = make_encoder() if kind is None else make_model(kind)
    config = {**model.get_config(), "trainable": False}
    for one in (type(model).from_config(config), frozen_again(model)):
        assert not any(weight.trainable for weight in one.weights)


def frozen_again(model):
    model.trainable = False
    return type(model).from_config(model.get_config())


def test_a_frozen_encoder_of_another_model(tmp_path):
    encoder = frozen()
    head = keras.layers.Dense(1)
    outputs = head(encoder(encoder.input)["sequence_output"])
    keras.Model(encoder.input, outputs).save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [w.path for w in loaded.trainable_weights] == [w.path for w in head.weights]


def test_a_head_alone(tmp_path):
    model = Classifier(make_encoder(), 2)
    model.layers[-1].trainable = False
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert trainable(loaded) == trainable(model)


def test_a_frozen_head_stays_so_where_adapters_are_merged():
    model = Classifier(make_encoder(), 2)
    model.encoder.enable_lora(2)
    model.get_layer("pooler").trainable = False
    merged = merge_lora(model)
    assert not merged.get_layer("pooler").trainable
    assert all(weight.trainable for weight in merged.encoder.weights)
    assert merged.layers[-1].trainable


def test_a_block_with_a_convolution(tmp_path):
    """Keras gives no path to the convolution, as the attention builds its parts."""
    encoder = make_encoder(attention="mixed")
    encoder.blocks[0].trainable = False
    model = Classifier(encoder, 2)
    save_checkpoint(model, str(tmp_path / "m.keras"))
    loaded = load_checkpoint(str(tmp_path / "m.keras"))
    assert trainable(loaded) == trainable(model)


@pytest.mark.parametrize("value", [False, True])
def test_a_pooling_leaves_the_blocks_of_the_encoder(value, tmp_path):
    encoder = make_encoder()
    encoder.trainable = not value
    model = Classifier(encoder, 2, pooling="layerwise")
    of_encoder = [weight.trainable for weight in encoder.weights]
    model.get_layer("pooler").trainable = value
    assert [weight.trainable for weight in encoder.weights] == of_encoder
    shared = {id(weight) for weight in encoder.weights}
    own = [w for w in model.get_layer("pooler").weights if id(w) not in shared]
    assert own and all(weight.trainable is value for weight in own)
    save_checkpoint(model, str(tmp_path / "m.keras"))
    assert trainable(load_checkpoint(str(tmp_path / "m.keras"))) == trainable(model)


@pytest.mark.quick("masked_lm-False", "permutation_lm-True")
@pytest.mark.parametrize("value", [False, True])
@pytest.mark.parametrize("kind", ["masked_lm", "permutation_lm"])
def test_a_head_leaves_the_table_of_the_encoder(kind, value, tmp_path):
    model = make_model(kind)
    encoder = model.encoder
    encoder.trainable = not value
    of_encoder = [weight.trainable for weight in encoder.weights]
    shared = {id(weight) for weight in encoder.weights}
    heads = [x for x in model._flatten_layers() if isinstance(x, TableLayer)]
    assert heads
    for head in heads:
        head.trainable = value
        own = [weight for weight in head.weights if id(weight) not in shared]
        assert own and all(weight.trainable is value for weight in own)
    assert [weight.trainable for weight in encoder.weights] == of_encoder
    save_checkpoint(model, str(tmp_path / "m.keras"))
    assert trainable(load_checkpoint(str(tmp_path / "m.keras"))) == trainable(model)


def test_streams_freeze_the_blocks_that_they_run():
    model = make_model("permutation_lm")
    for layer in model.layers:  # The encoder is none of them.
        layer.trainable = False
    assert not model.trainable_weights


def test_it_cannot_grow():
    with pytest.raises(ValueError, match="`model` must be trained .* block_1"):
        double_depth(partly_frozen())


def test_the_configuration_names_the_highest_layers():
    encoder = partly_frozen()
    assert encoder.get_config()["frozen_layers"] == [
        "block_1",
        "embedding/token_embedding",
    ]
    encoder.trainable = False
    assert "frozen_layers" not in encoder.get_config()
    encoder.trainable = True
    assert "frozen_layers" not in encoder.get_config()
    config = freed().get_config()
    assert not config["trainable"]
    assert config["frozen_layers"] == ["block_0", "block_1/attention", "embedding"]
