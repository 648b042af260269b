"""Sentence embeddings: contrast within a batch, data, replicas, saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close, check_two_replicas, randomize
from tests.reference import mean_pooling
from tests.reference.contrast import cosine, in_batch_contrast
from tests.reference.gradients import finite_differences
from tfeff.tasks import InBatchContrast, SentenceEmbedding
from tfeff.tasks.task import TEXT_POOLINGS

TEXTS = [
    *("a cat sat on a mat", "the cat is on the mat", "a dog ran", "dogs were running"),
    *("it rains", "the rain falls and falls", "no sun", "the day is dark", "a cat"),
]
PAIRS = [tuple(TEXTS[i : i + 2]) for i in range(0, 8, 2)]
TRIPLETS = [(*pair, TEXTS[-1 - i]) for i, pair in enumerate(PAIRS[:2])]


@pytest.fixture(scope="module")
def tokenizer():
    return tfeff.data.train_tokenizer(TEXTS, vocabulary_size=34)


def make_encoder(**kwargs):
    arguments = dict(
        vocabulary_size=40,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=16,
        attention="one_head",
        position="none",
        dropout=0.0,
    )
    return tfeff.encoders.Encoder(**(arguments | kwargs))


def make_model(pooling="mean", optimizer="sgd", **kwargs):
    model = SentenceEmbedding(make_encoder(**kwargs), pooling)
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.3)
    model.compile(optimizer=optimizer)
    return model


def features(tokenizer, rows, length=12):
    examples = tfeff.data.SentenceExamples(rows=rows)
    return tfeff.data.sentence_features(examples, tokenizer, length)


def contrasted(batch=5, texts=3, dim=6, seed=0):
    """Embeddings, one of them zero; a text twice, one of padding, and weights."""
    rng = np.random.default_rng(seed)
    embeddings = rng.normal(size=(batch, texts, dim))
    embeddings[1, 0] = 0.0
    ids = np.arange(batch * texts).reshape(batch, texts)
    ids[2, 1] = ids[0, 1]  # Two texts with one partner,
    ids[3, 1] = ids[4, 0]  # a partner that another row asks for,
    ids[-1, 2:] = -1  # and padding.
    weights = rng.random(batch)
    weights[2] = 0.0
    return embeddings, ids.astype("int32"), weights


@pytest.mark.quick("0.05-3")
@pytest.mark.parametrize("texts", [2, 3, 4])
@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_loss_and_its_gradient_are_literal(texts, temperature):
    embeddings, ids, weights = contrasted(texts=texts)
    loss = InBatchContrast(temperature, dtype="float64")

    def differentiated(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(ids, x, weights)
        return value, tape.gradient(value, x)

    expected, _ = in_batch_contrast(embeddings, ids, weights, temperature)
    others = [0, 2, 3, 4]  # Of a zero the cosine has no derivative,
    numeric = finite_differences(
        lambda arrays: in_batch_contrast(arrays["x"], ids, weights, temperature)[0],
        {"x": embeddings},
    )["x"]
    for run in (differentiated, tf.function(differentiated, jit_compile=True)):
        value, gradient = run(tf.constant(embeddings))
        assert float(value) == pytest.approx(expected, rel=1e-10)
        assert_close(gradient.numpy()[others], numeric[others], 1e-5)
        assert np.isfinite(gradient).all()  # nor has it NaN here.


def test_half_precision_is_computed_in_float32():
    embeddings, ids, weights = contrasted(dim=64)
    expected, _ = in_batch_contrast(embeddings, ids, weights, 0.05)
    for dtype, tolerance in (("float16", 0.01), ("bfloat16", 0.06)):
        value = InBatchContrast()(ids, tf.cast(300 * embeddings, dtype), weights)
        assert value.dtype == tf.float32
        assert float(value) == pytest.approx(expected, rel=tolerance)


def test_is_the_loss_of_sentence_transformers():
    """Different texts: cross-entropy over the similarities to all second texts."""
    embeddings, _, _ = contrasted()
    ids = np.arange(15).reshape(5, 3)
    flat = embeddings[:, 1:].transpose(1, 0, 2).reshape(-1, 6)  # Partners first.
    scores = 20 * np.array([[cosine(a, b) for b in flat] for a in embeddings[:, 0]])
    log_sums = np.log(np.exp(scores).sum(axis=1))
    expected = np.mean(log_sums - scores[np.arange(5), np.arange(5)])
    value = InBatchContrast(dtype="float64")(ids, embeddings)
    assert float(value) == pytest.approx(expected, rel=1e-10)


@pytest.mark.quick("mean")
@pytest.mark.parametrize("pooling", TEXT_POOLINGS)
def test_embeddings_and_logs_are_literal(tokenizer, pooling):
    model = make_model(pooling)
    assert model.pooling == pooling
    dataset = features(tokenizer, PAIRS).dataset(3, shuffle=False, repeat=False)
    batches = list(dataset.as_numpy_iterator())
    assert batches[1][1][1:].tolist() == [[-1, -1]] * 2
    losses = 0.0
    hits = 0.0
    for inputs, ids, weights in batches:
        outputs = np.asarray(model(inputs))
        assert outputs.shape == (3, 2, 8)
        loss, nearest = in_batch_contrast(outputs, ids, weights, 0.05)
        losses += loss * weights.sum()
        hits += nearest * weights.sum()
        if pooling == "layerwise":
            continue
        for row in range(3):
            for text in range(2):
                rows = {k: v[row, text][None] for k, v in inputs.items()}
                states = np.asarray(model.encoder(rows)["sequence_output"])[0]
                mask = rows["padding_mask"][0]
                last = max(int(mask.sum()) - 1, 0)
                expected = {
                    "cls": states[0],
                    "last": states[last],
                    "mean": mean_pooling(states, mask),
                }[pooling]
                assert_close(outputs[row, text], expected, 1e-5)
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    assert logs == pytest.approx({"loss": losses / 4, "accuracy": hits / 4}, rel=1e-4)


def test_texts_alone_are_their_own_partners(tokenizer):
    """Under another dropout mask: without dropout both are equal."""
    rows = [(text,) for text in TEXTS]
    batches = features(tokenizer, rows).dataset(4, seed=3, pad_to_longest=True)
    inputs, ids, weights = next(iter(batches))
    assert (ids[:, 0] == ids[:, 1]).numpy().all() and weights.numpy().all()
    first, second = np.moveaxis(inputs["token_ids"].numpy(), 1, 0)
    np.testing.assert_array_equal(first, second)
    assert inputs["token_ids"].shape[-1] == inputs["padding_mask"].numpy().sum(-1).max()
    for dropout, equal in ((0.0, True), (0.3, False)):
        outputs = np.asarray(make_model(dropout=dropout)(inputs, training=True))
        assert np.array_equal(outputs[:, 0], outputs[:, 1]) is equal


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "dropout"), [(PAIRS, 0.0), (TRIPLETS, 0.0), ([(t,) for t in TEXTS], 0.05)]
)
def test_training_brings_partners_nearer(tokenizer, rows, dropout):
    keras.utils.set_random_seed(0)
    model = make_model(optimizer=keras.optimizers.Adam(3e-3), dropout=dropout)
    dataset = features(tokenizer, rows).dataset(min(len(rows), 4))
    before = model.evaluate(dataset.take(2), verbose=0, return_dict=True)["loss"]
    model.fit(dataset.take(60), verbose=0)
    after = model.evaluate(dataset.take(2), verbose=0, return_dict=True)
    assert after["loss"] < 0.5 * before and after["accuracy"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_trains_compiled(tokenizer, jit_compile):
    model = SentenceEmbedding(make_encoder())
    model.compile("sgd", jit_compile=jit_compile)
    dataset = features(tokenizer, TRIPLETS).dataset(2)
    history = model.fit(dataset, steps_per_epoch=2, verbose=0).history
    assert np.isfinite(history["loss"]).all()


@pytest.mark.slow
def test_two_replicas_train_as_one_device(tokenizer):
    """The texts that one replica holds are negatives of the other's, too."""
    rows = [(a, b) for a, b in zip(TEXTS, TEXTS[1:])]  # Partners are texts of others.
    dataset = features(tokenizer, rows).dataset(4)
    models = check_two_replicas(
        lambda: make_model(optimizer=keras.optimizers.SGD(0.05)), dataset, steps=6
    )
    logs = [
        model.evaluate(dataset.take(3), verbose=0, return_dict=True) for model in models
    ]
    assert logs[0] == pytest.approx(logs[1], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", ["mean", "layerwise"])
def test_is_saved_as_a_model_and_as_a_preset(tokenizer, tmp_path, pooling):
    model = make_model(pooling, dropout=0.3, num_layers=1)
    dataset = features(tokenizer, PAIRS).dataset(2, repeat=False)
    model.fit(dataset, shuffle=False, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is SentenceEmbedding
    assert loaded.get_config() == model.get_config()
    tfeff.tasks.save_pretrained(model, tokenizer, tmp_path / "preset")
    preset, read = tfeff.tasks.load_task(tmp_path / "preset")
    expected = model.embed(TEXTS, tokenizer)
    for other in (loaded, preset):
        np.testing.assert_array_equal(other.embed(TEXTS, read), expected)
    histories = [
        m.fit(dataset, shuffle=False, verbose=0).history for m in (model, loaded)
    ]
    assert histories[0] == histories[1]


@pytest.mark.slow
def test_embeds_texts_of_any_number(tokenizer):
    model = make_model()
    everything = model.embed(TEXTS, tokenizer, batch_size=4)
    assert everything.shape == (9, 8) and everything.dtype == np.float32
    for index in (0, 5):
        (alone,) = model.embed([TEXTS[index]], tokenizer)
        assert_close(alone, everything[index], 1e-5)
    short = model.embed(TEXTS, tokenizer, sequence_length=3)
    assert not np.allclose(short, everything)
    units = model.embed(TEXTS, tokenizer, normalize=True)
    literal = [[cosine(a, b) for b in everything] for a in everything]
    assert_close(units @ units.T, literal, 1e-5)


@pytest.mark.slow
def test_vectors_of_length_one_and_the_length_of_texts(tokenizer, tmp_path):
    model = make_model()
    units = SentenceEmbedding(
        model.encoder, model.pooling, sequence_length=6, normalize=True
    )
    found = units.embed(TEXTS, tokenizer)
    expected = model.embed(TEXTS, tokenizer, sequence_length=6, normalize=True)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.abs(expected - model.embed(TEXTS, tokenizer, normalize=True)).max() > 0.01
    tfeff.tasks.save_pretrained(units, tokenizer, tmp_path / "preset")
    read, _ = tfeff.tasks.load_task(tmp_path / "preset")
    assert read.get_config() == units.get_config()
    np.testing.assert_array_equal(read.embed(TEXTS, tokenizer), found)
    # What earlier versions read is written as they wrote it.
    assert not {"sequence_length", "normalize"} & set(model.get_config())
    with pytest.raises(ValueError, match="`sequence_length` must be an integer of"):
        SentenceEmbedding(model.encoder, sequence_length=2)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "mixed_float16"])
