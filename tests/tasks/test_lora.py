"""Adapters alone on disk: for the same frozen weights, and no others."""

import os

import keras
import numpy as np
import pytest
import safetensors.numpy

import tfeff
from tests.checks import randomize
from tests.checks.encoder import batch_of
from tests.subjects.encoders import tiny
from tfeff.compat.layers import sublayers
from tfeff.encoders.adapters import projections
from tfeff.tasks import (
    Classifier,
    Regressor,
    SentenceEmbedding,
    load_lora,
    lora,
    save_lora,
)


def base(seed=1, kind=Classifier, head=None, **changes):
    encoder = tiny("bert_base", **{"num_layers": 1, **changes})
    randomize({w.path: w for w in encoder.weights}, seed)
    head = head or {}
    return kind(encoder, 2, **head) if kind is Classifier else kind(encoder, **head)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model with adapters that has been trained, and its file."""
    model = base()
    model.encoder.enable_lora(3)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    model.fit(batch_of(model.encoder), np.array([0, 1, 1]), epochs=2, verbose=0)
    path = tmp_path_factory.mktemp("lora") / "model.safetensors"
    save_lora(model, path)
    return model, path


def rewritten(path, folder, is_whole=True, arrays=(), **notes):
    """The file with other arrays and notes, None for without, and their digest."""
    with safetensors.safe_open(path, framework="numpy") as file:
        known = file.metadata()
    found = safetensors.numpy.load_file(path)
    found = {n: x for n, x in (found | dict(arrays)).items() if x is not None}
    known = {n: x for n, x in (known | notes).items() if x is not None}
    if is_whole:
        known["sha256"] = lora._whole_digest(found, known)
    safetensors.numpy.save_file(found, folder / "other.safetensors", known)
    return folder / "other.safetensors"


def test_the_file_has_the_mode_of_a_new_one(trained):
    _, path = trained
    (path.parent / "new").touch()
    assert path.stat().st_mode == (path.parent / "new").stat().st_mode


NOTES = [
    *({"rank": x} for x in ("2", "x", "-1", "1000000", None)),
    *({"layers": x} for x in ('["query"]', "[]", '["zzz"]', '{"a":1}', "[1]", "1")),
    *({"layers": None}, {"heads": "["}, {"base_shapes": None}, {"base_shapes": "["}),
    *({"base_shapes": "7"}, {"base_sha256": None}, {"heads": "[" * 9999}),
]


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize("notes", NOTES, ids=lambda x: str(x)[:40])
def test_changed_notes_are_named(notes, is_whole, trained, tmp_path):
    model = base()
    before = [weight.numpy() for weight in model.weights]
    other = rewritten(trained[1], tmp_path, is_whole, **notes)
    message = r"`(path|model)` must .*other\.safetensors"
    with pytest.raises(ValueError, match=message):
        load_lora(model, other)
    for one, weight in zip(before, model.weights, strict=True):
        np.testing.assert_array_equal(one, weight)


@pytest.mark.parametrize("change", ["fewer", "more", "rank", "scalar"])
def test_other_adapters_than_those_named(change, trained, tmp_path):
    arrays = safetensors.numpy.load_file(trained[1])
    name = next(n for n in sorted(arrays) if n.endswith("lora_kernel_a"))
    changed = {
        "fewer": {name: None},
        "more": {f"{name}/x": arrays[name]},
        "rank": {name: arrays[name][..., :2].copy()},
        "scalar": {name: np.array(1, "float32")},
    }
    other = rewritten(trained[1], tmp_path, True, changed[change])
    model = base()
    with pytest.raises(ValueError, match="`path` must have the adapters that it names"):
        load_lora(model, other)
    assert len(model.weights) == len(base().weights)


def test_the_same_model_again(trained):
    model, path = trained
    loaded = base()
    load_lora(loaded, path)
    batch = batch_of(model.encoder)
    for one, other in zip(loaded.weights, model.weights, strict=True):
        assert one.path == other.path
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(loaded(batch), model(batch))
    # Training goes on: nothing but the adapters and the heads, and those move.
    loaded.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    loaded.fit(batch, np.array([0, 1, 1]), verbose=0)
    moved = [
        one.path
        for one, other in zip(loaded.weights, model.weights)
        if (one.numpy() != other.numpy()).any()
    ]
    assert len(moved) == len(model.trainable_weights) == 8
    load_lora(loaded, path)  # Over those that it has.
    np.testing.assert_array_equal(loaded(batch), model(batch))

    encoder = base().encoder
    load_lora(encoder, path)
    outputs = [x(batch)["sequence_output"] for x in (encoder, model.encoder)]
    np.testing.assert_array_equal(*outputs)


def test_adapters_on_some_layers_of_a_name(tmp_path):
    """Keras' own `enable_lora` gives a layer alone what ours gives all of a name."""

    def partly():
        model = base(num_layers=2)
        model.encoder.trainable = False
        layers = projections(model.encoder.blocks[1])
        (query,) = (layer for layer in layers if layer.name == "query")
        query.trainable = True
        query.enable_lora(2)
        return model, query

    (saved, query), (other, same) = partly(), partly()
    query.lora_kernel_b.assign_add(np.ones(query.lora_kernel_b.shape))
    save_lora(saved, tmp_path / "partly.safetensors")
    load_lora(other, tmp_path / "partly.safetensors")
    for factor in ("lora_kernel_a", "lora_kernel_b"):
        np.testing.assert_array_equal(getattr(same, factor), getattr(query, factor))
    with pytest.raises(ValueError, match="`model` must have adapters on the layers"):
        load_lora(base(num_layers=2), tmp_path / "partly.safetensors")


