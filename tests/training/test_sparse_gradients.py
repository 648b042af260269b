"""Rows of a table's gradient that are of one token count by their sum."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff

TOKENS = np.random.default_rng(0).integers(5, 9, (8, 6)).astype("int32")
INPUTS = {
    "token_ids": TOKENS,
    "segment_ids": TOKENS % 2,
    "padding_mask": np.ones_like(TOKENS),
}
LABELS = np.arange(8, dtype="int32") % 3
OPTIMIZERS = {
    "adam": lambda: keras.optimizers.Adam(1e-2),
    "lamb": lambda: keras.optimizers.Lamb(1e-2),
    "clipped": lambda: keras.optimizers.SGD(1.0, global_clipnorm=0.1),
    "adagrad": lambda: keras.optimizers.Adagrad(1e-2),
    "scaled": lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-2)),
}


def make_model(optimizer, parts=1):
    keras.utils.set_random_seed(1)
    encoder = tfeff.encoders.build(
        "bert_rpe_base",
        vocabulary_size=20,
        num_layers=1,
        hidden_dim=8,
        num_heads=2,
        intermediate_dim=16,
        max_sequence_length=8,
        dropout=0.0,
    )
    model = tfeff.tasks.Classifier(encoder, 3, dropout=0.0)
    model.compile(optimizer, accumulation_steps=parts)
    draw = np.random.default_rng(1).standard_normal
    for weight in model.trainable_weights:
        weight.assign(weight + 0.1 * draw(weight.shape).astype("float32"))
    return model


def tables(model):
    embedding = model.encoder.embedding
    layers = (embedding.token_embedding, embedding.segment_embedding)
    return [keras.ops.convert_to_numpy(layer.embeddings) for layer in layers]


@pytest.mark.quick("adam")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_batch_trains_as_its_parts(name):
    found = []
    for parts in (1, 2):
        model = make_model(OPTIMIZERS[name](), parts)
        before = tables(model)
        for _ in range(2):
            model.train_on_batch(INPUTS, LABELS)
        found.append(tables(model))
    for one, other, start in zip(*found, before, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=5e-6)
        assert np.abs(one - start).max() > 1e-3


def test_adam_against_the_literal_algorithm():
    model = make_model(keras.optimizers.Adam(0.1, epsilon=1e-7))
    start = tables(model)[0]
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(LABELS, model(INPUTS))
        )
    table = model.encoder.embedding.token_embedding.embeddings
    sparse = tape.gradient(loss, table.value)
    gradient = np.zeros_like(start)
    np.add.at(gradient, sparse.indices.numpy(), sparse.values.numpy())
    assert len(set(sparse.indices.numpy())) < len(sparse.indices)
    model.train_on_batch(INPUTS, LABELS)
    # In the first step the corrected means are the gradient and its square. Keras adds
    # ε before the correction.
    epsilon = 1e-7 / np.sqrt(1 - 0.999)
    expected = start - 0.1 * gradient / (np.abs(gradient) + epsilon)
    np.testing.assert_allclose(tables(model)[0], expected, rtol=0, atol=5e-5)


@pytest.mark.slow
def test_an_optimizer_is_saved_as_before(tmp_path):
    model = make_model(keras.optimizers.Adam(1e-2))
    model.train_on_batch(INPUTS, LABELS)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert type(loaded.optimizer) is keras.optimizers.Adam
    for one in (model, loaded):
        one.train_on_batch(INPUTS, LABELS)
    for one, other in zip(tables(model), tables(loaded), strict=True):
        np.testing.assert_array_equal(one, other)
