"""Quantized encoders and models are loaded as they were, or not saved at all."""

import json
import warnings

import keras
import keras_hub
import numpy as np
import pytest

from tests.checks.encoder import batch_of
from tests.checks.saving import check_same, check_same_weights, outputs_of
from tests.subjects.encoders import TINY, quantize_only
from tests.subjects.sentences import tokenizer
from tests.subjects.versions import needs_quantizers
from tfeff.encoders import Encoder, build
from tfeff.objectives import (
    Distillation,
    MaskedLM,
    ReplacedTokenDetection,
    generator_for,
)
from tfeff.tasks import Classifier, load_pretrained, save_pretrained
from tfeff.training import load_checkpoint, save_checkpoint
from tfeff.training.checkpoints import Checkpoints

SLOW = pytest.mark.slow
BIAS = {"name": "relative", "method": "bias"}


def make_encoder(**changes):
    sizes = TINY | {"num_layers": 3, "hidden_dim": 16, "vocabulary_size": 60}
    return build("bert_base", **sizes | {"attention": BIAS} | changes)


def quantize(model, mode, **kwargs):
    """Of layers that cannot be quantized, Keras warns one by one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.quantize(mode, **kwargs)
    return model


def modes(model):
    return [layer.quantization_mode for layer in model._flatten_layers()]


def check_loaded(loaded, model, inputs):
    assert type(loaded) is type(model)
    assert modes(loaded) == modes(model)
    configs = [json.dumps(one.get_config()) for one in (loaded, model)]
    assert configs[0] == configs[1]
    check_same_weights(loaded, model)
    check_same(outputs_of(loaded, inputs), outputs_of(model, inputs))


@pytest.mark.parametrize(
    ("mode", "num_layers"),
    [("int8", 1)]
    + [pytest.param(m, 3, marks=SLOW) for m in ("int8", "int4", "float8")],
)
def test_quantized_classifier_and_its_encoder(mode, num_layers, tmp_path):
    model = quantize(Classifier(make_encoder(num_layers=num_layers), 2), mode)
    assert modes(model).count(mode) > 6 * num_layers
    batch = batch_of(model.encoder)
    save_checkpoint(model, str(tmp_path / "model.keras"))
    check_loaded(load_checkpoint(str(tmp_path / "model.keras")), model, batch)
    save_pretrained(model.encoder, tokenizer(), tmp_path / "preset")
    check_loaded(load_pretrained(tmp_path / "preset")[0], model.encoder, batch)


@needs_quantizers
def test_with_quantizers_of_ones_own_in_some_layers(tmp_path):
    encoder = make_encoder(dtype="mixed_bfloat16")
    config = keras.quantizers.Int4QuantizationConfig(block_size=8)
    quantize(encoder, None, config=config, filters="query|key")
    assert modes(encoder).count("int4") == 6
    batch = batch_of(encoder)
    encoder.save_weights(tmp_path / "encoder.weights.h5")
    copy = Encoder.from_config(json.loads(json.dumps(encoder.get_config())))
    copy.load_weights(tmp_path / "encoder.weights.h5")
    assert copy.dtype_policy == encoder.dtype_policy
    check_loaded(copy, encoder, batch)


def make_model(kind):
    encoder = make_encoder(embedding_dim=8)
    if kind == "masked_lm":
        return MaskedLM(encoder)
    if kind == "replaced_token":
        return ReplacedTokenDetection(generator_for(encoder, 1 / 2), encoder, seed=3)
    return Distillation(
        Classifier(make_encoder(num_layers=1), 2), Classifier(encoder, 2)
    )


@SLOW
@pytest.mark.parametrize("kind", ["masked_lm", "replaced_token", "distillation"])
def test_quantized_models(kind, tmp_path):
    model = quantize(make_model(kind), "int8")
    batch = batch_of(model.encoder, lengths=(7, 4))
    if kind != "distillation":
        batch["mask_positions"] = np.array([[1, 5], [0, 2]], "int32")
    save_checkpoint(model, str(tmp_path / "model.keras"))
    check_loaded(load_checkpoint(str(tmp_path / "model.keras")), model, batch)


def test_files_with_a_map_of_dtypes_are_still_loaded():
    """As tfeff wrote them before, and as KerasHub does."""
    encoder = quantize(make_encoder(num_layers=1), "int8")
    config = encoder.get_config()
    del config["quantized_layers"]
    config["dtype"] = keras_hub.models.Backbone.get_config(encoder)["dtype"]
    loaded = Encoder.from_config(config)
    assert modes(loaded) == modes(encoder)
    loaded.set_weights(encoder.get_weights())
    again = Encoder.from_config(json.loads(json.dumps(loaded.get_config())))
    again.set_weights(encoder.get_weights())
    batch = batch_of(encoder)
    check_same(outputs_of(again, batch), outputs_of(encoder, batch))


def saved_ways(model, folder):
    """Everything that writes a model's weights."""
    encoder = getattr(model, "encoder", model)
    yield lambda: model.save(folder / "mine.keras")
    yield lambda: model.save_weights(folder / "mine.weights.h5")
    yield lambda: save_checkpoint(model, str(folder / "mine.keras"))
    yield lambda: encoder.save_to_preset(str(folder / "new"))
    yield lambda: save_pretrained(encoder, tokenizer(), folder / "new")


