"""`fit` of tfeff's models says nothing of data sets, and shuffles arrays."""

import functools
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.subjects import training_steps
from tests.subjects.sentences import tokenizer
from tfeff.training import DistributedModel, adamw
from tfeff.training.fit_data import num_updates

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
    # Who asks is told what Keras tells, which has said so since version 3.13.
    said = []
    for one in (model, keras.Model(model.input, model.output)):
        one.compile("sgd", "mse")
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            one.fit(batches, verbose=0, shuffle=True)
        said.append([str(warning.message) for warning in found])
    assert said[0] == said[1]


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


def schedule_model():
    model = make_model()
    model.compile(adamw(1e-3, warmup_steps=1, total_steps=10), "mse")
    return model


@pytest.mark.parametrize("kind", ["steps_per_epoch", "cardinality"])
def test_epochs_behind_the_schedule_are_told(kind):
    batches = tf.data.Dataset.from_tensors((X, Y)).repeat(5)
    options = {"steps_per_epoch": 5} if kind == "steps_per_epoch" else {}
    if options:
        batches = batches.repeat()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        schedule_model().fit(batches, epochs=2, verbose=0, **options)
    with pytest.warns(UserWarning, match="takes 15 steps, .* ends after 10"):
        schedule_model().fit(batches, epochs=3, verbose=0, **options)


@pytest.mark.parametrize("first", ["fit", "train_on_batch"])
def test_layers_that_the_first_step_builds_train_on(first):
    class Lazy(DistributedModel):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, inputs):
            return self.dense(inputs)

    model, x, y = Lazy(), np.ones((8, 4), "float32"), np.ones((8, 1), "float32")
    model.compile("sgd", "mse")
    fit = functools.partial(model.fit, x, y, verbose=0)
    model.train_on_batch(x, y) if first == "train_on_batch" else fit()
    fit()
    model.dense.trainable = False
    with pytest.raises(ValueError, match="must be compiled again"):
        fit()


def test_what_trains_is_decided_by_compile():
    """A traced step would go on with the weights of before."""
    model = make_model()
    model.fit(X, Y, verbose=0)
    model.layers[-1].trainable = False
    with pytest.raises(ValueError, match="must be compiled again"):
        model.fit(X, Y, verbose=0)
    model.layers[-1].trainable = True
    model.fit(X, Y, verbose=0)
    model.layers[-1].trainable = False
    model.compile("sgd", "mse")
    before = model.layers[-1].kernel.numpy()
    model.fit(X, Y, verbose=0)
    np.testing.assert_array_equal(model.layers[-1].kernel, before)


@pytest.mark.slow
def test_a_fit_after_one_that_failed():
    model = tfeff.tasks.Classifier(training_steps.encoder(), 2)
    model.compile()
    ids = np.ones((4, 6), "int32")
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    labels = np.array([0, 1, 1, 0])
    for wrong in (np.eye(2)[labels], np.eye(2, dtype="int32")[labels]):
        with pytest.raises(ValueError, match=r"Of one-hot vectors give `argmax\(-1\)`"):
            model.fit(inputs, wrong, verbose=0)
        with pytest.raises(ValueError, match="one-hot"):
            model.evaluate(inputs, wrong, verbose=0)
    with pytest.raises(ValueError, match="batches must be made for this model"):
        model.fit(inputs, ids, verbose=0)
    assert model.fit(inputs, labels, verbose=0).history["loss"]
    assert model.evaluate(inputs, labels, verbose=0)


def test_what_batches_are_made_of_is_told():
    model = tfeff.tasks.Classifier(training_steps.encoder(), 2)
    model.compile()
    examples = tfeff.data.TextExamples(["a b"], labels=[1], label_names=("x", "y"))
    rows = tfeff.data.text_features(examples, tokenizer(), 8)
    for wrong, way in ((rows, r"x\.dataset\("), (examples, r"text_features\(x")):
        for call in (model.fit, model.evaluate, model.predict):
            with pytest.raises(
                TypeError, match=f"`x` must be batches, such as .*{way}"
            ):
                call(wrong, verbose=0)
    for texts in (["a text"], np.array(["a text"]), np.array(["a text"], object)):
        with pytest.raises(TypeError, match="`x` must be numbers.*text_features"):
            model.fit(texts, verbose=0)
    with pytest.raises(TypeError, match="`x` must be batches, such as x.batches"):
        model.fit(tfeff.data.Cache.__new__(tfeff.data.Cache))

    class Frame(dict):
        sample = dataset = len

    with pytest.raises(ValueError):  # Keras' own, of an empty one.
        model.fit(Frame(), verbose=0)
    names = np.array(["x", "y"])
    with pytest.raises(TypeError, match="`y` must be numbers"):
        model.fit({}, names, verbose=0)
    x, y = rows.inputs, np.array([1])
    for wrong, name in (
        (rows, "validation_data` must be batches"),
        ((rows, y), r"validation_data\[0\]` must be batches"),
        ((x, names), r"validation_data\[1\]` must be numbers"),
        ((x, y, [1.0]), r"validation_data\[2\]` must be an array"),
    ):
        with pytest.raises(TypeError, match=f"`{name}"):
            model.fit(x, y, validation_data=wrong, verbose=0)


def test_lists_of_numbers_are_no_arrays():
    model = tfeff.tasks.Classifier(training_steps.encoder(), 2)
    model.compile(run_eagerly=True)
    examples = tfeff.data.TextExamples(["a b"], labels=[1], label_names=("x", "y"))
    x, y = tfeff.data.text_features(examples, tokenizer(), 8).inputs, np.array([1])
    listed = x | {"token_ids": x["token_ids"].tolist()}
    for call in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch):
        for given, name in (
            ((x, [1]), "y"),
            ((x, y, [1.0]), "sample_weight"),
            ((listed, y), r"x\['token_ids'\]"),
        ):
            names = dict(zip(("x", "y", "sample_weight"), given))
            with pytest.raises(TypeError, match=f"`{name}` must be an array, such as"):
                call(**names)
    model.train_on_batch(x, y, np.ones(1))


def test_updates_of_a_fit_that_goes_on():
    callback = keras.callbacks.Callback()
    callback.steps_before = 3
    data = tf.data.Dataset.range(8)
    given = {"epochs": 4, "initial_epoch": 2, "callbacks": [callback]}
    assert num_updates(data, given | {"steps_per_epoch": 5}) == 7
    assert num_updates(data, given) == 13
    assert num_updates(data.repeat(), given) is None
    assert num_updates(data, {}) == 8


class Asks(keras.callbacks.Callback):
    """Asks the model something that is an error after each epoch, and goes on."""

    def on_epoch_end(self, epoch, logs=None):
        for ask in (self.model.predict_on_batch, self.model.predict):
            with pytest.raises(Exception, match="shape|[Ii]nvalid|incompatible"):
                ask(np.ones((2, 7)))


def test_an_error_that_a_callback_catches_ends_no_training():
    model = make_model()
    history = model.fit(X, Y, epochs=2, verbose=0, callbacks=[Asks()]).history
    assert len(history["loss"]) == 2


def test_class_weights_need_targets():
    model = make_model()
    with pytest.raises(ValueError, match="`y` must be the targets .*class_weight"):
        model.train_on_batch(X, class_weight={0: 1.0})
