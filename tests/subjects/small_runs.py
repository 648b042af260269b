"""A run of the smallest model, which signals may end."""

import os
import signal

import keras
import numpy as np
import tensorflow as tf

from tfeff.training import DistributedModel, RunDirectory

X = np.linspace(-1, 1, 40, dtype="float32").reshape(20, 2)
Y = (X.sum(-1, keepdims=True) + 0.3) ** 2


class Raises(keras.callbacks.Callback):
    """Sends this process a signal, or several, after a step or in a validation."""

    def __init__(self, *signals, step=None, validation=None):
        super().__init__()
        self.signals, self.step, self.validation = signals, step, validation

    def on_train_batch_end(self, batch, logs=None):
        if self.step is not None and self.model.optimizer.iterations == self.step:
            self.send()

    def on_test_begin(self, logs=None):
        if self.validation is not None and (
            self.model.optimizer.iterations == self.validation
        ):
            self.send()

    def send(self):
        for number in self.signals:
            signal.raise_signal(number)


class Stops(keras.callbacks.Callback):
    """Stops the training after a step, and notes which methods Keras has called."""

    def __init__(self, step):
        super().__init__()
        self.step, self.called = step, []

    def on_train_batch_end(self, batch, logs=None):
        if self.model.optimizer.iterations == self.step:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        self.called.append(f"epoch {epoch}")

    def on_train_end(self, logs=None):
        self.called.append("end")


@keras.saving.register_keras_serializable("tests")
class Small(DistributedModel):
    """The smallest model whose steps can be told apart."""

    def __init__(self, **kwargs):
        x = keras.Input((2,))
        y = keras.layers.Dense(3, activation="tanh")(x)
        y = keras.layers.Dense(1)(keras.layers.Dropout(0.3)(y))
        super().__init__(inputs=x, outputs=y, **kwargs)

    def get_config(self):
        return {"name": self.name}

    @classmethod
    def from_config(cls, config):
        return cls(**config)

    def compile_from_config(self, config):
        config = keras.saving.deserialize_keras_object(config)
        self.compile(**config)
        self.optimizer.build(self.trainable_variables)


def train(directory, *callbacks, steps_per_execution=1, strategy=None, **kwargs):
    """3 epochs of 6 steps."""

    def make_model():
        keras.utils.set_random_seed(1)
        model = Small()
        model.compile(
            keras.optimizers.Adam(0.05),
            "mse",
            metrics=["mae"],
            steps_per_execution=steps_per_execution,
        )
        return model

    data = tf.data.Dataset.from_tensor_slices((X, Y)).repeat().batch(4)
    run = RunDirectory(directory, {})
    with (strategy or tf.distribute.get_strategy()).scope():
        model = run.fit(
            make_model,
            data.skip,
            total_steps=18,
            steps_per_epoch=6,
            tokens_per_step=1,
            validation_data=data.take(2),
            callbacks=callbacks,
            **kwargs,
        )
    return run, model


def contents(run):
    with open(run.path("metrics.csv"), encoding="utf-8") as file:
        return file.read(), sorted(os.listdir(run.path("checkpoints")))
