"""Models of twice the depth: weights, seeds and moments, bit for bit."""

import keras
import numpy as np
import pytest
from keras.optimizers import schedules

import tfeff
from tests.checks import randomize
from tests.checks.encoder import batch_of
from tests.subjects.batches import masked_lm_batches
from tests.subjects.encoders import TINY
from tests.subjects.objectives import make_masked_lm
from tfeff.compat.optimizers import rate_of
from tfeff.encoders import Encoder
from tfeff.training import AdamW, adamw, double_depth, load_checkpoint
from tfeff.training.loss_scale import unscaled

BIAS = {"name": "relative", "method": "bias", "num_buckets": 8}
MIXED = {"name": "mixed", "kernel_size": 3}
CASES = {
    "BERT": {},
    "Shatter": dict(attention="one_head", position="none"),
    "ConvBERT": dict(attention=MIXED, feedforward={"num_groups": 2}, embedding_dim=4),
    "RAB, one table for all": dict(attention=BIAS),
    "a list": dict(attention=(BIAS, "one_head"), dropout=0.1),
    "groups": dict(num_layers=4, sharing="all", sharing_group_size=2),
    "attention shared": dict(sharing="attention"),
}
QUICK = ("ConvBERT", "a list", "groups")


def values(layer):
    """The weights of a layer, seeds left out."""
    return [w.numpy() for w in layer.weights]


def equal(one, two):
    return len(one) == len(two) and all(map(np.array_equal, one, two))


def seeds(layer):
    return [
        tuple(int(x) for x in v.numpy())
        for v in layer.variables
        if v.path.endswith("seed_generator_state")
    ]


@pytest.mark.quick("ConvBERT")
@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
        for name in CASES
    ],
)
def test_layers_are_copied_bit_for_bit(name):
    encoder = Encoder(**TINY | CASES[name])
    randomize({w.path: w for w in encoder.weights})
    before = values(encoder)
    grown = double_depth(encoder)
    assert equal(values(encoder), before)
    depth = encoder.num_layers
    assert grown.num_layers == len(grown.blocks) == 2 * depth
    assert equal(values(grown.embedding), values(encoder.embedding))
    for index, block in enumerate(grown.blocks):
        assert equal(values(block), values(encoder.blocks[index % depth])), index
    again = Encoder.from_config(grown.get_config())
    again.set_weights(grown.get_weights())
    batch = batch_of(encoder)
    outputs = [e(batch)["sequence_output"] for e in (grown, again)]
    np.testing.assert_array_equal(*outputs)
    tables = {id(getattr(b.attention, "relative_embedding", b)) for b in grown.blocks}
    expected = {"RAB, one table for all": 1, "a list": 3, "groups": 4}
    if name in expected:
        assert len(tables) == expected[name]


def test_a_partition_follows_its_new_place():
    """The literal sentence: the grown model is the deep one with copied weights."""
    config = TINY | CASES["Shatter"]
    encoder = Encoder(**config)
    randomize({w.path: w for w in encoder.weights})
    grown = double_depth(encoder)
    deep = Encoder(**config | dict(num_layers=4))
    deep.embedding.set_weights(encoder.embedding.get_weights())
    for index, block in enumerate(deep.blocks):
        block.set_weights(encoder.blocks[index % 2].get_weights())
    batch = batch_of(encoder)
    states = [e(batch)["hidden_states"] for e in (deep, grown, encoder)]
    for one, two in zip(states[0], states[1]):
        np.testing.assert_array_equal(one, two)
    assert np.abs(states[1][1] - states[2][1]).max() > 1e-6


