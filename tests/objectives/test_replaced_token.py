"""Replaced-token detection: draws, both networks, shared tables, metrics."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import arrays_of, assert_close, randomize, variables_of
from tests.reference import embedding
from tests.reference.objectives import (
    binary_cross_entropies,
    cross_entropies,
    detection,
    discriminator_logits,
    gumbel_draws,
    masked_lm_logits,
    replaced_text,
)
from tests.subjects.objectives import (
    arrays,
    batches,
    head_weights,
    make_encoder,
    make_model,
)
from tfeff.objectives import ReplacedTokenDetection, generator_for
from tfeff.objectives.token_replacement import TokenReplacement


def below(model, prefix):
    """Weights of the layers `prefix...`, by what follows the prefix."""
    named = {}
    for w in model.weights:
        *_, layer, name = w.path.split("/")
        if layer.startswith(prefix):
            named[f"{layer.removeprefix(prefix)}/{name}"] = w.numpy().astype("float64")
    return named


def test_losses_and_metrics_equal_the_literal_ones():
    model = make_model("replaced_token", 0.7, compiled={"run_eagerly": True})
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.4)
    dataset = batches("replaced_token", 3)
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    assert logs == model.evaluate(dataset, verbose=0, return_dict=True)

    generator, encoder = model.generator, model.encoder
    table = encoder.token_embedding.embeddings.numpy()
    sums = np.zeros(5)
    found = [[], [], []]
    for batch in dataset:
        inputs, labels, weights = arrays(batch)
        outputs = {k: np.asarray(v) for k, v in model(batch[0]).items()}
        positions = inputs["mask_positions"]

        hidden = np.asarray(generator(inputs)["sequence_output"], "float64")
        head = next(x for x in model.layers if x.name == "generator_head")
        logits = masked_lm_logits(hidden, positions, head_weights(head), table)
        assert_close(outputs["masked_lm"], logits, 1e-5)
        uniform = np.asarray(keras.random.uniform(logits.shape, seed=0))
        draws = gumbel_draws(outputs["masked_lm"], uniform, 0.7)
        np.testing.assert_array_equal(outputs["samples"], draws)

        text = replaced_text(inputs["token_ids"], positions, draws)
        original = replaced_text(inputs["token_ids"], positions, labels)
        hidden = encoder(inputs | {"token_ids": text})["sequence_output"]
        detected = discriminator_logits(
            np.asarray(hidden, "float64"), below(model, "discriminator_")
        )
        assert_close(outputs["replaced"], detected, 1e-5)
        truth = text != original
        real = inputs["padding_mask"]
        right = (logits.argmax(-1) == labels) * weights
        sums += (
            *cross_entropies(logits, labels, weights),
            *binary_cross_entropies(detected, truth, real),
            right.sum(),
        )
        for values, array in zip(found, (detected, truth, real)):
            values.append(array.ravel())
    masked, replaced = sums[0] / sums[1], sums[2] / sums[3]
    expected = {
        "loss": masked + 50.0 * replaced,
        "masked_lm_loss": masked,
        "masked_lm_accuracy": sums[4] / sums[1],
        "replaced_loss": replaced,
    }
    counted = detection(*(np.concatenate(values) for values in found))
    expected |= {f"replaced_{name}": value for name, value in counted.items()}
    assert set(logs) == set(expected)
    for name, value in expected.items():
        # Keras finds the area by 200 thresholds.
        tolerance = 0.02 if name.endswith("auc") else 1e-5
        assert logs[name] == pytest.approx(value, rel=tolerance), name


def test_logits_are_not_rounded_before_the_draw():
    """In bfloat16 both are 12: each would be drawn half of the time."""
    logits = np.zeros((1, 60, 4), "float32")
    logits[..., :2] = 12.0, 12.03
    layer = TokenReplacement(1e-4, seed=1, dtype="mixed_bfloat16")
    ids = np.full((1, 60), 9, "int32")
    _, samples = layer(ids, np.arange(60)[None], logits, training=True)
    assert (np.asarray(samples) == 1).all()


def test_draws_follow_the_softmax_at_the_temperature():
    logits = np.log([0.5, 0.3, 0.15, 0.05]).astype("float32")
    count = 20_000
    ids = np.zeros((100, 201), "int32")
    positions = np.tile(np.arange(1, 201, dtype="int32"), (100, 1))
    every = np.tile(logits, (100, 200, 1))
    for temperature in (1.0, 0.5):
        replace = TokenReplacement(temperature, seed=1)
        text, samples = (
            np.asarray(x) for x in replace(ids, positions, every, training=True)
        )
        p = np.exp(logits / temperature) / np.exp(logits / temperature).sum()
        share = np.bincount(samples.ravel(), minlength=4) / count
        assert (np.abs(share - p) < 4.5 * np.sqrt(p * (1 - p) / count)).all()
        np.testing.assert_array_equal(text[:, 1:], samples)
        again = np.asarray(replace(ids, positions, every, training=True)[1])
        assert 0.2 < np.mean(again != samples) < 0.8
        # Outside of training, the draws are the same each time.
        fixed = [np.asarray(replace(ids, positions, every)[1]) for _ in range(2)]
        np.testing.assert_array_equal(*fixed)


def test_unused_slots_replace_nothing():
    ids = np.array([[2, 5, 6, 3], [2, 7, 3, 0]], "int32")
    positions = np.array([[2, 0, 0], [0, 0, 0]], "int32")
    text, samples = TokenReplacement(1e-3)(
        ids, positions, 9 * keras.ops.one_hot([[8, 9, 8], [9, 9, 9]], 10)
    )
    assert np.asarray(text).tolist() == [[2, 5, 8, 3], [2, 7, 3, 0]]
    assert np.asarray(samples).tolist() == [[8, 9, 8], [9, 9, 9]]


def test_a_repeated_position_has_its_first_token():
    ids = np.array([[2, 5, 6, 3]], "int32")
    positions = np.array([[2, 1, 2]], "int32")
    text, samples = TokenReplacement(1e-3)(
        ids, positions, 9 * keras.ops.one_hot([[7, 4, 8]], 10)
    )
    assert np.asarray(text).tolist() == [[2, 4, 7, 3]]
    none = np.zeros((1, 0), "int32")
    text, _ = TokenReplacement()(ids, none, np.zeros((1, 0, 10), "float32"))
    np.testing.assert_array_equal(text, ids)


def test_weights_alone_tell_which_slots_count():
    """Also at position 0; without weights, all slots count."""
    model = make_model("replaced_token", compiled={"run_eagerly": True})
    inputs, labels, weights = next(iter(batches("replaced_token", 1)))
    assert (inputs["mask_positions"].numpy()[weights == 0] == 0).all()
    assert 0 < weights.numpy().sum() < weights.numpy().size
    logits = np.asarray(model(inputs)["masked_lm"])
    for given in (weights.numpy(), 1 - weights.numpy(), None):
        batch = (inputs, labels) if given is None else (inputs, labels, given)
        found = model.evaluate(
            tf.data.Dataset.from_tensors(batch), verbose=0, return_dict=True
        )
        counts = np.ones(labels.shape) if given is None else given
        total, count = cross_entropies(logits, labels.numpy(), counts)
        assert found["masked_lm_loss"] == pytest.approx(total / count, rel=1e-5)


@pytest.mark.slow
def test_slots_of_weight_0_replace_nothing_wherever_they_point():
    model = make_model("replaced_token")
    inputs, labels, weights = next(iter(batches("replaced_token", 1)))
    lengths = inputs["padding_mask"].numpy().sum(axis=1, keepdims=True)
    positions = inputs["mask_positions"].numpy()
    elsewhere = np.where(weights == 0, lengths - 1, positions)
    assert (elsewhere != positions).any()
    expected, found = (
        model.evaluate(
            tf.data.Dataset.from_tensors(
                (inputs | {"mask_positions": tf.constant(x)}, labels, weights)
            ),
            verbose=0,
            return_dict=True,
        )
        for x in (positions, elsewhere)
    )
    assert found == expected
    trained = []
    for x in (positions, elsewhere):
        random.seed(0)  # Keras draws the seeds of layers from it.
        model = make_model("replaced_token")
        randomize({w.path: w for w in model.weights if "seed" not in w.path})
        model.train_on_batch(inputs | {"mask_positions": x}, labels, weights)
        trained.append(model.get_weights())
    for one, other in zip(*trained, strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_generator_learns_nothing_from_the_discriminator():
    """But for the tables that both have, which get both gradients."""
    model = make_model("replaced_token")
    inputs, labels, weights = next(iter(batches("replaced_token", 1)))
    with tf.GradientTape(persistent=True) as tape:
        outputs = model(inputs)
        detected = tf.reduce_sum(outputs["replaced"] ** 2)
        guessed = tf.reduce_sum(outputs["masked_lm"] ** 2)
    shared = {id(w) for w in model.encoder.embedding.token_embedding.weights}
    own = [v for v in model.generator.blocks[0].trainable_variables]
    assert all(g is None for g in tape.gradient(detected, own))
    blocks = model.encoder.blocks[0].trainable_variables
    assert all(g is None for g in tape.gradient(guessed, blocks))
    (table,) = (w for w in model.trainable_variables if id(w) in shared)
    assert all(tape.gradient(loss, table) is not None for loss in (detected, guessed))


def test_a_generator_has_all_its_heads():
    """Those of its encoder may be off: they are others, and more."""
    encoder = tfeff.encoders.disable_heads(
        tfeff.encoders.build(
            "bert_tiny", vocabulary_size=50, num_heads=4, hidden_dim=16
        ),
        {0: [1, 3]},
    )
    generator = generator_for(encoder, 1 / 2)
    assert generator.num_heads == 2
    assert not any(block.attention.disabled_heads for block in generator.blocks)
    assert encoder.blocks[0].attention.disabled_heads


def test_a_generator_is_new_where_its_encoder_is_frozen():
    encoder = make_encoder(embedding_dim=8)
    encoder.blocks[0].trainable = False
    encoder.embedding.token_embedding.trainable = False
    generator = generator_for(encoder, 1 / 2)
    tables = [*encoder.embedding.token_embedding.weights]
    assert [id(w) for w in generator.non_trainable_weights if w.shape == (50, 8)] == [
        id(w) for w in tables
    ]
    assert all(w.trainable for w in generator.blocks[0].weights if w.dtype != "uint32")
    model = ReplacedTokenDetection(generator, encoder)
    copy = ReplacedTokenDetection.from_config(model.get_config())
    assert len(copy.trainable_weights) == len(model.trainable_weights)

    encoder = make_encoder(embedding_dim=8)
    encoder.trainable = False
    generator = generator_for(encoder, 1 / 2)
    assert not encoder.trainable_weights
    shared = {id(w) for w in encoder.weights}
    own = [w for w in generator.weights if id(w) not in shared and w.dtype != "uint32"]
    assert len(own) > 10 and all(w.trainable for w in own)


@pytest.mark.filterwarnings("ignore:.*quantize")
def test_a_generator_is_not_quantized_with_its_encoder():
    encoder = make_encoder()
    encoder.quantize("int8")
    generator = generator_for(encoder, 1 / 2)
    kernel = generator.blocks[0].attention.query_dense.kernel
    assert kernel.dtype == "float32" and kernel.trainable
    assert generator.token_embedding is encoder.token_embedding
    assert generator.token_embedding.quantization_mode == "int8"


@pytest.mark.slow
def test_tables_are_shared_and_kept_once(tmp_path):
    encoder = make_encoder("convbert_small", num_heads=4, embedding_dim=6)
    generator = generator_for(encoder, 1 / 4)
    assert (generator.hidden_dim, generator.intermediate_dim) == (4, 8)
    assert (generator.num_heads, generator.num_layers) == (1, 1)
    one, two = generator.embedding, encoder.embedding
    for name in ("token_embedding", "segment_embedding", "position_embedding", "norm"):
        assert getattr(one, name) is getattr(two, name)
    assert one.projection is not two.projection
    model = ReplacedTokenDetection(generator, encoder, 20.0, 0.5)
    ids = [id(w) for w in model.weights]
    assert len(ids) == len(set(ids))
    assert len(generator.weights) + len(encoder.weights) - 5 + 5 + 4 == len(ids)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.share_embeddings
    assert loaded.get_config() == model.get_config()
    inputs = next(iter(batches("replaced_token", 1)))[0]
    for name in ("masked_lm", "replaced"):
        # Both draw the same: the state of the draws is saved too.
        np.testing.assert_array_equal(loaded(inputs)[name], model(inputs)[name])

    apart = ReplacedTokenDetection(make_encoder(name="generator"), make_encoder())
    assert not apart.share_embeddings
    copy = ReplacedTokenDetection.from_config(apart.get_config())
    assert not copy.share_embeddings and len(copy.weights) == len(apart.weights)


def test_a_generator_has_the_sinusoids_of_its_encoder():
    encoder = make_encoder("convbert_small", num_heads=4, position="sinusoid")
    generator = generator_for(encoder, 1 / 4)
    randomize({w.path: w for w in generator.weights})
    layer = generator.embedding
    ids = np.arange(40)[None] % 7  # Longer than the encoder's table would be.
    for name in ("token_embedding", "segment_embedding", "norm"):
        assert getattr(layer, name) is getattr(encoder.embedding, name)
    weights = arrays_of(variables_of(layer))
    expected = embedding(ids[0], 0 * ids[0], weights, "sinusoid")
    assert_close(layer(ids)[0], expected, 1e-5)
    model = ReplacedTokenDetection(generator, encoder)
    outputs = model(next(iter(batches("replaced_token", 1)))[0])
    assert np.isfinite(outputs["replaced"]).all()


@pytest.mark.quick("8-0.75-6")
@pytest.mark.parametrize(
    ("heads", "ratio", "parts"), [(4, 1 / 4, 2), (12, 1 / 4, 2), (8, 3 / 4, 6)]
)
def test_parts_of_positions_are_an_even_number(heads, ratio, parts):
    def make(**changes):
        sizes = {"vocabulary_size": 9, "hidden_dim": 96}
        return tfeff.encoders.build("shatter_tiny", **sizes, **changes)

    generator = generator_for(make(num_heads=heads), ratio)
    assert generator.num_heads == parts
    # Steps may be any number.
    steps = {"name": "one_head", "boundaries": [-1.0, 1.0]}
    assert generator_for(make(num_heads=3, attention=steps), 1).num_heads == 3


@pytest.mark.parametrize(
    ("preset", "heads", "shifts"),
    [
        ("convbert_base", 2, None),
        ("blockbert_n2_base", 3, [2, 1]),
        ("blockbert_n3_base", 3, [1, 1, 1]),
    ],
)
def test_a_generator_has_heads_that_its_attention_can_have(preset, heads, shifts):
    encoder = make_encoder(preset, hidden_dim=48, num_heads=12)
    generator = generator_for(encoder)
    assert generator.num_heads == heads
    if shifts:
        assert generator.blocks[0].attention.head_blocks == shifts
        assert generator_for(encoder, 1).blocks[0].attention.head_blocks == (
            encoder.blocks[0].attention.head_blocks
        )
    model = ReplacedTokenDetection(generator, encoder)
    outputs = model(next(iter(batches("replaced_token", 1)))[0])
    assert np.isfinite(outputs["replaced"]).all()


@pytest.mark.parametrize(
    ("attentions", "num_heads", "heads"),
    [
        (["self", {"name": "one_head"}], 4, 2),
        (["mixed", {"name": "one_head"}], 4, 2),
        ([{"name": "mixed", "head_ratio": 3}, {"name": "one_head"}], 36, 6),
    ],
)
def test_a_generator_has_heads_that_all_its_attentions_can_have(
    attentions, num_heads, heads
):
    sizes = {"hidden_dim": 4 * num_heads, "num_heads": num_heads, "num_layers": 2}
    encoder = make_encoder(attention=attentions, **sizes)
    assert generator_for(encoder).num_heads == heads


def test_attentions_that_were_given_their_parts_keep_them():
    attention = {"name": "one_head", "num_parts": 4}
    encoder = make_encoder(num_heads=1, attention=attention)
    assert generator_for(encoder).blocks[0].attention.num_parts == 4


def test_another_attention_does_not_have_the_encoder_s_heads():
    encoder = make_encoder("convbert_base", hidden_dim=48, num_heads=12)
    assert generator_for(encoder, attention="self").num_heads == 3


def test_heads_that_are_fewer_than_shifts_are_named():
    sizes = {"hidden_dim": 48, "intermediate_dim": 48, "num_heads": 12}
    encoder = make_encoder("blockbert_n3_base", **sizes)
    with pytest.raises(
        ValueError, match=r"`ratio` .*ratio=0\.0833.*generator: `head_b"
    ):
        generator_for(encoder, 1 / 12)
    swapped = {"name": "blockwise", "head_blocks": [(1, 0), (0, 1)]}
    encoder = make_encoder(num_heads=2, attention=swapped)
    with pytest.raises(ValueError, match="generator: `head_blocks` must have one"):
        generator_for(encoder, 1 / 2)


def test_names_bad_arguments():
    encoder = make_encoder()
    for ratio in (0, 1.5):
        with pytest.raises(ValueError, match="`ratio`.*Received"):
            generator_for(encoder, ratio)
    with pytest.raises(TypeError, match="`ratio`.*Received"):
        generator_for(encoder, "1/4")
    for ratio in (0.3, 0.001):
        with pytest.raises(ValueError, match="whole `hidden_dim`.*Received"):
            generator_for(encoder, ratio)
    blocks = make_encoder("blockbert_n2_base", hidden_dim=48, num_heads=12)
    for wrong in ("2", 2.5, None):
        with pytest.raises(TypeError, match="`num_heads` must be an integer"):
            generator_for(blocks, num_heads=wrong)
    with pytest.raises(ValueError, match="num_hedas=2. Did you mean 'num_heads'"):
        generator_for(encoder, 0.5, num_hedas=2)
    with pytest.raises(ValueError, match="`embedding_dim` must.*Received"):
        generator_for(encoder, 0.5, embedding_dim=4)
    with pytest.raises(TypeError, match="`tables_of` must.*Received"):
        make_encoder(tables_of="encoder")
    other = make_encoder(vocabulary_size=9, name="other")
    for arguments, name in (
        ((encoder, encoder), "generator"),
        ((other, encoder), "vocabulary"),
        ((generator_for(encoder, 0.5), encoder, 0.0), "discriminator_weight"),
        ((generator_for(encoder, 0.5), encoder, 1.0, -1), "temperature"),
    ):
        with pytest.raises(ValueError, match=f"{name}.*Received"):
            ReplacedTokenDetection(*arguments)
    for kind, settings in (
        (TypeError, dict(activation=None)),
        (ValueError, dict(activation="gelo")),
        (TypeError, dict(generator_head="gelu")),
        (ValueError, dict(generator_head={"rate": 0.1})),
    ):
        (name,) = settings
        with pytest.raises(kind, match=f"`{name}`.*Received"):
            ReplacedTokenDetection(generator_for(encoder, 0.5), encoder, **settings)


def test_heads_have_the_settings_of_their_networks():
    encoder = make_encoder()
    settings = {"activation": "gelu_tanh", "layer_norm_epsilon": 1e-3}
    model = ReplacedTokenDetection(
        generator_for(encoder, 0.5), encoder, activation="relu", generator_head=settings
    )
    randomize({weight.path: weight for weight in model.weights}, scale=0.4)
    config = model.get_config()
    copy = ReplacedTokenDetection.from_config(config)
    assert copy.activation == "relu" and copy.generator_head == settings
    for name, head in model.heads().items():
        copy.heads()[name].assign(head.arrays())
    copy.encoder.set_weights(model.encoder.get_weights())
    inputs = next(iter(batches("replaced_token", 1)))[0]
    inputs["mask_positions"] = inputs["mask_positions"] * 0  # Which replaces nothing.
    outputs = model(inputs)
    for name in ("masked_lm", "replaced"):
        np.testing.assert_array_equal(copy(inputs)[name], outputs[name])
    hidden = np.asarray(encoder(inputs)["sequence_output"], "float64")
    weights = below(model, "discriminator_")
    kernel, bias = weights["hidden/kernel"], weights["hidden/bias"]
    inner = np.maximum(hidden @ kernel + bias, 0)
    expected = inner @ weights["output/kernel"][:, 0] + weights["output/bias"]
    assert_close(outputs["replaced"], expected, 1e-5)
    for name in ("activation", "generator_head"):  # As models of before had none.
        config.pop(name)
    old = ReplacedTokenDetection.from_config(config)
    assert old.activation == "gelu" and old.generator_head["activation"] == "gelu"


@pytest.mark.slow
@pytest.mark.parametrize("masks", [3, 4])  # As many as rows, too.
def test_weights_of_examples_are_of_all_their_targets(masks):
    start = make_model("replaced_token")
    randomize({w.path: w for w in start.weights if "seed" not in w.path})

    def evaluated(*batch):
        model = make_model("replaced_token", temperature=1e-6)  # The likeliest tokens.
        model.set_weights(start.get_weights())
        return model.test_on_batch(*batch, return_dict=True)

    x, y, _ = arrays(next(iter(batches("replaced_token", 1, masks=masks))))
    half = np.array([0, 1, 1, 0], "float32")
    alone = {name: value[half > 0] for name, value in x.items()}, y[half > 0]
    expected = evaluated(*alone)
    for weights in (half, half[:, None]):
        assert evaluated(x, y, weights) == pytest.approx(expected, rel=1e-5)
    # Weights of tokens are the generator's alone.
    of_tokens = np.repeat(half[:, None], masks, axis=1)
    found = evaluated(x, y, of_tokens)
    assert found["masked_lm_loss"] == pytest.approx(expected["masked_lm_loss"])
    assert found["replaced_loss"] != pytest.approx(expected["replaced_loss"])
