"""Distillation's weights, and its losses for each kind of model, by the equations."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close, check_gradients, check_two_replicas, randomize
from tests.reference import distillation as reference
from tests.reference.objectives import cross_entropies
from tests.subjects.batches import VOCABULARY_SIZE
from tests.subjects.distillation import arrays, make_encoder, make_inputs
from tfeff.objectives import Distillation, MaskedLM
from tfeff.objectives.distillation import losses
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SpanQA,
    TokenClassifier,
)

NO_LAYERS = {"attention": None, "hidden": False, "embedding": False}
WEIGHTS = np.array([0.5, 2.0, 1.0, 1.5])
TEMPERATURES = [
    ("both", {"student_by": 2.0, "teacher_by": 2.0}),
    ("student", {"student_by": 2.0}),
]


def random(*models):
    for seed, model in enumerate(models):
        weights = [w for w in model.weights if w.dtype != "uint32"]
        randomize({w.path: w for w in weights}, seed)


def make_pair(make, dtype="float64", **sizes):
    """Models around a student of 2 layers and a teacher of 3."""
    encoders = make_encoder(2, dtype=dtype), make_encoder(3, 12, 4, dtype=dtype)
    if sizes:
        encoders = (encoders[0], make_encoder(3, dtype=dtype, **sizes))
    pair = [make(encoder) for encoder in encoders]
    random(*pair)
    return pair


def make_batch(kind, batch_size=4):
    """Inputs, labels, weights: ragged rows, one of a token and one of none."""
    inputs, visible = make_inputs(batch_size)
    rng = np.random.default_rng(1)
    weights = WEIGHTS[:batch_size] * visible.any(axis=1)
    if kind == "masked_lm":
        positions = rng.integers(0, 7, (batch_size, 3)).astype("int32")
        labels = rng.integers(5, VOCABULARY_SIZE, positions.shape)
        weights = weights[:, None] * [1.0, 0.0, 1.0]
        return inputs | {"mask_positions": positions}, labels, weights
    if kind == "spans":
        # A question, and a passage that the last [SEP] ends.
        inputs["segment_ids"] = (visible & (np.arange(7) > 1)).astype("int32")
        labels = {"start": np.array([2, 0, 0, 2]), "end": np.array([3, 0, 0, 2])}
        return inputs, labels, {"start": weights, "end": weights}
    if kind == "choice":
        inputs = {name: np.stack([x, x[::-1]], 1) for name, x in inputs.items()}
        return inputs, np.array([1, 0, 0, 1]), WEIGHTS
    if kind == "ratings":
        return inputs, np.array([0.5, 2.0, 0.0, 3.0]), weights
    if kind == "tokens":  # The last piece of each row has no label.
        labels = rng.integers(0, 3, visible.shape)
        has_label = visible & np.roll(visible, -1, axis=1)
        return inputs, labels, weights[:, None] * has_label
    return inputs, np.array([0, 2, 0, 1]), weights


MAKE = {
    "masked_lm": MaskedLM,
    "spans": SpanQA,
    "choice": lambda encoder: MultipleChoice(encoder, dropout=0.0),
    "ratings": lambda encoder: Regressor(encoder, dropout=0.0),
    "classes": lambda encoder: Classifier(encoder, 3, dropout=0.0),
    "tokens": lambda encoder: TokenClassifier(encoder, 3, dropout=0.0),
}


def literal_terms(kind, students, teachers, labels, weights, temperatures):
    """The losses of predictions and of labels."""
    if kind in ("masked_lm", "tokens"):
        total, count = cross_entropies(students, labels, weights)
        value = reference.masked_tokens_loss(
            students, teachers, weights, **temperatures
        )
        return value, total / count
    if kind == "spans":
        sides = list(students.values()), list(teachers.values())
        weights = weights["start"]
        sums = [cross_entropies(students[k], labels[k], weights) for k in labels]
        value = reference.spans_loss(*sides, weights, **temperatures)
        return value, sum(total / count for total, count in sums) / 2
    if kind == "ratings":
        value = reference.ratings_loss(students, teachers, weights)
        return value, reference.ratings_loss(students, labels, weights)
    total, count = cross_entropies(students, labels, weights)
    by = [temperatures.get(f"{name}_by", 1.0) for name in ("student", "teacher")]
    value = reference.prediction_loss(students, teachers, weights, *by)
    return value, total / count


def as_tensors(*parts):
    return tf.nest.map_structure(tf.constant, parts)


def terms_of(model, batch):
    """The terms as `fit` differentiates them, and as it reports them."""
    model.compile(run_eagerly=True)
    logs = model.test_on_batch(*batch, return_dict=True)
    x, y, weights = as_tensors(*batch)
    loss = model.compute_loss(x, y, model(x), weights)
    assert float(loss) == pytest.approx(logs["loss"], rel=1e-6)
    return {name.removesuffix("_loss"): value for name, value in logs.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "soften", "temperatures"),
    [(kind, *case) for kind in MAKE for case in TEMPERATURES],
)
def test_predictions_and_labels_of_every_kind_of_model(kind, soften, temperatures):
    student, teacher = make_pair(MAKE[kind])
    batch = make_batch(kind)
    model = Distillation(
        student,
        teacher,
        [1, 3],
        **NO_LAYERS,
        label=True,
        temperature=2.0,
        soften=soften,
        loss_weights={"prediction": 5.0, "label": 0.25},
        layer_weights=[0, 0, 1, 2],
    )
    outputs = [
        keras.tree.map_structure(np.float64, network(as_tensors(batch[0])[0]))
        for network in (student, teacher)
    ]
    of_predictions, of_labels = literal_terms(kind, *outputs, *batch[1:], temperatures)
    found = terms_of(model, batch)
    assert found == pytest.approx(
        {
            "prediction": 10 * of_predictions,
            "label": 0.25 * of_labels,
            "loss": 10 * of_predictions + 0.25 * of_labels,
        },
        rel=1e-5,
        abs=1e-6,  # Metrics are in float32, and so are logits of options.
    )
    # Without weights every example counts the same, and every token that is real.
    equal = {
        "choice": np.ones(4),
        "classes": np.array([1, 1, 0, 1]),
        "tokens": batch[0]["padding_mask"],
    }
    if kind in equal:
        of_predictions, _ = literal_terms(
            kind, *outputs, batch[1], equal[kind], temperatures
        )
        logs = model.test_on_batch(*batch[:2], return_dict=True)
        expected = pytest.approx(10 * of_predictions, rel=1e-5, abs=1e-6)
        assert logs["prediction_loss"] == expected


@pytest.mark.parametrize(("soften", "temperatures"), TEMPERATURES)
@pytest.mark.parametrize("kind", ["classes", "masked_lm", "spans", "ratings"])
def test_gradients_of_predictions(kind, soften, temperatures):
    rng = np.random.default_rng(0)
    shape = {"masked_lm": (2, 3, 4), "ratings": (5,)}.get(kind, (3, 4))
    if kind == "spans":
        names = ("start", "end")
        student, teacher = (
            {n: rng.normal(size=shape) for n in names} for _ in range(2)
        )

        def literal(logits):
            return np.stack(
                [
                    [
                        reference.divergence(*pair, **temperatures)
                        for pair in zip(logits[name], teacher[name])
                    ]
                    for name in names
                ],
                axis=-1,
            )

        def call(**logits):
            return losses.prediction_divergence(
                logits, as_tensors(teacher)[0], 2.0, soften
            )

        check_gradients(call, literal, {}, student)
        return
    teacher, scale = rng.normal(size=shape), 0.25  # That of ratings alone.

    def literal(logits):
        logits = logits["z"]
        if kind == "ratings":
            return ((logits - teacher) / scale) ** 2
        values = np.zeros(shape[:-1])
        for index in np.ndindex(values.shape):
            pair = logits[index], teacher[index]
            values[index] = reference.divergence(*pair, **temperatures)
        return values

    def call(z):
        teachers = tf.constant(teacher)
        return losses.prediction_divergence(z, teachers, 2.0, soften, scale)

    check_gradients(call, literal, {}, {"z": rng.normal(size=shape)})


def test_gradients_of_layers():
    rng = np.random.default_rng(0)
    states = {name: rng.normal(size=(3, 4, 5)) for name in ("student", "teacher")}
    visible = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]], bool)
    check_gradients(
        lambda student, teacher: tf.reduce_sum(
            losses.cosine_distances(student, teacher, visible)
        ),
        lambda a: (
            reference.cosine_loss(a["student"], a["teacher"], visible) * visible.sum()
        ),
        {},
        states,
    )
    check_gradients(
        lambda student, teacher: tf.reduce_sum(
            losses.state_squares(student, teacher, visible, average=True)
        ),
        lambda a: (
            reference.state_loss(a["student"], a["teacher"], None, visible)
            * visible.sum()
        ),
        {},
        states,
    )
    maps = {"student": rng.normal(size=(3, 2, 4, 4)), "teacher": np.ones((3, 4, 4, 4))}
    check_gradients(
        lambda student, teacher: tf.reduce_sum(
            losses.map_squares(student, teacher, visible)
        ),
        lambda a: (
            reference.map_loss(a["student"], a["teacher"], visible, summed=True)
            * len(visible)
        ),
        {},
        maps,
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(dtype):
    """Inputs are rounded; what is computed of them is in float32."""
    rng = np.random.default_rng(0)
    visible = np.array([[1, 1, 1], [1, 0, 0]], bool)
    pair = [tf.cast(rng.normal(size=(2, 3, 4)), dtype) for _ in range(2)]
    exact = [np.float64(x) for x in pair]
    cosines = losses.cosine_distances(*pair, visible)
    assert cosines.dtype == "float32"
    expected = reference.cosine_loss(*exact, visible) * visible.sum()
    assert float(tf.reduce_sum(cosines)) == pytest.approx(expected, rel=1e-5)
    tokens = losses.prediction_divergence(*pair, 2.0, "both")
    weights = np.ones((2, 3))
    expected = reference.masked_tokens_loss(*exact, weights, **TEMPERATURES[0][1])
    assert float(tf.reduce_mean(tokens)) == pytest.approx(expected, rel=1e-5)


LAYER_WEIGHTS = [0.5, 2.0, 0.25, 1.0]


@pytest.mark.quick("mean")
@pytest.mark.parametrize("reduction", ["mean", "sum_squares"])
def test_weights_of_layers_and_losses(reduction):
    student, teacher = make_pair(lambda encoder: encoder)
    model = Distillation(
        student,
        teacher,
        [1, 3],
        "probabilities",
        reduction=reduction,
        layer_weights=LAYER_WEIGHTS,
        loss_weights={"hidden": 3.0, "attention": 0.1},
    )
    random(model.comparison)
    inputs, visible = make_inputs(4)
    (x_s, a_s), (x_t, a_t) = (
        arrays(encoder, inputs, "probabilities") for encoder in (student, teacher)
    )
    w_e, w_h = (
        np.float64(projection.kernel)
        for projection in (
            model.comparison.embedding_projection,
            model.comparison.hidden_projection,
        )
    )
    summed = reduction == "sum_squares"

    def hidden(m, n):
        return reference.state_loss(x_s[m], x_t[n], w_h, visible, summed)

    def attention(m, n):
        return reference.map_loss(a_s[m - 1], a_t[n - 1], visible, summed)

    embedding = reference.state_loss(x_s[0], x_t[0], w_e, visible, summed)
    expected = {
        "embedding": 0.5 * embedding,
        "hidden": 3.0 * (2.0 * hidden(1, 1) + 0.25 * hidden(2, 3)),
        "attention": 0.1 * (2.0 * attention(1, 1) + 0.25 * attention(2, 3)),
    }
    expected["loss"] = sum(expected.values())
    batch = (inputs, np.zeros(4), np.ones(4))
    assert terms_of(model, batch) == pytest.approx(expected, rel=1e-5)

    # What both projections learn.
    x = as_tensors(inputs)[0]
    kernels = [w for w in model.trainable_variables if "projection" in w.path]
    with tf.GradientTape() as tape:
        loss = model.compute_loss(x, y_pred=model(x))
    gradients = tape.gradient(loss, [w.value for w in kernels])
    for gradient, kernel, pairs in zip(
        gradients,
        (w_e, w_h),
        ([(0.5, 0, 0)], [(6.0, 1, 1), (0.75, 2, 3)]),
        strict=True,
    ):
        literal = np.zeros_like(kernel)
        for weight, m, n in pairs:
            difference = x_s[m][visible] @ kernel - x_t[n][visible]
            count = 3 if summed else difference.size
            literal += weight * 2 * x_s[m][visible].T @ difference / count
        assert_close(gradient, literal, 1e-6)  # The mean is in float32.


@pytest.mark.slow
def test_options_of_questions_are_compared_layer_by_layer():
    """As sequences of their own, whose weights are those of the question."""
    student, teacher = make_pair(MAKE["choice"])
    batch = make_batch("choice")
    model = Distillation(student, teacher, [1, 3], loss_weights={"prediction": 0})
    assert model.comparison.terms == ["embedding", "hidden", "attention"]
    alone = Distillation(student.encoder, teacher.encoder, [1, 3])
    for name in ("embedding_projection", "hidden_projection"):
        one, other = (getattr(m.comparison, name).kernel for m in (model, alone))
        one.assign(other)
    rows = {name: x.reshape(-1, 7) for name, x in batch[0].items()}
    found, expected = model(as_tensors(batch[0])[0]), alone(as_tensors(rows)[0])
    for name, value in expected.items():
        assert_close(found[name], np.reshape(value, (4, 2)), 1e-12, name)
    logs = terms_of(model, batch)
    tokens = (batch[0]["padding_mask"] != 0).sum(axis=-1)
    for name, count in (("hidden", tokens), ("attention", tokens**2)):
        weights = count * WEIGHTS[:, None]
        mean = np.average(np.asarray(found[name]), weights=weights)
        assert logs[name] == pytest.approx(mean, rel=1e-6)


@pytest.mark.slow
def test_directions_of_the_last_states():
    student, teacher = make_pair(lambda encoder: encoder, hidden_dim=8, num_heads=2)
    only = {"attention": None, "hidden": False, "embedding": False}
    model = Distillation(student, teacher, [1, 3], cosine=True, **only)
    inputs, visible = make_inputs(4)
    states = [
        arrays(encoder, inputs, "scores")[0][-1] for encoder in (student, teacher)
    ]
    expected = reference.cosine_loss(*states, visible)
    found = terms_of(model, (inputs, np.zeros(4), np.ones(4)))
    assert found == pytest.approx({"cosine": expected, "loss": expected}, rel=1e-6)
    longer = {name: np.pad(x, ((0, 1), (0, 3))) for name, x in inputs.items()}
    found = terms_of(model, (longer, np.zeros(5), np.ones(5)))
    assert found["cosine"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_a_weight_of_0_leaves_a_loss_out():
    pair = make_pair(MAKE["classes"], dtype="float32")
    for arguments, left in (
        ({"loss_weights": {"embedding": 0}}, ["hidden", "attention", "prediction"]),
        ({"layer_weights": [0, 0, 0, 1]}, ["prediction"]),
        ({"layer_weights": [1, 0, 0, 0]}, ["embedding"]),
        ({"layer_weights": [0, 0, 1, 0]}, ["hidden", "attention"]),
        ({"loss_weights": {"attention": 0, "hidden": 0}}, ["embedding", "prediction"]),
    ):
        model = Distillation(*pair, layer_map=[1, 3], **arguments)
        assert model.comparison.terms == left
    # A mixed layer has no map, which does not matter here.
    mixed = make_encoder(2, attention={"name": "mixed", "kernel_size": 3})
    Distillation(mixed, make_encoder(2), loss_weights={"attention": 0.0})


@pytest.mark.slow
def test_weights_that_do_not_fit_are_named():
    encoders = make_encoder(2), make_encoder(2, 12, 4)
    tasks = [Classifier(encoder, 2) for encoder in encoders]
    for error, message, pair, arguments in (
        (ValueError, "`loss_weights` must have numbers", encoders, {"hidden": -1}),
        (ValueError, "`loss_weights` must have numbers", encoders, {"hidden": np.inf}),
        (TypeError, "`loss_weights` must have numbers", encoders, {"hidden": "1"}),
        (ValueError, "one of .*'hiden'.*Did you mean", encoders, {"hiden": 1}),
        (ValueError, "`loss_weights` must be one of", encoders, {"prediction": 1}),
        (
            ValueError,
            "`loss_weights` must have a weight above 0",
            encoders,
            dict.fromkeys(("hidden", "attention", "embedding"), 0),
        ),
        (ValueError, "one entry for the embedding.*2 layers", tasks, [1, 1, 1]),
        (ValueError, "`layer_weights` must have numbers", tasks, [1, -1, 1, 1]),
        (ValueError, "`layer_weights` must have numbers", tasks, [1, np.nan, 1, 1]),
        (ValueError, "`layer_weights` must have one above 0", tasks, [0, 0, 0, 0]),
        (TypeError, "`layer_weights` must be a list", tasks, "1111"),
        (ValueError, "`layer_weights`.*layer_weights=.0.0", encoders, [0, 0, 0, 1]),
    ):
        name = "loss_weights" if isinstance(arguments, dict) else "layer_weights"
        with pytest.raises(error, match=message):
            Distillation(*pair, **{name: arguments})
    for message, pair, arguments in (
        ("`cosine` must be False.*8 in the student, 12", encoders, {"cosine": True}),
        ("`label` must be False for encoders", encoders, {"label": True}),
        (
            r"ratings \[B\]",
            (tasks[0], Regressor(encoders[1])),
            {"prediction": True},
        ),
        (r"\[B, T\]", (SpanQA(encoders[0]), tasks[1]), {}),
    ):
        with pytest.raises(ValueError, match=message):
            Distillation(*pair, **arguments)


@pytest.mark.slow
def test_a_saved_model_keeps_its_weights(tmp_path):
    pair = make_pair(MAKE["masked_lm"], dtype="float32")
    arguments = {
        "layer_weights": LAYER_WEIGHTS,
        "loss_weights": {"prediction": 20.0, "label": 2.0},
        "label": True,
    }
    model = Distillation(*pair, layer_map=[1, 3], **arguments)
    model.compile(optimizer=tfeff.training.adamw(1e-3, 2, 40))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.settings == model.settings
    batch = make_batch("masked_lm")
    histories = [
        [m.train_on_batch(*batch, return_dict=True) for _ in range(2)]
        for m in (model, loaded)
    ]
    assert histories[0] == histories[1]


@pytest.mark.slow
def test_models_of_before_there_were_weights_load():
    config = Distillation(*make_pair(MAKE["classes"]), layer_map=[1, 3]).get_config()
    for name in ("cosine", "label", "loss_weights", "layer_weights"):
        config.pop(name)
    assert Distillation.from_config(config).settings["layer_weights"] is None


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["masked_lm", "spans", "choice"])
def test_parts_and_replicas_and_xla_train_as_one(kind):
    def make_model(**compiled):
        pair = make_pair(MAKE[kind], dtype="float32", hidden_dim=8, num_heads=2)
        model = Distillation(*pair, layer_map=[1, 3], label=True, cosine=True)
        optimizer = tfeff.training.adamw(1e-3, 1, 10, global_clipnorm=0.1)
        model.compile(optimizer=optimizer, **compiled)
        return model

    batch = as_tensors(*make_batch(kind))
    batch = tf.nest.map_structure(
        lambda x: tf.cast(x, "float32") if x.dtype == tf.float64 else x, batch
    )
    data = tf.data.Dataset.from_tensors(tuple(batch)).repeat(4)
    single, _ = check_two_replicas(make_model, data, steps=4)
    for compiled in ({"accumulation_steps": 2}, {"jit_compile": True}):
        other = make_model(**compiled)
        other.fit(data, shuffle=False, verbose=0)
        for one, two in zip(single.get_weights(), other.get_weights()):
            np.testing.assert_allclose(two, one, rtol=0, atol=2e-5)
