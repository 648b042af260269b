"""A training does not begin whose checkpoints could not be loaded."""

import random

import keras
import numpy as np
import pytest
from keras.src.backend.common import global_state

import tfeff
from tests.subjects.encoders import tiny
from tfeff.training import RunDirectory
from tfeff.training.loadable import check_can_be_loaded

Dense = keras.layers.Dense
schedules = keras.optimizers.schedules


class Unknown(keras.layers.Layer):
    def call(self, inputs):
        return inputs


class UnknownSchedule(schedules.LearningRateSchedule):
    def __call__(self, step):
        return 1e-3

    def get_config(self):
        return {}


@keras.saving.register_keras_serializable("can_be_loaded")
class Known(keras.layers.Layer):
    def call(self, inputs):
        return inputs


@keras.saving.register_keras_serializable("can_be_loaded")
def known_loss(y, y_pred):
    return keras.ops.mean((y - y_pred) ** 2)


def unknown_loss(y, y_pred):
    return keras.ops.mean((y - y_pred) ** 2)


def model(layer, loss="mse", rate=1e-3):
    layers = [keras.Input((2,)), layer, Dense(1)]
    made = keras.Sequential(layers)
    made.compile(keras.optimizers.Adam(rate), loss)
    return made


@pytest.mark.parametrize(
    "subject, names",
    [
        ((Unknown(),), "Unknown"),
        ((Dense(2, activation=unknown_loss),), "unknown_loss"),
        ((Dense(2), unknown_loss), "unknown_loss"),
        ((Dense(2), "mse", UnknownSchedule()), "UnknownSchedule"),
        ((Dense(2), "mse", lambda: 1e-3), "lambda"),
        ((Unknown(), unknown_loss), "Unknown, unknown_loss"),
    ],
)
def test_what_is_not_registered_is_named(subject, names):
    message = f"`make_model` .* registered .* a Sequential with {names}$"
    with pytest.raises(ValueError, match=message):
        check_can_be_loaded(model(*subject))


@pytest.mark.parametrize(
    "subject",
    [
        (Known(),),
        (Dense(2, activation="gelu"),),
        (Dense(2, activation=keras.activations.relu), keras.losses.mean_squared_error),
        (Dense(2), known_loss, schedules.CosineDecay(1e-3, 10)),
        (keras.layers.Bidirectional(keras.layers.GRU(1)),),
    ],
)
def test_what_keras_loads_is_taken(subject, tmp_path):
    if isinstance(subject[0], keras.layers.Bidirectional):
        made = keras.Sequential([keras.Input((3, 2)), *subject])
        made.compile("sgd", keras.losses.Huber())
    else:
        made = model(*subject)
    check_can_be_loaded(made)
    made.save(tmp_path / "model.keras")
    keras.models.load_model(tmp_path / "model.keras")


@keras.saving.register_keras_serializable("can_be_loaded")
class NotMadeAnew(keras.layers.Layer):
    """Needs an argument that its configuration does not have."""

    def __init__(self, size, **kwargs):
        super().__init__(**kwargs)

    def call(self, inputs):
        return inputs

    def get_config(self):
        return {"name": self.name}


@keras.saving.register_keras_serializable("can_be_loaded")
class NoKeywords(keras.Model):
    """Does not take the `dtype` and `trainable` of Keras' configurations."""

    def __init__(self):
        super().__init__()
        self.dense = Dense(1)

    def call(self, inputs):
        return self.dense(inputs)


@keras.saving.register_keras_serializable("can_be_loaded")
class NoReason(keras.layers.Layer):
    def call(self, inputs):
        return inputs

    @classmethod
    def from_config(cls, config):
        raise NotImplementedError


@keras.saving.register_keras_serializable("can_be_loaded")
class Around(keras.Model):
    """Its configuration has a layer itself, is kept, and is taken apart."""

    def __init__(self, inner, **kwargs):
        super().__init__(**kwargs)
        self.inner, self._config = inner, {"inner": inner}
        random.random(), np.random.rand()

    def call(self, inputs):
        return self.inner(inputs)

    def get_config(self):
        return self._config

    @classmethod
    def from_config(cls, config):
        return cls(keras.saving.deserialize_keras_object(config.pop("inner")), **config)


def test_the_model_that_is_asked_about_stays_as_it_is(tmp_path):
    made = Around(Dense(1))
    made.compile("sgd", "mse")
    made.fit(np.ones((2, 3)), np.ones((2, 1)), verbose=0)
    before = random.getstate(), np.random.get_state()[2]
    for _ in range(2):
        check_can_be_loaded(made)
        assert (random.getstate(), np.random.get_state()[2]) == before
    made.save(tmp_path / "model.keras")
    keras.models.load_model(tmp_path / "model.keras")


