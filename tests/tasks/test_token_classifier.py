"""Classification of tokens: head, loss, metrics, replicas, saving."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close, check_two_replicas, randomize
from tests.reference.objectives import cross_entropies
from tfeff.tasks import TokenClassifier

NAMES = ["O", "B-PER", "I-PER"]


def make_encoder(**kwargs):
    arguments = dict(
        vocabulary_size=50,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=16,
        dropout=0.0,
    )
    return tfeff.encoders.Encoder(**(arguments | kwargs))


def make_model(dropout=0.0, optimizer=None, **kwargs):
    model = TokenClassifier(make_encoder(**kwargs), 3, dropout, NAMES)
    randomize({w.path: w for w in model.weights}, scale=0.3)
    model.compile(optimizer=optimizer or keras.optimizers.SGD(0.05))
    return model


def batches(count=4, batch_size=4, length=9, seed=0):
    """Ragged rows, the last one empty; half of the real tokens have a label."""
    rng = np.random.default_rng(seed)
    rows = count * batch_size
    lengths = rng.integers(1, length + 1, rows)
    lengths[-1] = 0
    mask = (np.arange(length) < lengths[:, None]).astype("int32")
    inputs = {
        "token_ids": rng.integers(5, 50, mask.shape).astype("int32"),
        "segment_ids": np.zeros_like(mask),
        "padding_mask": mask,
    }
    labels = rng.integers(0, 3, mask.shape).astype("int32")
    weights = (mask * rng.integers(0, 2, mask.shape)).astype("float32")
    weights[::batch_size, 0] = mask[::batch_size, 0]
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels, weights))
    return dataset.batch(batch_size, drop_remainder=True)


def test_logits_loss_and_metrics_are_literal():
    model = make_model()
    kernel, bias = (w.numpy() for w in model.get_layer("logits").weights)
    total = count = right = 0.0
    for inputs, labels, weights in batches().as_numpy_iterator():
        logits = np.asarray(model(inputs))
        hidden = np.asarray(model.encoder(inputs)["sequence_output"])
        for row in range(len(hidden)):
            literal = [vector @ kernel + bias for vector in hidden[row]]
            assert_close(logits[row], np.array(literal), 1e-5)
        flat = (logits.reshape(-1, 3), labels.reshape(-1), weights.reshape(-1))
        loss, _ = cross_entropies(*flat)
        total, count = total + loss, count + weights.sum()
        right += np.sum(weights * (logits.argmax(-1) == labels))
    logs = model.evaluate(batches(), verbose=0, return_dict=True)
    expected = {"loss": total / count, "accuracy": right / count}
    assert logs == pytest.approx(expected, rel=1e-5)


def test_tokens_without_a_label_teach_nothing():
    model = make_model()
    (inputs, labels, weights), *_ = batches(count=1).as_numpy_iterator()
    labels = np.where(weights > 0, labels, 2 - labels)

    def gradients(labels):
        with tf.GradientTape() as tape:
            loss = model.default_loss()(labels, model(inputs), weights)
        variables = model.get_layer("logits").trainable_variables
        return [np.asarray(g) for g in tape.gradient(loss, variables)]

    one, other = gradients(labels), gradients(np.where(weights > 0, labels, 1))
    for g, h in zip(one, other, strict=True):
        np.testing.assert_array_equal(g, h)
    assert all(np.abs(g).max() > 0 for g in one)


@pytest.mark.quick("mixed_bfloat16")
@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_and_length_1(dtype):
    inputs = next(batches().as_numpy_iterator())[0]
    first = {name: array[:, :1] for name, array in inputs.items()}
    keras.utils.set_random_seed(0)
    full, half = make_model(), make_model(dtype=dtype)
    for given in (inputs, first):
        expected = np.asarray(full(given))
        found = np.asarray(keras.ops.cast(half(given), "float32"))
        assert found.shape == (*given["token_ids"].shape, 3)
        np.testing.assert_allclose(found, expected, atol=0.05)


@pytest.mark.slow
def test_a_saved_model_is_the_same(tmp_path):
    model = make_model(dropout=0.3)
    model.fit(batches(count=1), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    assert (loaded.dropout, loaded.label_names) == (0.3, tuple(NAMES))
    inputs = next(batches().as_numpy_iterator())[0]
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


@pytest.mark.slow
@pytest.mark.parametrize("length_dependent", [False, True])
def test_labels_of_words_are_those_of_their_first_tokens(length_dependent):
    attention = {"name": "blockwise", "head_blocks": "1:1"}
    changes = {"attention": attention} if length_dependent else {}
    documents = ["Ada wrote it", "yes and no"] * 9
    tokenizer = tfeff.data.train_tokenizer(documents, 19)
    model = make_model(max_sequence_length=8, **changes)
    words = (("yes",), ("Ada", "wrote", "it", "and", "Ada"), ("no", "no"))
    examples = tfeff.data.TokenExamples(words, None, tuple(NAMES), tuple("abc"))
    features = tfeff.data.token_features(examples, tokenizer, sequence_length=8)
    assert len(features) > 3
    logits = model.predict(features.inputs, verbose=0)
    expected = [row.argmax(-1).tolist() for row in features.of_words(logits)]
    for batch_size in (2, 50):
        found = model.labels(features, batch_size)
        assert [row.tolist() for row in found] == expected
        assert all(row.dtype == np.int32 for row in found)
    with pytest.raises(
        TypeError, match="`features` must be from `tfeff.data.token_fea"
    ):
        model.labels(features.inputs)
    with pytest.raises(ValueError, match="`batch_size` must be .*=0"):
        model.labels(features, 0)


@pytest.mark.slow
def test_two_replicas_equal_one_device():
    models = check_two_replicas(make_model, batches(count=10), steps=10)
    logs = [model.evaluate(batches(), verbose=0) for model in models]
    np.testing.assert_allclose(logs[1], logs[0], rtol=1e-4)


def test_bad_arguments_are_named():
    encoder = make_encoder()
    with pytest.raises(TypeError, match="`encoder` must be .*Dense"):
        TokenClassifier(keras.layers.Dense(3), 3)
    with pytest.raises(ValueError, match="`num_classes` must be .*num_classes=1"):
        TokenClassifier(encoder, 1)
    with pytest.raises(ValueError, match=r"`dropout` must be .*dropout=1\.0"):
        TokenClassifier(encoder, 3, dropout=1.0)
    with pytest.raises(ValueError, match="`label_names` must be 3 strings"):
        TokenClassifier(encoder, 3, label_names=["O"])
    tokenizer = tfeff.data.train_tokenizer(["the cat sat on a mat"] * 9, 16)
    words = tfeff.data.TokenExamples((("the", "cat"),), None, NAMES, ("0",))
    features = tfeff.data.token_features(words, tokenizer, 16)
    with pytest.raises(ValueError, match="`features` must be made with the tokenizer"):
        TokenClassifier(make_encoder(vocabulary_size=6), 3).labels(features)


def test_weights_of_classes_are_refused():
    model = make_model()
    (x, y, weights), *_ = batches(count=1).as_numpy_iterator()
    for run in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match="`class_weight` must be None"):
            run(x, y, class_weight={0: 1.0, 1: 5.0, 2: 5.0})
    with pytest.raises(ValueError, match="`class_weight` must be None"):
        model.fit(batches(), class_weight={0: 1.0, 1: 5.0, 2: 5.0})
    # One logit a token.
    tokens = keras.Input((None, 1))
    model = tfeff.training.DistributedModel(tokens, keras.layers.Flatten()(tokens))
    model.compile("sgd", tfeff.objectives.GlobalMeanBinaryCrossentropy())
    with pytest.raises(ValueError, match="`class_weight` must be None"):
        model.fit(np.ones((2, 3, 1)), np.ones((2, 3)), class_weight={0: 1.0, 1: 5.0})
    tfeff.tasks.Classifier(make_encoder(), 2)  # Of examples they are Keras' own.


def test_an_encoder_that_was_frozen_as_a_teacher_is_told(recwarn):
    model = make_model()
    model.encoder.trainable = False  # A user's own doing needs no warning.
    model.compile()
    model.fit(batches().take(1), verbose=0)
    tfeff.objectives.Distillation(make_model(), model)
    assert not [w for w in recwarn.list if "`encoder`" in str(w.message)]
    model = TokenClassifier(model.encoder, 3, 0.0, NAMES)
    model.compile()
    with pytest.warns(UserWarning, match="`encoder` was frozen as a teacher") as told:
        model.fit(batches().take(1), verbose=0)
    (warning,) = (w for w in told if "`encoder`" in str(w.message))
    assert warning.filename == __file__
    recwarn.clear()
    model.encoder.blocks[-1].trainable = True  # The uppermost layers alone.
    model.compile()
    model.fit(batches().take(1), verbose=0)
    assert not [w for w in recwarn.list if "`encoder`" in str(w.message)]