def test_the_loss_of_vectors_of_length_one_is_the_same(tokenizer, dtype):
    dataset = features(tokenizer, PAIRS).dataset(4, repeat=False)
    model = make_model(dtype=dtype)
    units = SentenceEmbedding(model.encoder, model.pooling, normalize=True)
    units.compile()
    losses = [
        x.evaluate(dataset, verbose=0, return_dict=True)["loss"] for x in (model, units)
    ]
    assert losses[0] == pytest.approx(
        losses[1], rel=1e-5 if dtype == "float32" else 0.01
    )


@pytest.mark.quick("mixed_bfloat16")
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_length_one_is_exact_under_a_global_policy(policy, tokenizer):
    model, before = make_model(), keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        units = SentenceEmbedding(model.encoder, model.pooling, normalize=True)
        found = units.embed(TEXTS, tokenizer)
    finally:
        keras.config.set_dtype_policy(before)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64", "mixed_bfloat16"])
def test_the_dtype_is_the_encoders_under_a_global_policy(dtype):
    encoder, before = make_model(dtype=dtype).encoder, keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        for model in (
            SentenceEmbedding(encoder, "mean"),
            SentenceEmbedding(encoder, "mean", normalize=True),
            tfeff.tasks.MultipleChoice(encoder),
        ):
            expected = "float64" if dtype == "float64" else "float32"
            assert model.output.dtype == expected
    finally:
        keras.config.set_dtype_policy(before)