@pytest.mark.slow
def test_moments_go_with_their_layers_and_training_goes_on(tmp_path):
    keras.utils.set_random_seed(0)
    model = make_masked_lm(
        "bert_tiny", dropout=0.2, encoder=dict(num_layers=2, attention=[BIAS, MIXED])
    )
    first, second = masked_lm_batches(batches=3), masked_lm_batches(batches=3, seed=1)
    model.fit(first, shuffle=False, verbose=0)
    grown = double_depth(model)
    assert equal(values(grown.head), values(model.head))
    assert grown.head.token_embedding is grown.encoder.token_embedding

    old, new = model.optimizer, grown.optimizer
    assert int(new.iterations.numpy()) == 3 and new.global_clipnorm == 0.1
    for kind in ("_momentums", "_velocities"):
        of = {
            id(weight): slot.numpy()
            for m, slots in ((model, getattr(old, kind)), (grown, getattr(new, kind)))
            for weight, slot in zip(m.trainable_variables, slots)
        }
        pairs = list(zip(grown.head.trainable_weights, model.head.trainable_weights))
        pairs += zip(
            grown.encoder.embedding.trainable_weights,
            model.encoder.embedding.trainable_weights,
        )
        for index, block in enumerate(grown.encoder.blocks):
            pairs += zip(
                block.trainable_weights,
                model.encoder.blocks[index % 2].trainable_weights,
            )
        assert {id(one) for one, _ in pairs} == set(map(id, grown.trainable_variables))
        for one, two in pairs:
            np.testing.assert_array_equal(of[id(one)], of[id(two)], err_msg=one.path)
        assert all(np.abs(of[id(weight)]).max() > 0 for _, weight in pairs)

    states = [seeds(block) for block in grown.encoder.blocks]
    assert states[:2] == [seeds(block) for block in model.encoder.blocks]
    every = sum(states, [])
    assert len({seed for seed, _ in every}) == len(every) == 12
    assert [n for _, n in states[2]] == [n for _, n in states[0]] and states[2][0][
        1
    ] > 0
    assert [seeds(b) for b in double_depth(model).encoder.blocks] == states

    grown.save(tmp_path / "grown.keras")
    loaded = load_checkpoint(str(tmp_path / "grown.keras"))
    histories = [
        m.fit(second, shuffle=False, verbose=0).history for m in (grown, loaded)
    ]
    assert histories[0] == histories[1]
    assert equal(grown.get_weights(), loaded.get_weights())
    assert not equal(
        values(grown.encoder.blocks[1]), values(grown.encoder.blocks[3])
    ), "Copies must come apart in training."


def test_other_optimizers():
    model = make_masked_lm("shatter_tiny")
    inputs, labels, weights = next(iter(masked_lm_batches()))
    model.optimizer.build(model.trainable_variables)
    model.optimizer.iterations.assign(7)
    model.optimizer._momentums[3].assign(model.optimizer._momentums[3] + 1.0)
    reset = double_depth(model, "reset")
    assert int(reset.optimizer.iterations.numpy()) == 0
    assert not any(np.any(slot.numpy()) for slot in reset.optimizer._momentums)
    configs = [each.optimizer.get_config() for each in (reset, model)]
    rates = [config.pop("learning_rate") for config in configs]
    assert configs[0] == configs[1] and rates[0] != rates[1]
    other = double_depth(model, adamw(0.5, 1, 9, layer_decay=0.5)).optimizer
    assert other._learning_rate.peak_rate == 0.5
    assert min(other._factors.values()) == 0.5**4  # Two layers.
    half = make_masked_lm("bert_tiny", encoder=dict(dtype="mixed_float16"))
    half.optimizer.build(half.trainable_variables)
    weight = half.encoder.blocks[0].attention.query_dense.kernel
    slots = half.optimizer.inner_optimizer._velocities
    index = [id(w) for w in half.trainable_variables].index(id(weight))
    slots[index].assign(np.full(weight.shape, 3.0))
    half.optimizer.inner_optimizer.iterations.assign(5)
    half.optimizer.dynamic_scale.assign(64.0)
    grown = double_depth(half)
    copy = grown.optimizer
    of = dict(zip(map(id, grown.trainable_variables), copy.inner_optimizer._velocities))
    for block in grown.encoder.blocks:
        assert np.all(of[id(block.attention.query_dense.kernel)].numpy() == 3.0)
    assert int(copy.inner_optimizer.iterations.numpy()) == 5
    assert float(copy.dynamic_scale.numpy()) == 64.0
    bare = tfeff.objectives.MaskedLM(model.encoder)
    assert not double_depth(bare).compiled


