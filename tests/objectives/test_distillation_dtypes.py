"""Distillation between networks of any precision."""

import keras
import numpy as np
import pytest

from tests.checks import randomize
from tests.reference import distillation as reference
from tests.subjects.distillation import arrays, make_encoder, make_inputs
from tfeff.objectives import Distillation
from tfeff.tasks import Classifier

# How far results may be from those in float64, relative to the largest of a term.
TOLERANCES = {
    "float64": 1e-12,
    "float32": 1e-5,
    "mixed_float16": 0.02,
    "mixed_bfloat16": 0.1,
}


def make_distillation(student, teacher):
    """Classifiers of the dtypes, with the same weights whatever these are."""
    encoders = make_encoder(1, dtype=student), make_encoder(2, 12, 4, dtype=teacher)
    pair = [Classifier(encoder, num_classes=3, dropout=0.0) for encoder in encoders]
    model = Distillation(*pair, layer_map=[2])
    for seed, part in enumerate((*pair, model.comparison)):
        randomize({v.path: v for v in part.variables if v.dtype != "uint32"}, seed)
    return model


def outputs_of(model, inputs):
    return {name: np.float64(x) for name, x in model(inputs).items()}


@pytest.fixture(scope="module")
def exact():
    model = make_distillation("float64", "float64")
    return model, outputs_of(model, make_inputs(4)[0])


def test_in_float64_by_the_equations(exact):
    model, outputs = exact
    assert all(x.dtype == "float64" for x in model(make_inputs(4)[0]).values())
    inputs, visible = make_inputs(4)
    encoders = model.student.encoder, model.teacher.encoder
    (x_s, a_s), (x_t, a_t) = (arrays(e, inputs, "scores") for e in encoders)
    w_e, w_h = (
        np.float64(projection.kernel)
        for projection in (
            model.comparison.embedding_projection,
            model.comparison.hidden_projection,
        )
    )
    tokens = visible.sum(axis=1)
    for name, weights, expected in (
        ("embedding", tokens, reference.state_loss(x_s[0], x_t[0], w_e, visible)),
        ("hidden", tokens, reference.state_loss(x_s[1], x_t[2], w_h, visible)),
        ("attention", tokens**2, reference.map_loss(a_s[0], a_t[1], visible)),
    ):
        mean = (outputs[name] * weights).sum() / weights.sum()
        assert mean == pytest.approx(expected, rel=1e-12), name


@pytest.mark.parametrize(
    ("student", "teacher"),
    [
        pair
        if pair in (("float32", "float64"), ("mixed_float16", "mixed_bfloat16"))
        else pytest.param(*pair, marks=pytest.mark.slow)
        for pair in ((s, t) for s in TOLERANCES for t in TOLERANCES)
    ],
)
def test_any_two_precisions(student, teacher, exact):
    model = make_distillation(student, teacher)
    inputs, visible = make_inputs(4)
    tolerance = max(TOLERANCES[student], TOLERANCES[teacher])
    expected = exact[1]
    assert set(expected) == {"embedding", "hidden", "attention", "prediction"}
    for name, values in outputs_of(model, inputs).items():
        error = np.abs(values - expected[name]).max()
        assert error <= tolerance * np.abs(expected[name]).max(), name

    # Without a scale of the loss: a first step that overflows would be skipped.
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(1e-3), initial_scale=1.0
    )
    model.compile(optimizer=optimizer, run_eagerly=True)
    before = [np.array(w) for w in model.trainable_weights]
    teachers = [np.array(w) for w in model.teacher.weights]
    logs = model.train_on_batch(inputs, np.zeros(4), return_dict=True)
    tokens, rows = visible.sum(axis=1), visible.any(axis=1)
    weights = {"attention": tokens**2, "prediction": rows}
    loss = sum(
        np.average(x, weights=weights.get(name, tokens)) for name, x in expected.items()
    )
    assert logs["loss"] == pytest.approx(loss, rel=max(tolerance, 1e-6))
    after = [np.array(w) for w in model.trainable_weights]
    assert all(np.isfinite(array).all() for array in after)
    assert not all(np.array_equal(*pair) for pair in zip(before, after))
    for weight, value in zip(model.teacher.weights, teachers):
        np.testing.assert_array_equal(weight, value)