@pytest.mark.parametrize(
    "make, names",
    [
        (lambda: model(NoReason()), "Sequential with NoReason: NotImplementedError: "),
        (lambda: model(NotMadeAnew(3)), "Sequential with NotMadeAnew: .*'size'"),
        (NoKeywords, "NoKeywords with NoKeywords: .*'trainable'"),
    ],
)
def test_what_its_configuration_does_not_make_is_named(make, names):
    made = make()
    made.compile("sgd", "mse")
    message = f"`make_model` .* `get_config` .* Received: a {names}$"
    with pytest.raises(ValueError, match=message):
        check_can_be_loaded(made)


def test_lambdas_are_taken_where_the_user_allows_them():
    made = model(Dense(2), "mse", lambda: 1e-3)
    keras.config.enable_unsafe_deserialization()
    try:
        check_can_be_loaded(made)
    finally:
        global_state.set_global_attribute("safe_mode_saving", None)
    with pytest.raises(ValueError, match="lambda"):
        check_can_be_loaded(made)


@pytest.mark.parametrize("name", tfeff.objectives.names())
def test_the_models_of_tfeff_are_taken(name):
    made = tfeff.objectives.get(name).make_model(tiny("bert_base"))
    made.compile()
    check_can_be_loaded(made)


@keras.saving.register_keras_serializable("can_be_loaded")
class Deeper(tfeff.objectives.MaskedLM):
    """Takes an argument, and would be loaded with its default."""

    def __init__(self, encoder, depth=1, **kwargs):
        super().__init__(encoder, **kwargs)
        self.depth = depth


@keras.saving.register_keras_serializable("can_be_loaded")
class DeeperEncoder(tfeff.encoders.Encoder):
    def __init__(self, *args, depth=1, **kwargs):
        super().__init__(*args, **kwargs)


class DeeperAttention(tfeff.layers.SelfAttention):
    def __init__(self, *args, depth=1, **kwargs):
        super().__init__(*args, **kwargs)


class DeeperDistillation(tfeff.objectives.Distillation):
    def __init__(self, student, teacher, depth=1, **kwargs):
        super().__init__(student, teacher, **kwargs)


def test_arguments_that_a_configuration_lacks_are_named(tmp_path):
    encoder = tiny("bert_base")
    for made in (
        Deeper(encoder),
        DeeperEncoder(**encoder.get_config()),
        DeeperAttention(2),
        DeeperDistillation(tiny("bert_base"), encoder),
    ):
        message = f"{type(made).__name__} must override `get_config`, .* argument depth"
        with pytest.raises(NotImplementedError, match=message):
            made.get_config()
    deeper = Deeper(encoder)
    deeper.compile()
    run = RunDirectory(tmp_path / "run", {})
    message = "`make_model` .* a Deeper, whose configuration .*`get_config`"
    with run, pytest.raises(ValueError, match=message):
        run.fit(
            lambda: deeper,
            lambda skipped: None,
            total_steps=1,
            steps_per_epoch=1,
            tokens_per_step=1,
        )


class Generic(tfeff.objectives.MaskedLM):
    """Notes the arguments of its subclasses itself."""

    def __init__(self, encoder, **noted):
        super().__init__(encoder)
        self.noted = noted

    def get_config(self):
        return {**super().get_config(), **self.noted}


class OfGeneric(Generic):
    def __init__(self, encoder, depth=1):
        super().__init__(encoder, depth=depth)


def test_configurations_of_a_users_base_are_its_own_matter():
    assert OfGeneric(tiny("bert_base"), depth=3).get_config()["depth"] == 3


class Doubled(tfeff.objectives.MaskedLM):
    def compute_loss(self, *args, **kwargs):
        return 2 * super().compute_loss(*args, **kwargs)


class DoubledWithDefault(Doubled):
    def default_loss(self):
        return super().default_loss()

    def compute_loss(self, *args, **kwargs):
        return super().compute_loss(*args, **kwargs)


class DoubledDistillation(tfeff.objectives.Distillation):
    def compute_loss(self, *args, **kwargs):
        return 2 * super().compute_loss(*args, **kwargs)


@pytest.mark.slow
def test_a_loss_of_ones_own_is_the_reported_one():
    encoder = tiny("bert_base")
    ids = np.arange(12, dtype="int32").reshape(2, 6) % encoder.vocabulary_size
    inputs = {
        "token_ids": ids,
        "padding_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
        "mask_positions": np.array([[1], [2]], "int32"),
    }
    batch = inputs, np.array([[3], [4]], "int32"), np.ones((2, 1), "float32")
    teacher = tiny("bert_base")
    for plain, doubled, subject in (
        (tfeff.objectives.MaskedLM, Doubled, (encoder,)),
        (tfeff.objectives.MaskedLM, DoubledWithDefault, (encoder,)),
        (tfeff.objectives.Distillation, DoubledDistillation, (encoder, teacher)),
    ):
        losses = []
        for kind in (plain, doubled):
            keras.utils.set_random_seed(0)
            made = kind(*subject)
            made.compile(keras.optimizers.SGD(0.0))
            losses.append(
                made.evaluate(
                    *batch[:2], sample_weight=batch[2], verbose=0, return_dict=True
                )["loss"]
            )
        np.testing.assert_allclose(losses[1], 2 * losses[0], rtol=1e-5)
