"""Classes of a user that have a `call` of their own."""

import keras

import tfeff


@keras.saving.register_keras_serializable("own_calls")
class Tripled(tfeff.encoders.Encoder):
    """An encoder with a `call` of its own."""

    def call(self, *args, **kwargs):
        outputs = super().call(*args, **kwargs)
        return {**outputs, "sequence_output": 3 * outputs["sequence_output"]}


@keras.saving.register_keras_serializable("own_calls")
class Halved(tfeff.tasks.Classifier):
    """A task with a `call` of its own."""

    def call(self, *args, **kwargs):
        return super().call(*args, **kwargs) / 2