@pytest.mark.slow
def test_mixed_precision(tokenizer):
    dataset = features(tokenizer, PAIRS).dataset(4, repeat=False)
    losses = []
    for policy in ("float32", "mixed_bfloat16", "mixed_float16"):
        model = make_model(optimizer=keras.optimizers.SGD(0.01), dtype=policy)
        losses.append(model.evaluate(dataset, verbose=0, return_dict=True)["loss"])
        assert np.isfinite(model.fit(dataset, verbose=0).history["loss"]).all()
        assert model.embed(TEXTS, tokenizer).dtype == np.float32
    np.testing.assert_allclose(losses[1:], losses[0], rtol=0.1)


def test_bad_examples_are_named():
    examples = tfeff.data.SentenceExamples
    for rows, error, message in (
        ([], ValueError, "hold texts"),
        (["a"], TypeError, "sequences of strings.*'a' at 0"),
        ([("a", 1)], TypeError, "sequences of strings"),
        ([("a", "b"), ("a",)], ValueError, "of one size, 2.*1 texts at 1"),
        ([()], ValueError, "of one size, at least 1"),
        ([("a", "b"), ("c", " ")], ValueError, "no empty text.* at 1"),
        ([("a", "b"), ("c", "c")], ValueError, r"different texts.*\('c', 'c'\) at 1"),
        ([("a", "b", "a")], ValueError, "different texts.* at 0"),
        ("ab", TypeError, "a sequence of sequences of strings"),
    ):
        with pytest.raises(error, match=f"`rows` must.*{message}"):
            examples(rows=rows)
    with pytest.raises(ValueError, match="`count` must"):
        examples(rows=PAIRS).sample(5)
    assert examples(rows=PAIRS).sample(2).rows[0] in PAIRS


