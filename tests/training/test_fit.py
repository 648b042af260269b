"""`fit` of tfeff's models says nothing of data sets, and shuffles arrays."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfeff.training import DistributedModel

X, Y = np.arange(8.0)[:, None], np.zeros((8, 1))


def make_model():
    inputs = keras.Input((1,))
    model = DistributedModel(inputs, keras.layers.Dense(1)(inputs))
    model.compile("sgd", "mse")
    return model


def test_nothing_is_warned_of_data_sets():
    batches = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    model = make_model()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(batches, verbose=0)
        model.fit(batches, None, None, 1, 0, None, 0.0, batches)
    with pytest.warns(UserWarning, match="shuffle=True"):  # Who asks is told.
        model.fit(batches, verbose=0, shuffle=True)


def test_no_batch_is_taken_for_nothing():
    """Data that can be read once are read whole, and others once."""
    taken = []

    def generate(batches):
        for batch in batches:
            taken.append(batch)
            yield X[:2], Y[:2]

    def dataset(batches):
        spec = tuple(tf.TensorSpec(part[:2].shape, part.dtype) for part in (X, Y))
        return tf.data.Dataset.from_generator(
            lambda: generate(batches), output_signature=spec
        )

    model, trained = make_model(), []
    counted = keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: trained.append(batch)
    )
    model.fit(dataset(iter(range(6))), verbose=0, callbacks=[counted])
    assert trained == list(range(6))
    for call in (model.evaluate, model.predict):
        taken.clear()
        call(dataset([1, 2, 3]), verbose=0)
        assert taken == [1, 2, 3]


def test_arrays_are_shuffled():
    """Two seeds give two orders, and so two models; without shuffling they do not."""

    def trained(seed, **options):
        keras.utils.set_random_seed(0)
        model = make_model()
        keras.utils.set_random_seed(seed)
        model.fit(X, Y, batch_size=1, verbose=0, **options)
        return model.get_weights()[0].item()

    model = make_model()
    assert model.fit(X, Y, 4, 1, 0).history["loss"]
    assert trained(1) != trained(2)
    assert trained(1, shuffle=False) == trained(2, shuffle=False)
