"""No weight begins with the numbers of another: each has an initializer of its own."""

import functools

import keras
import numpy as np
import pytest

import tfeff
from tests.subjects.encoders import tiny


def around(make, *arguments):
    return make(tiny("bert_tiny"), *arguments)


def models():
    """Functions that make a model, by name."""
    yield from (
        (preset, functools.partial(tiny, preset)) for preset in tfeff.encoders.presets()
    )
    for name in tfeff.objectives.names():
        yield name, functools.partial(around, tfeff.objectives.get(name).make_model)
    for task, *arguments in (
        (tfeff.tasks.Classifier, 8),
        (tfeff.tasks.Regressor,),
        (tfeff.tasks.MultipleChoice,),
        (tfeff.tasks.TokenClassifier, 8),
        (tfeff.tasks.SpanQA,),
        (tfeff.tasks.SentenceEmbedding, "layerwise"),
        (tfeff.encoders.EncoderTextClassifier, 8),
        (tfeff.encoders.EncoderMaskedLM,),
    ):
        yield task.__name__, functools.partial(around, task, *arguments)


MODELS = dict(models())


@pytest.mark.quick("shatter_base", "EncoderTextClassifier", "replaced_token")
@pytest.mark.parametrize("name", MODELS)
def test_no_weight_begins_as_another(name):
    model, begins = MODELS[name](), {}
    for variable in model.weights:
        numbers = keras.ops.convert_to_numpy(variable).ravel()
        if variable.dtype != "float32" or np.ptp(numbers) == 0 or numbers.size < 4:
            continue
        # An initializer that is used again may give another shape.
        same = begins.setdefault(tuple(numbers[:4]), variable.path)
        assert same == variable.path, (same, variable.path)
    assert begins