def test_bad_arguments_are_named(tokenizer):
    with pytest.raises(ValueError, match="`batch_size` must be .*2.*batch_size=1"):
        features(tokenizer, PAIRS).dataset(1)
    assert features(tokenizer, TRIPLETS).dataset(1) is not None
    with pytest.raises(TypeError, match="`examples` must be `SentenceExamples`"):
        tfeff.data.sentence_features(PAIRS, tokenizer, 8)
    encoder = make_encoder(num_layers=1)
    with pytest.raises(ValueError, match="`pooling` must be one of.*'max'"):
        SentenceEmbedding(encoder, "max")
    with pytest.raises(ValueError, match="`pooling` must be one of.*'segments'"):
        SentenceEmbedding(encoder, "segments")
    for temperature in (0, -1.0, "hot"):
        with pytest.raises((ValueError, TypeError), match="`temperature` must"):
            SentenceEmbedding(encoder, temperature=temperature)
    model = SentenceEmbedding(encoder)
    with pytest.raises(ValueError, match="`accumulation_steps` must be 1"):
        model.compile(accumulation_steps=2)
    for texts, message in (([], "hold texts"), (["a", " "], "no empty text.*' ' at 1")):
        with pytest.raises(ValueError, match=f"`texts` must.*{message}"):
            model.embed(texts, tokenizer)
    with pytest.raises(TypeError, match="`texts` must be a sequence of strings"):
        model.embed("a text", tokenizer)
    with pytest.raises(TypeError, match="`texts` must be .*3 at 0"):
        model.embed([3], tokenizer)
    with pytest.raises(TypeError, match="`texts` must be a sequence .*{'a text'}"):
        model.embed({"a text"}, tokenizer)  # A set has no order.
    with pytest.raises(TypeError, match="`tokenizer` must be a KerasHub tokenizer"):
        model.embed(TEXTS, None)
    embeddings = np.ones((2, 2, 4), "float32")
    with pytest.raises(ValueError, match="`y_pred` must have at least two rows"):
        InBatchContrast()([[0, 1]], embeddings[:1])
    with pytest.raises(ValueError, match="`y_pred` must hold at least two texts"):
        InBatchContrast()([[0], [1]], embeddings[:, :1])
    with pytest.raises(TypeError, match="`y_true` must be .*sentence_features"):
        InBatchContrast()([[0.0, 1.0]] * 2, embeddings)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_what_the_encoder_has_no_rows_for_is_named(jit_compile, tokenizer):
    """A compiled lookup beyond a table returns wrong rows."""
    model = SentenceEmbedding(make_encoder(num_layers=1, position="absolute"))
    model.compile(jit_compile=jit_compile)
    for length in (17, 10**6, 2):
        with pytest.raises(ValueError, match="`sequence_length` must be .*at most 16"):
            model.embed(TEXTS, tokenizer, sequence_length=length)
    model = SentenceEmbedding(make_encoder(num_layers=1, vocabulary_size=33))
    model.compile(jit_compile=jit_compile)
    with pytest.raises(ValueError, match="`tokenizer` must have no more ids.*34 ids"):
        model.embed(TEXTS, tokenizer)


def test_without_a_table_of_positions_any_length_is_right(tokenizer):
    model = make_model(num_layers=1)
    assert len(model.embed(["a cat " * 20], tokenizer, sequence_length=64)) == 1


@pytest.mark.slow
def test_embeddings_are_of_the_length_and_norm_that_are_wanted(tokenizer):
    model = SentenceEmbedding(make_encoder(), "mean", sequence_length=5)
    cut = model.embed(TEXTS, tokenizer)
    np.testing.assert_array_equal(cut, model.embed(TEXTS, tokenizer, 5))
    assert not np.allclose(cut, model.embed(TEXTS, tokenizer, 12))
    units = model.embed(TEXTS, tokenizer, normalize=True)
    assert units.shape == cut.shape == (len(TEXTS), 8)
    lengths = np.linalg.norm(cut, axis=1, keepdims=True)
    assert not np.allclose(lengths, 1)
    np.testing.assert_allclose(units, cut / lengths, rtol=1e-5)
