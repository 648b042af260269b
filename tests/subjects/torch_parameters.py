"""Checks that PyTorch knows all weights of encoders, objectives and tasks, each once.

KERAS_BACKEND=torch python -m tests.subjects.torch_parameters
"""

import keras
import numpy as np
import torch

from tests.subjects import objectives
from tfeff.tasks import Classifier


class Beside(torch.nn.Module):
    """A module of PyTorch with an encoder in it."""

    def __init__(self):
        super().__init__()
        self.encoder = objectives.make_encoder()
        self.weights = self.encoder.weights


class Two(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = objectives.make_encoder(), objectives.make_encoder()

    def call(self, inputs):
        outputs = self.first(inputs), self.second(inputs)
        return outputs[0]["sequence_output"] - outputs[1]["sequence_output"]


def adapted():
    model = Classifier(objectives.make_encoder(), 3)
    model.encoder.enable_lora(2)
    return model


MODELS = {
    "encoder": objectives.make_encoder,
    "shared": lambda: objectives.make_encoder(num_layers=2, sharing="all"),
    "masked_lm": lambda: objectives.make_model("masked_lm"),
    "replaced_token": lambda: objectives.make_model("replaced_token"),
    "classifier": lambda: Classifier(objectives.make_encoder(), 3),
    "adapted": adapted,
    "beside": Beside,
    "two": Two,
}


def made(make):
    model = make()
    if isinstance(model, Two):
        model({name: np.ones((2, 5), "int32") for name in model.first.input})
    return model


def check(make):
    model, other = made(make), made(make)
    parameters = [id(x) for x in model.parameters()]
    assert len(parameters) == len(set(parameters))
    assert {id(weight.value) for weight in model.weights} <= set(parameters)
    names = [name for name, _ in model.named_parameters()]
    assert len(names) == len(set(names)) == len(parameters)
    assert names == [name for name, _ in model.named_parameters()]

    for weight in model.weights:
        weight.assign(
            np.random.default_rng(len(weight.shape)).normal(size=weight.shape)
        )
    result = other.load_state_dict(model.state_dict())
    assert not result.missing_keys and not result.unexpected_keys
    for weight, same in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(
            *(keras.ops.convert_to_numpy(x) for x in (weight, same))
        )


if __name__ == "__main__":
    for name, make in MODELS.items():
        try:
            check(make)
        except Exception as error:
            raise AssertionError(name) from error