@pytest.mark.parametrize("optimizer", ["copy", "reset", AdamW(0.2)])
@pytest.mark.parametrize("scales", [False, True])
def test_the_loss_is_scaled_as_before(optimizer, scales):
    half = make_masked_lm("bert_tiny", encoder=dict(dtype="mixed_float16"))
    half.compile(AdamW(0.1), auto_scale_loss=scales)
    found = double_depth(half, optimizer).optimizer
    assert isinstance(found, keras.optimizers.LossScaleOptimizer) == scales


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_new_moments_go_on_at_the_rate_of_the_old_ones(dtype, tmp_path):
    """The first update is that of a new AdamW, with the rate of the eighth step."""
    model = make_masked_lm("bert_tiny", encoder=dict(dtype=dtype))
    schedule = rate_of(unscaled(model.optimizer))
    model.optimizer.build(model.trainable_variables)
    unscaled(model.optimizer).iterations.assign(7)
    grown = double_depth(model, "reset")
    adam = dict(weight_decay=0.01, epsilon=1e-6, global_clipnorm=0.1)
    expected = double_depth(model, AdamW(float(schedule(7)), **adam))
    path = tmp_path / "model.keras"
    tfeff.training.save_checkpoint(grown, path)
    (batch,) = masked_lm_batches(batches=1)
    updated = []
    for each in (grown, expected, tfeff.training.load_checkpoint(path)):
        each.train_on_batch(*batch)
        updated.append(each.get_weights())
    for one, two, three in zip(*updated, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(one, three)
    again = rate_of(unscaled(double_depth(grown, "reset").optimizer))
    assert again.schedule.get_config() == schedule.get_config()
    assert again.first_step == 8


@pytest.mark.parametrize("rate", [0.25, schedules.CosineDecay(0.5, 9)])
def test_rates_of_keras_go_on_behind_new_moments(rate):
    model = make_masked_lm("bert_tiny")
    model.compile(keras.optimizers.Adam(rate))
    model.optimizer.build(model.trainable_variables)
    model.optimizer.iterations.assign(3)
    grown = double_depth(model, "reset")
    assert float(grown.optimizer.learning_rate) == float(model.optimizer.learning_rate)


@pytest.mark.slow
def test_the_schedule_that_goes_on_ends_with_a_warning():
    model = make_masked_lm("bert_tiny")
    model.optimizer.build(model.trainable_variables)
    model.optimizer.iterations.assign(40)
    grown = double_depth(model, "reset")
    with pytest.warns(UserWarning, match="has taken 40 steps"):
        grown.fit(masked_lm_batches(batches=1), verbose=0)


@pytest.mark.slow
def test_replaced_tokens_grow_in_both_networks():
    encoder = Encoder(**TINY | dict(hidden_dim=16))
    generator = tfeff.objectives.generator_for(encoder, 1 / 4)
    model = tfeff.objectives.ReplacedTokenDetection(generator, encoder, seed=1)
    randomize({w.path: w for w in model.trainable_weights})
    grown = double_depth(model)
    assert grown.generator.token_embedding is grown.encoder.token_embedding
    for old, new in (
        (model.encoder, grown.encoder),
        (model.generator, grown.generator),
    ):
        for index, block in enumerate(new.blocks):
            assert equal(values(block), values(old.blocks[index % 2]))
    copied = len(model.encoder.blocks[0].weights) + len(
        model.generator.blocks[0].weights
    )
    assert len(grown.weights) == len(model.weights) + 2 * copied
    outside = ("discriminator", "generator_head", "projection")
    kept = [w.numpy() for w in model.weights if any(x in w.path for x in outside)]
    now = [w.numpy() for w in grown.weights if any(x in w.path for x in outside)]
    assert len(kept) > 6 and equal(kept, now)


def test_a_model_without_an_optimizer_grows_into_one():
    model = make_masked_lm("shatter_tiny")
    model.compile(optimizer=None)
    assert double_depth(model).optimizer is None
    assert double_depth(model, adamw(0.5, 1, 9)).optimizer.built


def test_what_cannot_grow_is_named():
    with pytest.raises(TypeError, match="`model`.*Dense"):
        double_depth(keras.layers.Dense(2))
    x = keras.Input((3,))
    functional = tfeff.training.DistributedModel(x, keras.layers.Dense(2)(x))
    with pytest.raises(TypeError, match="made from its encoder"):
        double_depth(functional)
    with pytest.raises(ValueError, match="nothing to copy.*'all'"):
        double_depth(Encoder(**TINY, sharing="all"))
    encoder = Encoder(**TINY)
    with pytest.raises(ValueError, match="`optimizer`.*'keep'"):
        double_depth(encoder, "keep")
    with pytest.raises(TypeError, match="`optimizer`.*3"):
        double_depth(encoder, 3)
    encoder.enable_lora(2)
    with pytest.raises(ValueError, match="adapters"):
        double_depth(encoder)
    encoder = Encoder(**TINY)
    encoder.trainable = False
    with pytest.raises(ValueError, match="frozen"):
        double_depth(encoder)
