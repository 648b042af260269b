"""LoRA adapters: what trains, what is refused, and merging."""

import keras
import numpy as np
import pytest

from tests.checks import randomize
from tests.checks.encoder import batch_of
from tests.checks.saving import outputs_of
from tests.subjects.encoders import tiny
from tfeff.encoders import Encoder, merge_lora
from tfeff.encoders.adapters import adapted_layers, own_weights
from tfeff.tasks import Classifier

SLOW = pytest.mark.slow


def adapted(preset="bert_base", rank=2, names=None, **changes):
    """An encoder with adapters that are not 0, and its outputs without them."""
    encoder = tiny(preset, **changes)
    randomize({w.path: w for w in encoder.weights}, 1)
    before = outputs_of(encoder, batch_of(encoder))
    encoder.enable_lora(rank, names)
    for one, other in zip(outputs_of(encoder, batch_of(encoder)), before, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)  # B is 0.
    for layer in adapted_layers(encoder):
        layer.lora_kernel_b.assign(keras.random.normal(layer.lora_kernel_b.shape))
    return encoder, before


def check_close(arrays, expected, atol):
    for one, other in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


@pytest.mark.parametrize(
    "preset",
    [
        "bert_base",
        *[
            pytest.param(name, marks=SLOW)
            for name in (
                *("shatter_base", "part_mask_base", "bert_rpe_base", "huang4_base"),
                *("xlnet_base", "blockbert_n2_base", "sparsebert_base"),
                *("convbert_base", "convbert_medium_small", "albert_base"),
            )
        ],
    ],
)
def test_merged_weights_are_the_adapted_model(preset):
    encoder, before = adapted(preset)
    batch = batch_of(encoder)
    outputs = outputs_of(encoder, batch)
    assert not np.allclose(outputs[-1], before[-1], atol=1e-2)
    merged = merge_lora(encoder)
    assert not adapted_layers(merged)
    assert merged.get_config() == encoder.get_config()
    assert [w.path for w in merged.weights] == [w.path for w in own_weights(encoder)]
    check_close(outputs_of(merged, batch), outputs, 2e-5)
    # By the equation, in float64.
    for new, old in zip(
        adapted_weights(merged, encoder), adapted_layers(encoder), strict=True
    ):
        a, b = (np.float64(w) for w in (old.lora_kernel_a, old.lora_kernel_b))
        kernel = np.float64(old.get_weights()[0])
        np.testing.assert_allclose(new, kernel + a @ b, rtol=1e-6, atol=1e-6)
    assert merge_lora(merged) is merged


def adapted_weights(merged, encoder):
    paths = {layer.path for layer in adapted_layers(encoder)}
    layers = {x.path: x for x in merged._flatten_layers() if x.path in paths}
    return [layers[x.path].get_weights()[0] for x in adapted_layers(encoder)]


@pytest.mark.parametrize(
    "names, number",
    [
        (None, 2),
        # The projection after the attention, and that of the feed-forward layer.
        pytest.param(["output", "key"], 3, marks=SLOW),
    ],
)
def test_adapters_and_heads_train_alone(names, number):
    encoder, _ = adapted(names=names, num_layers=1)
    model = Classifier(encoder, 2)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    before = {weight.path: weight.numpy() for weight in model.weights}
    batch = batch_of(encoder)
    model.fit(batch, np.array([0, 1, 1]), verbose=0)
    changed = {w.path for w in model.weights if (w.numpy() != before[w.path]).any()}
    heads = {"pooler/kernel", "pooler/bias", "logits/kernel", "logits/bias"}
    assert {path for path in changed if "lora" not in path} == heads
    assert len(changed - heads) == 2 * number
    assert {layer.name for layer in adapted_layers(model)} == set(
        names or ("query", "value")
    )

    merged = merge_lora(model)
    assert type(merged) is Classifier and merged.compiled
    np.testing.assert_allclose(merged(batch), model(batch), atol=1e-5)
    merged.fit(batch, np.array([0, 1, 1]), verbose=0)
    assert len(merged.trainable_weights) == len(merged.weights)


@pytest.mark.parametrize("save", ["merge", pytest.param("save", marks=SLOW)])
def test_mixed_precision_does_not_round_what_is_saved(save, tmp_path):
    encoder, _ = adapted(dtype="mixed_bfloat16", num_layers=1)
    if save == "merge":
        loaded = merge_lora(encoder)
    else:
        encoder.save(tmp_path / "encoder.keras")
        loaded = keras.models.load_model(tmp_path / "encoder.keras")
    for new, old in zip(
        adapted_weights(loaded, encoder), adapted_layers(encoder), strict=True
    ):
        a, b = old.lora_kernel_a.numpy(), old.lora_kernel_b.numpy()
        np.testing.assert_allclose(new, old.get_weights()[0] + a @ b, atol=1e-6)


def test_what_cannot_have_adapters_is_refused():
    encoder = tiny("bert_base", num_layers=1)
    for rank in (0, encoder.hidden_dim + 1):
        with pytest.raises(ValueError, match=f"`rank` must .*rank={rank}"):
            encoder.enable_lora(rank)
    for names in (["querry"], ["query", "token_embedding"], [], "query"):
        with pytest.raises(ValueError, match="some of .*'query', 'value'"):
            encoder.enable_lora(2, names)
    # Nothing was frozen.
    assert len(encoder.trainable_weights) == len(encoder.weights)
    encoder.enable_lora(2)
    with pytest.raises(ValueError, match="no adapters yet.*merge_lora.*attention"):
        encoder.enable_lora(2)
    config = keras.quantizers.GPTQConfig(["a"], None)
    with pytest.raises(ValueError, match="mode='gptq'"):
        tiny("bert_base", num_layers=1).quantize("gptq", config=config)
    other = Encoder.from_config(encoder.get_config() | {"attention": "dynamic_conv"})
    with pytest.raises(ValueError, match=r"some of \[.*\]. Received: .*None"):
        other.enable_lora(2)
    other.enable_lora(2, ["input"])