def test_adapters_that_a_file_would_not_keep(trained, tmp_path):
    """Keras' own `enable_lora` takes another `lora_alpha`, ranks and embeddings."""
    path = tmp_path / "lost.safetensors"

    def adapted(name, **arguments):
        model = base()
        model.encoder.trainable = False
        layers = [x for x in sublayers(model.encoder) if x.name == name]
        for rank, layer in enumerate(layers, 2):
            layer.trainable = True
            layer.enable_lora(**{"rank": rank, **arguments})
        return model

    for model, message in (
        (adapted("query", rank=2, lora_alpha=16), r"one rank.*\(2, 16\)"),
        (adapted("token_embedding"), "projections alone.*token_embedding"),
    ):
        with pytest.raises(ValueError, match=message):
            save_lora(model, path)
        with pytest.raises(ValueError, match="`model` must have"):
            load_lora(model, trained[1])
        assert not path.exists()
    two = base(num_layers=2)
    for rank, block in enumerate(two.encoder.blocks, 2):
        query = next(x for x in projections(block) if x.name == "query")
        query.enable_lora(rank)
    with pytest.raises(ValueError, match=r"one rank.*\(2, 2\), \(3, 3\)"):
        save_lora(two, path)
    with pytest.raises(ValueError, match="projections alone"):
        tfeff.encoders.merge_lora(adapted("token_embedding"))


def test_a_distillation_is_none_of_one_encoder(trained, tmp_path):
    path = tmp_path / "lost.safetensors"
    student = base()
    student.encoder.enable_lora(3)
    distillation = tfeff.objectives.Distillation(student, base())
    with pytest.raises(TypeError, match="`model` must .*of a distillation, its `model"):
        save_lora(distillation, path)
    assert not path.exists()
    with pytest.raises(TypeError, match="of a distillation"):
        load_lora(distillation, trained[1])