@pytest.mark.parametrize("task", [True, False])
def test_adapters_on_quantized_layers_are_refused(task, tmp_path):
    encoder = make_encoder(num_layers=1)
    model = Classifier(encoder, 2) if task else encoder
    quantize_only(model, "query", "int8")
    encoder.enable_lora(2)
    for name in ("mine.keras", "mine.weights.h5"):
        (tmp_path / name).write_text("mine")
    for save in saved_ways(model, tmp_path):
        with pytest.raises(ValueError, match="adapters on quantized .*attention/query"):
            save()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "mine.keras",
        "mine.weights.h5",
    ]
    for path in tmp_path.iterdir():
        assert path.read_text() == "mine"


def test_modes_that_need_data_are_refused(tmp_path):
    encoder = make_encoder(num_layers=1, attention="self")
    policy = keras.dtype_policies.get("gptq/4/8_from_float32")
    encoder.blocks[0].attention.query_dense._dtype_policy = policy
    for save in (
        lambda: encoder.save(tmp_path / "mine.keras"),
        lambda: encoder.save_to_preset(str(tmp_path / "new")),
        lambda: save_pretrained(encoder, tokenizer(), tmp_path / "new"),
        lambda: save_checkpoint(encoder, str(tmp_path / "mine.keras")),
    ):
        with pytest.raises(ValueError, match="'int8'.*quantization_mode='gptq'"):
            save()
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_adapters_are_merged_but_for_checkpoints(tmp_path):
    """Keras merges them: what computes is saved, what trains is not."""
    model = Classifier(make_encoder(num_layers=1), 2)
    model.encoder.enable_lora(2)
    model.compile(run_eagerly=True)
    batch = batch_of(model.encoder)
    model.fit(batch, np.array([0, 1, 1]), epochs=2, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras", compile=False)
    np.testing.assert_allclose(loaded(batch), model(batch), atol=1e-6)
    model.encoder.save_to_preset(str(tmp_path / "preset"))
    merged = Encoder.from_preset(str(tmp_path / "preset"))
    for one, other in zip(outputs_of(merged, batch), outputs_of(model.encoder, batch)):
        np.testing.assert_allclose(one, other, atol=1e-6)

    (tmp_path / "step.keras").write_text("mine")
    with pytest.raises(ValueError, match="no LoRA adapters for a checkpoint"):
        save_checkpoint(model, str(tmp_path / "step.keras"))
    assert (tmp_path / "step.keras").read_text() == "mine"
    callback = Checkpoints(str(tmp_path / "checkpoints"), steps_per_epoch=1)
    # Before the first step, not after the first epoch.
    with pytest.raises(ValueError, match="no LoRA adapters for a checkpoint"):
        model.fit(batch, np.array([0, 1, 1]), callbacks=[callback], verbose=0)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "float64"])
def test_pretrained_encoders_keep_their_dtype(dtype, tmp_path):
    encoder = make_encoder(dtype=dtype, num_layers=1)
    save_pretrained(encoder, tokenizer(), tmp_path / "preset")
    loaded, _ = load_pretrained(tmp_path / "preset")
    assert loaded.get_config() == encoder.get_config()
    batch = batch_of(encoder)
    check_same(outputs_of(loaded, batch), outputs_of(encoder, batch))
    loaded, _ = load_pretrained(tmp_path / "preset", dtype="float32")
    assert loaded.dtype_policy.name == "float32"
