"""What is reported counts every target alike, however wide the batches are."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import randomize
from tests.subjects.objectives import (
    KINDS,
    VOCABULARY_SIZE,
    arrays,
    batches,
    make_encoder,
    make_model,
)
from tfeff import tasks
from tfeff.objectives import Distillation, MaskedLM

TASKS = {
    "classifier": lambda encoder: tasks.Classifier(encoder, 3),
    "regressor": tasks.Regressor,
    "choice": tasks.MultipleChoice,
    "span": tasks.SpanQA,
    "tokens": lambda encoder: tasks.TokenClassifier(encoder, 3),
    "embedding": tasks.SentenceEmbedding,
}
# Sequences, and targets in each.
WIDTHS = ((6, 2), (15, 7))


def batch_of(kind, length, masks):
    """A batch of an objective or task, and the weight of all targets of each output."""
    if kind in KINDS:
        batch = arrays(next(iter(batches(kind, 1, length=length, masks=masks))))
        x, y, weights = batch
        if not isinstance(y, dict):
            if kind != "replaced_token":
                return batch, {"": weights.sum()}
            real = x["padding_mask"].sum()
            return batch, {"masked_lm": weights.sum(), "replaced": real}
        counts = {name: weight.sum() for name, weight in weights.items()}
        return batch, counts if len(y) > 1 else {"": counts["sentence"]}
    rng = np.random.default_rng(length)
    shape = (4, 2, length) if kind in ("choice", "embedding") else (4, length)
    ids = rng.integers(5, VOCABULARY_SIZE, shape).astype("int32")
    x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": np.ones_like(ids)}
    weights = rng.random(4).astype("float32")
    names = ("start", "end") if kind == "span" else ("",)
    counts = dict.fromkeys(names, weights.sum())
    if kind == "tokens":
        weights = (rng.random(shape) < 0.5).astype("float32")
        y, counts = rng.integers(0, 3, shape).astype("int32"), {"": weights.sum()}
    elif kind == "embedding":
        y = np.arange(8, dtype="int32").reshape(4, 2)
    elif kind == "span":
        y = dict.fromkeys(("start", "end"), np.zeros(4, "int32"))
    else:
        y = rng.integers(0, 2, 4).astype("int32")
        y = y.astype("float32") if kind == "regressor" else y
    return (x, y, weights), counts


def logs_of(model, *batches):
    """What is reported of batches that follow on each other."""
    first, *others = map(tf.data.Dataset.from_tensors, batches)
    for other in others:
        first = first.concatenate(other)
    return model.evaluate(first, verbose=0, return_dict=True)


def check(model, kind):
    (one, ones), (two, twos) = (batch_of(kind, *widths) for widths in WIDTHS)
    seeds = [v for v in model.variables if v.path.endswith("seed_generator_state")]
    states = [seed.numpy() for seed in seeds]
    first, second = logs_of(model, one), logs_of(model, two)
    for seed, state in zip(seeds, states, strict=True):
        seed.assign(state)
    both = logs_of(model, one, two)
    counted = set()
    for name, value in both.items():
        output = "" if name in ("loss", "accuracy") else name.rpartition("_")[0]
        if output in ones and name.endswith(("loss", "accuracy")):
            total = first[name] * ones[output] + second[name] * twos[output]
            expected = total / (ones[output] + twos[output])
            assert value == pytest.approx(expected, rel=1e-5), name
            counted.add(name)
    assert counted


def spread(model):
    """Weights by which batches have other losses than each other."""
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.3)
    return model


@pytest.mark.quick("masked_lm")
@pytest.mark.parametrize("kind", KINDS)
def test_objectives(kind):
    check(spread(make_model(kind)), kind)


@pytest.mark.quick("classifier")
@pytest.mark.parametrize("kind", TASKS)
def test_tasks(kind):
    model = spread(TASKS[kind](make_encoder(dropout=0.0)))
    model.compile()
    check(model, kind)


@pytest.mark.slow
def test_distillation():
    student, teacher = (spread(MaskedLM(make_encoder())) for _ in range(2))
    model = Distillation(student, teacher, attention=None, label=True)
    spread(student)
    model.compile()
    (one, ones), (two, twos) = (batch_of("masked_lm", *w) for w in WIDTHS)
    first, second, both = (logs_of(model, *p) for p in ((one,), (two,), (one, two)))
    for name in ("prediction_loss", "label_loss"):
        total = first[name] * ones[""] + second[name] * twos[""]
        assert both[name] == pytest.approx(total / (ones[""] + twos[""]), rel=1e-5)


def test_metrics_of_a_user_stay_as_they_are(tmp_path):
    model = tfeff.tasks.TokenClassifier(make_encoder(), 3)
    model.compile(metrics=[keras.metrics.SparseCategoricalAccuracy(name="mine")])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_compile_config() == model.get_compile_config()


@pytest.mark.slow
def test_metrics_are_saved_by_their_names(tmp_path):
    model = spread(tfeff.tasks.TokenClassifier(make_encoder(), 3))
    model.compile()
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_compile_config() == model.get_compile_config()
    check(loaded, "tokens")