def test_heads_of_one_path_are_kept_apart(tmp_path):
    """Those of two models within."""
    path = tmp_path / "two.safetensors"

    def two_heads():
        keras.utils.set_random_seed(0)
        encoder = tiny("bert_base", num_layers=1)
        hidden = encoder(encoder.input)["sequence_output"]
        outputs = []
        for name in ("one", "other"):
            inputs = keras.Input(hidden.shape[1:])
            head = keras.layers.Dense(2, name="logits")
            outputs.append(keras.Model(inputs, head(inputs), name=name)(hidden))
        model = tfeff.training.DistributedModel(encoder.input, outputs)
        model.encoder = encoder
        return model

    saved, loaded = two_heads(), two_heads()
    saved.encoder.enable_lora(3)
    heads = [saved.get_layer(name).weights[0] for name in ("one", "other")]
    for value, weight in enumerate(heads):
        weight.assign(0 * weight + value)
    save_lora(saved, path)
    load_lora(loaded, path)
    for one, other in zip(saved.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_file_is_small(trained):
    _, path = trained
    arrays = safetensors.numpy.load_file(path)
    assert sorted(name.rsplit("/", 1)[1] for name in arrays) == [
        *("bias", "bias", "kernel", "kernel"),
        *("lora_kernel_a", "lora_kernel_a", "lora_kernel_b", "lora_kernel_b"),
    ]


def test_other_frozen_weights_are_refused(trained):
    _, path = trained
    for other, message in [
        (base(seed=2), "like that of .*, with other weights"),
        (base(hidden_dim=16), "21 weights of other shapes than the 21"),
        (base(num_layers=2), "37 weights of other shapes than the 21"),
    ]:
        before = [weight.numpy() for weight in other.weights]
        with pytest.raises(ValueError, match=message):
            load_lora(other, path)
        for one, weight in zip(before, other.weights, strict=True):
            np.testing.assert_array_equal(one, weight)


def test_other_heads_and_adapters_are_refused(trained):
    _, path = trained
    with pytest.raises(ValueError, match=r"heads .*'head/logits/kernel': \(8, 1\)"):
        load_lora(base(kind=Regressor), path)
    headless = base(kind=lambda encoder: SentenceEmbedding(encoder, "mean"))
    with pytest.raises(ValueError, match=r"heads with \{\}; .*'head/logits/kernel'"):
        load_lora(headless, path)
    load_lora(base().encoder, path)  # An encoder alone leaves the heads out.
    other = base()
    other.encoder.enable_lora(2)
    with pytest.raises(ValueError, match=r"rank \[2\] on .*has rank 3"):
        load_lora(other, path)
    with pytest.raises(ValueError, match="must have adapters"):
        save_lora(base(), path)
    with pytest.raises(ValueError, match="end in .safetensors"):
        save_lora(other, "lora.h5")
    with pytest.raises(TypeError, match="`model` must be"):
        save_lora(keras.Sequential(), path)


@pytest.mark.parametrize(
    "head", [{"pooling": "mean"}, {"pooler_activation": "relu"}], ids=str
)
def test_heads_of_other_settings_are_refused(head, trained, tmp_path):
    model, path = trained
    other = base(head=head)
    before = [weight.numpy() for weight in other.weights]
    message = f"heads with the settings .*{next(iter(head.values()))}.*; .* has .*tanh"
    with pytest.raises(ValueError, match=message):
        load_lora(other, path)
    for one, weight in zip(before, other.weights, strict=True):
        np.testing.assert_array_equal(one, weight)


def test_damage_is_named(trained, tmp_path):
    _, path = trained
    whole = path.read_bytes()
    damaged = tmp_path / "damaged.safetensors"
    with pytest.raises(ValueError, match="missing or damaged"):
        load_lora(base(), damaged)
    damaged.write_bytes(whole[:-9])
    with pytest.raises(ValueError, match="missing or damaged"):
        load_lora(base(), damaged)
    damaged.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    with pytest.raises(ValueError, match="differ from its digest"):
        load_lora(base(), damaged)
    safetensors.numpy.save_file({"x": np.zeros(3)}, damaged)
    with pytest.raises(ValueError, match="of format None"):
        load_lora(base(), damaged)


class SavesAdapters(keras.callbacks.ModelCheckpoint):
    """As users write it: what it saves can be loaded."""

    def on_epoch_end(self, epoch, logs=None):
        folder = os.path.dirname(self.filepath)
        save_lora(self.model, os.path.join(folder, "adapters.safetensors"))


def test_callbacks_that_would_save_what_is_not_loaded_are_refused_before(tmp_path):
    kinds = keras.callbacks
    begun = kinds.LambdaCallback(on_train_begin=lambda logs: pytest.fail("It trains."))
    backup = kinds.BackupAndRestore(str(tmp_path / "backup"))
    saves = [
        kinds.ModelCheckpoint(str(tmp_path / "model.keras")),
        kinds.ModelCheckpoint(
            str(tmp_path / "model.weights.h5"), save_weights_only=True
        ),
    ]
    for quantized, wrong in ((False, [backup]), (True, [backup, *saves])):
        model = base()
        if quantized:
            model.encoder.quantize("int8")
        model.encoder.enable_lora(2)
        model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
        data = batch_of(model.encoder), np.array([0, 1, 1])
        for callback in wrong:
            with pytest.raises(ValueError, match="The model must .*save_lora"):
                model.fit(*data, callbacks=[begun, callback], verbose=0)
    assert not list(tmp_path.iterdir())
    model.fit(
        *data, callbacks=[SavesAdapters(str(tmp_path / "model.keras"))], verbose=0
    )
    assert [path.name for path in tmp_path.iterdir()] == ["adapters.safetensors"]
    # Without quantization a saved model is the same when loaded.
    model = base()
    model.encoder.enable_lora(2)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    model.fit(*data, callbacks=saves, verbose=0)
