"""Distillation: every loss against its literal form, the map of layers, saving."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.checks import assert_close, check_two_replicas, randomize
from tests.checks.replicas import two_replicas
from tests.reference import distillation as reference
from tests.subjects.batches import masked_lm_batches
from tests.subjects.distillation import arrays, make_encoder, make_inputs
from tfeff.encoders import register_attention
from tfeff.layers import SelfAttention
from tfeff.objectives import (
    Distillation,
    MaskedLM,
    PermutationLM,
    ReplacedTokenDetection,
    SentencePairPrediction,
    common_maps,
    generator_for,
)
from tfeff.objectives.distillation.layer_map import make_layer_map
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SentenceEmbedding,
    SpanQA,
    TokenClassifier,
)

TERMS = ("embedding_loss", "hidden_loss", "attention_loss", "prediction_loss")


def make_pair(**kwargs):
    """A student of one layer and 2 heads, a teacher of two layers and 4 heads."""
    student, teacher = make_encoder(1), make_encoder(2, 12, 4)
    for seed, encoder in enumerate((student, teacher)):
        randomize({v.path: v for v in encoder.trainable_variables}, seed)
    return student, teacher


def evaluated(model, inputs, weights=None, labels=None):
    """The terms of the loss for one batch, by name, and the loss."""
    model.compile(run_eagerly=True)
    labels = np.zeros(len(inputs["token_ids"])) if labels is None else labels
    data = (inputs, labels) if weights is None else (inputs, labels, weights)
    dataset = tf.data.Dataset.from_tensors(data)
    logs = model.evaluate(dataset, verbose=0, return_dict=True)
    return {name: float(value) for name, value in logs.items()}


@pytest.mark.parametrize(
    ("attention", "reduction"), [("scores", "mean"), ("probabilities", "sum_squares")]
)
def test_losses_of_layers(attention, reduction):
    student, teacher = make_pair()
    model = Distillation(student, teacher, [2], attention, reduction=reduction)
    inputs, visible = make_inputs(4)
    (x_s, a_s), (x_t, a_t) = (arrays(e, inputs, attention) for e in (student, teacher))
    w_e = np.float64(model.comparison.embedding_projection.kernel)
    w_h = np.float64(model.comparison.hidden_projection.kernel)
    summed = reduction == "sum_squares"
    expected = {
        "embedding_loss": reference.state_loss(x_s[0], x_t[0], w_e, visible, summed),
        "hidden_loss": reference.state_loss(x_s[1], x_t[2], w_h, visible, summed),
        "attention_loss": reference.map_loss(a_s[0], a_t[1], visible, summed),
    }
    expected["loss"] = sum(expected.values())
    logs = evaluated(model, inputs)
    assert set(logs) == set(expected)
    for name, value in expected.items():
        assert logs[name] == pytest.approx(value, rel=1e-5), name
    # What `fit` differentiates is what is reported.
    loss = model.compute_loss(inputs, y_pred=model(inputs))
    assert float(loss) == pytest.approx(expected["loss"], rel=1e-5)

    if attention == "scores":
        longer = {name: np.pad(x, ((0, 1), (0, 3))) for name, x in inputs.items()}
        for name, value in evaluated(model, longer).items():
            assert value == pytest.approx(logs[name], rel=1e-5), name


@pytest.mark.slow
def test_reported_terms_are_means_over_all_tokens():
    """Batches of few tokens must not weigh as much as others."""
    student, teacher = make_pair()
    model = Distillation(student, teacher)
    model.compile(run_eagerly=True)
    batches = masked_lm_batches(batches=3).map(lambda inputs, *_: inputs)
    logs, whole = (
        model.evaluate(data, verbose=0, return_dict=True)
        for data in (batches, batches.unbatch().batch(12))
    )
    assert logs == pytest.approx(whole, rel=1e-5)


@pytest.mark.slow
def test_predictions_and_weights_of_examples():
    student, teacher = (Classifier(e, 3, dropout=0.0) for e in make_pair())
    for network, seed in ((student, 2), (teacher, 3)):
        randomize({v.path: v for v in network.trainable_variables}, seed)
        network.compile()  # As one that was fine-tuned: with metrics of its own.
    inputs, _ = make_inputs(2)
    weights = np.array([0.5, 2.0], "float32")
    logits = [np.float64(network(inputs)) for network in (student, teacher)]
    only = {"attention": None, "hidden": False, "embedding": False}
    for soften, teacher_by in (("both", 2.0), ("student", 1.0)):
        model = Distillation(student, teacher, temperature=2.0, soften=soften, **only)
        expected = reference.prediction_loss(*logits, weights, 2.0, teacher_by)
        logs = evaluated(model, inputs, weights)
        assert logs == pytest.approx(
            {"prediction_loss": expected, "loss": expected}, rel=1e-5
        )


@pytest.mark.slow
def test_ratings_are_compared_in_units_of_the_student_s_scale():
    found = []
    for scale in (1.0, 1e-3):
        student, teacher = (
            Regressor(e, dropout=0.0, scale=scale, offset=5.0) for e in make_pair()
        )
        for seed, model in enumerate((student, teacher)):
            randomize({v.path: v for v in model.trainable_variables}, seed)
        model = Distillation(student, teacher)
        found.append(evaluated(model, make_inputs(4)[0])["prediction_loss"])
    assert found[0] > 1e-3
    np.testing.assert_allclose(found[1], found[0], rtol=1e-3)


def test_ratings_differ_by_their_squares():
    student, teacher = (Regressor(e, dropout=0.0) for e in make_pair())
    model = Distillation(student, teacher)
    inputs, _ = make_inputs(2)
    difference = np.float64(student(inputs)) - np.float64(teacher(inputs))
    logs = evaluated(model, inputs)
    assert logs["prediction_loss"] == pytest.approx(np.mean(difference**2), rel=1e-4)
    assert set(logs) == {*TERMS, "loss"}


@pytest.mark.slow
def test_labels_in_a_column():
    for make in (lambda e: Regressor(e, dropout=0.0), lambda e: Classifier(e, 2)):
        student, teacher = map(make, make_pair())
        model = Distillation(student, teacher, label=True)
        inputs, _ = make_inputs(2)
        labels, weights = np.array([1, 0]), np.array([0.5, 2.0], "float32")
        vector, column = (
            evaluated(model, inputs, weights, y) for y in (labels, labels[:, None])
        )
        assert vector == column


@pytest.mark.slow
def test_a_copy_of_the_teacher_has_no_loss_and_stays_one():
    teacher = Classifier(make_encoder(2, 12, 4), 2, dropout=0.0)
    randomize({v.path: v for v in teacher.trainable_variables})
    student = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(teacher)
    )
    student.set_weights(teacher.get_weights())
    model = Distillation(student, teacher)
    inputs, _ = make_inputs(4)
    assert all(np.all(x == 0) for x in model(inputs, training=True).values())
    model.compile(optimizer=keras.optimizers.SGD(0.1), run_eagerly=True)
    data = tf.data.Dataset.from_tensors((inputs, np.zeros(4))).repeat(3)
    history = model.fit(data, verbose=0).history
    assert set(history) == {*TERMS, "loss"}
    # The gradient of predictions is q Σp - p, where Σp is 1 up to rounding.
    assert all(abs(values[-1]) < 1e-6 for values in history.values()), history
    for one, two in zip(student.get_weights(), teacher.get_weights()):
        np.testing.assert_allclose(one, two, atol=1e-6)


@pytest.mark.slow
def test_only_the_student_learns_and_a_saved_model_goes_on(tmp_path):
    keras.utils.set_random_seed(0)
    student, teacher = make_encoder(1, dropout=0.1), make_encoder(1, 12, dropout=0.9)
    before = teacher.get_weights()
    model = Distillation(student, teacher, "top", "probabilities")
    model.compile(optimizer=tfeff.training.adamw(1e-2, 2, 60))
    own = [*student.trainable_variables, model.comparison.embedding_projection.kernel]
    own.append(model.comparison.hidden_projection.kernel)
    assert [id(v) for v in model.trainable_variables] == [id(v) for v in own]
    assert model.encoder is student and not teacher.trainable
    data = masked_lm_batches(batches=3)  # Labels and weights are not read.
    losses = model.fit(data, epochs=3, shuffle=False, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    for one, two in zip(before, teacher.get_weights()):
        np.testing.assert_array_equal(one, two)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, Distillation) and loaded.settings == model.settings
    histories = [m.fit(data, shuffle=False, verbose=0).history for m in (model, loaded)]
    assert histories[0] == histories[1]
    for one, two in zip(model.get_weights(), loaded.get_weights()):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("shape", [(4,), (4, 1)])
def test_weights_of_examples_are_read_where_both_are_encoders(shape):
    ids = np.random.default_rng(0).integers(5, 20, (4, 8))
    x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    model = Distillation(make_encoder(1), make_encoder(1))
    model.compile()
    first = sum(float(value[0]) for value in model(x).values())
    weights = np.array([1.0, 0, 0, 0]).reshape(shape)
    logs = model.evaluate(
        x, np.zeros(4), sample_weight=weights, verbose=0, return_dict=True
    )
    np.testing.assert_allclose(logs["loss"], first, rtol=1e-5)


def test_every_attention_that_has_maps_gives_them():
    """One layer of each kind; maps are those that the layer itself returns."""
    attentions = [
        "self",
        "partitioned",
        "one_head",
        {"name": "blockwise", "head_blocks": "1:1"},
        {"name": "sparse", "stride": 3, "expressivity": 1},
        {"name": "relative", "method": "rpe", "max_distance": 4},
    ]
    encoder = make_encoder(len(attentions), attention=attentions)
    inputs, visible = make_inputs(2)
    with tfeff.layers.record_layers() as recording:
        outputs = encoder(inputs)
    for index, block in enumerate(encoder.blocks):
        hidden = outputs["hidden_states"][index]
        assert_close(recording.hidden_states[index], hidden, 1e-6)
        _, scores = block.attention(hidden, visible, return_attention_scores=True)
        assert_close(recording.attention[index], scores, 1e-5, str(attentions[index]))
    softmax = [0, 1, 3, 5]
    encoder = make_encoder(4, attention=[attentions[index] for index in softmax])
    with tfeff.layers.record_layers("scores") as recording:
        encoder(inputs)
    with tfeff.layers.record_layers() as normalised:
        encoder(inputs)
    for index in (0, 2, 3):
        scores = np.asarray(recording.attention[index])
        weights = np.asarray(normalised.attention[index])
        exponentials = np.where(weights > 0, np.exp(scores), 0)
        total = exponentials.sum(axis=-1, keepdims=True)
        total[total == 0] = 1  # A block of padding alone.
        assert_close(exponentials / total, weights, 1e-5, str(index))


@pytest.mark.slow
def test_heads_are_averaged_in_groups_both_ways():
    student, teacher = make_encoder(1, 8, 4), make_encoder(1, 8, 2)
    randomize({v.path: v for v in student.trainable_variables})
    model = Distillation(student, teacher, hidden=False, embedding=False)
    inputs, visible = make_inputs(2)
    maps = [arrays(e, inputs, "scores")[1][0] for e in (student, teacher)]
    expected = reference.map_loss(*maps, visible)
    assert evaluated(model, inputs)["loss"] == pytest.approx(expected, rel=1e-5)


def test_layer_maps():
    assert make_layer_map("uniform", 4, 12) == [3, 6, 9, 12]
    assert make_layer_map("top", 4, 12) == [9, 10, 11, 12]
    assert make_layer_map("bottom", 4, 12) == [1, 2, 3, 4]
    assert make_layer_map((2, 2), 2, 3) == [2, 2]
    for wrong, message in (
        (("uniform", 4, 10), "divide"),
        (("top", 4, 3), "more layers"),
        (("middle", 2, 4), "middle"),
        (([1], 2, 4), "one entry a layer"),
        (([0, 1], 2, 4), "at least 1"),
        (([1, 5], 2, 4), "at most 4"),
    ):
        with pytest.raises(ValueError, match=message):
            make_layer_map(*wrong)


@pytest.mark.slow
def test_without_layers_to_compare_no_map_is_needed():
    student, teacher = (Classifier(make_encoder(layers), 2) for layers in (2, 3))
    model = Distillation(student, teacher, attention=None, hidden=False)
    assert model.comparison.terms == ["embedding", "prediction"]
    with pytest.raises(ValueError, match="layers must divide the teacher's"):
        Distillation(student, teacher, hidden=False)


def test_what_does_not_fit_is_named():
    student, teacher = make_encoder(1), make_encoder(2)
    mixed = make_encoder(2, attention=["self", {"name": "mixed", "kernel_size": 3}])
    one_head = make_encoder(1, attention="one_head")
    classifier = Classifier(student, 2)
    cases = [
        (TypeError, "`student`.*Dense", keras.layers.Dense(2), teacher, {}),
        (TypeError, "both", classifier, teacher, {}),
        (ValueError, "share", student, student, {}),
        (ValueError, "51", make_encoder(1, vocabulary_size=51), teacher, {}),
        (ValueError, "MixedAttention in layer 2 of the teacher", student, mixed, {}),
        (
            ValueError,
            "^`attention` must be None where .* 2 in layer 1 .* 3 in layer 1 of",
            student,
            make_encoder(1, 9, 3),
            {},
        ),
        (ValueError, '"probabilities" here: OneHead', student, one_head, {}),
        (ValueError, "`prediction`", student, teacher, {"prediction": True}),
        (
            ValueError,
            "^`student` and `teacher` must have .* classes",
            classifier,
            Classifier(teacher, 3),
            {},
        ),
        (TypeError, "^`teacher`.* inputs", classifier, MultipleChoice(teacher), {}),
        (
            ValueError,
            r"`label_names`.*Received: \('a', 'b'\).*\('b', 'a'\)",
            Classifier(student, 2, label_names=["a", "b"]),
            Classifier(teacher, 2, label_names=["b", "a"]),
            {},
        ),
        (ValueError, "`attention`.*maps", student, teacher, {"attention": "maps"}),
        (ValueError, "`temperature`", student, teacher, {"temperature": 0.0}),
        (ValueError, "`soften`", student, teacher, {"soften": "teacher"}),
        (ValueError, "`reduction`", student, teacher, {"reduction": "sum"}),
        (
            ValueError,
            "At least one",
            student,
            teacher,
            {"attention": None, "hidden": False, "embedding": False},
        ),
    ]
    for error, message, one, two, arguments in cases:
        with pytest.raises(error, match=message):
            Distillation(one, two, **arguments)
    model = Distillation(student, mixed, attention=None)
    assert model.comparison.terms == ["embedding", "hidden"]
    first, second = (
        tfeff.data.train_tokenizer([f"{word} and so on"] * 20, 13)
        for word in ("one", "two")
    )
    with pytest.raises(ValueError, match="`tokenizers`"):
        Distillation(student, teacher, tokenizers=(first, second))
    with pytest.raises(TypeError, match="`tokenizers` must be a KerasHub tokenizer"):
        Distillation(student, teacher, tokenizers=(first, 2))
    model = Distillation(student, teacher, tokenizers=(first, first))
    with pytest.raises(ValueError, match="`metrics` must not be given"):
        model.compile(metrics=["mae"])


@pytest.mark.slow
def test_the_maps_that_two_encoders_have_are_compared():
    plain, one_head, mixed = (
        make_encoder(1, attention=name) for name in ("self", "one_head", "mixed")
    )
    for student, teacher, kind in (
        (plain, make_encoder(2), "scores"),
        (plain, one_head, "probabilities"),
        (one_head, plain, "probabilities"),
        (mixed, plain, None),
    ):
        assert common_maps(student, teacher) == kind
        model = Distillation(student, teacher, attention=kind)
        assert ("attention" in model.comparison.terms) == (kind is not None)
    with pytest.raises(TypeError, match="`teacher`"):
        common_maps(plain, None)
    # Of 2 and 3 heads no groups can be averaged.
    assert common_maps(plain, make_encoder(1, 9, 3)) is None


@pytest.mark.slow
@pytest.mark.parametrize("task", [False, True])
def test_two_replicas_equal_one_device(task):
    data = masked_lm_batches()
    if task:
        weight = tf.constant([1.0, 0.0, 0.5, 2.0])
        data = data.map(lambda inputs, *_: ({**inputs}, tf.zeros(4), weight))

    def make_model():
        networks = make_encoder(1), make_encoder(2, 12, 4)
        if task:
            networks = (Classifier(e, 3, dropout=0.0) for e in networks)
        model = Distillation(*networks)
        optimizer = tfeff.training.adamw(1e-3, 5, 40, global_clipnorm=0.1)
        model.compile(optimizer=optimizer)
        return model

    single, double = check_two_replicas(make_model, data, steps=5)
    logs = [m.evaluate(data, verbose=0) for m in (single, double)]
    # Predictions of new heads hardly differ: their divergence is rounding errors.
    np.testing.assert_allclose(logs[1], logs[0], rtol=1e-4, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("jit_compile", [False, True])
def test_half_precision_trains_like_float32(jit_compile):
    losses = []
    for dtype in ("float32", "mixed_bfloat16"):
        keras.utils.set_random_seed(0)
        pair = make_encoder(1, dtype=dtype), make_encoder(2, 12, 4, dtype=dtype)
        model = Distillation(*pair)
        optimizer = tfeff.training.adamw(1e-3, 2, 40)
        model.compile(optimizer=optimizer, jit_compile=jit_compile)
        history = model.fit(masked_lm_batches(), shuffle=False, verbose=0).history
        losses.append(history["loss"])
    np.testing.assert_allclose(losses[1], losses[0], rtol=2e-2)


def replaced_token(num_layers):
    discriminator = make_encoder(num_layers)
    generator = generator_for(discriminator, 1 / 2)
    return ReplacedTokenDetection(generator, discriminator)


@pytest.mark.slow
def test_layers_of_the_encoder_alone_are_compared():
    """A replaced-token model calls a generator first, whose layers are not meant."""
    student, teacher = replaced_token(1), replaced_token(2)
    model = Distillation(
        student, teacher, layer_map="top", prediction=False, reduction="sum_squares"
    )
    inputs, _ = make_inputs()
    inputs = {**inputs, "mask_positions": np.array([[1, 2]] * 3, "int32")}
    recordings = []
    for one in (student, teacher):
        with tfeff.layers.record_layers("scores", one.encoder) as recording:
            one(inputs)
        recordings.append(recording)
    states = [recording.hidden_states for recording in recordings]
    assert [len(of_one) for of_one in states] == [2, 3]
    real = inputs["padding_mask"][..., None]
    squares = [
        ((x - y) ** 2 * real).numpy().sum() for x, y in zip(states[0], states[1][::2])
    ]
    terms = model(inputs)
    for name, value in zip(("embedding", "hidden"), squares, strict=True):
        assert_close(np.sum(terms[name]), value, 1e-5)


@pytest.mark.slow
def test_models_without_weights_for_their_predictions():
    """Their layers alone can be compared."""
    inputs, _ = make_inputs(4)
    two = {name: np.stack([x, x], axis=1) for name, x in inputs.items()}
    masked = {**inputs, "mask_positions": np.ones((4, 2), "int32")}
    of_both = {"sentence": np.array([1, 2, 0, 1.0]), "masked_lm": np.ones((4, 2))}
    for make, x, weights in (
        (SentenceEmbedding, two, np.ones(4)),
        (SentencePairPrediction, masked, of_both),
    ):
        student, teacher = (make(encoder) for encoder in make_pair())
        for terms in ({}, {"prediction": False, "label": True}):
            with pytest.raises(TypeError, match="`student` must.*mask_posi.*Received"):
                Distillation(student, teacher, **terms)
        model = Distillation(student, teacher, prediction=False)
        assert np.isfinite(evaluated(model, x, weights)["loss"])


@pytest.mark.slow
def test_a_model_whose_encoder_is_not_called():
    def model(num_layers):
        return PermutationLM(make_encoder(num_layers))

    with pytest.raises(
        TypeError, match="`student` must call its encoder.* two streams"
    ):
        Distillation(model(1), model(2))


def test_an_encoder_that_is_called_twice_is_not_recorded():
    encoder, (inputs, _) = make_encoder(), make_inputs()
    with (
        tfeff.layers.record_layers("scores", encoder),
        pytest.raises(ValueError, match="`encoder` must be called once"),
    ):
        encoder(inputs)
        encoder(inputs)
    with pytest.raises(TypeError, match="`encoder` must be a `tfeff.encoders.Enc"):
        tfeff.layers.record_layers("scores", 3).__enter__()


@tfeff.encoders.register_attention("without_maps")
class _WithoutMaps(tfeff.layers.SelfAttention):
    def call(self, hidden, padding_mask=None, training=None):
        return super().call(hidden, padding_mask, training)


def test_an_attention_without_maps():
    encoders = [make_encoder(n, attention="without_maps") for n in (1, 2)]
    assert common_maps(*encoders) is None
    with pytest.raises(ValueError, match="`attention` must be None here: _Wi"):
        Distillation(*encoders)


def logs_of(model, *batch):
    logs = model.test_on_batch(*batch, return_dict=True)
    return {name: float(value) for name, value in logs.items()}


@pytest.mark.quick("True")
@pytest.mark.parametrize("is_task", [True, False])
def test_weights_of_examples_may_be_a_column(is_task):
    """Those of terms that compare layers, too."""
    if is_task:
        networks = [Classifier(e, 3, dropout=0.0) for e in make_pair()]
        inputs, _ = make_inputs(4)
        labels = np.array([0, 1, 2, 1])
    else:
        networks = [MaskedLM(e) for e in make_pair()]
        inputs, labels, _ = next(masked_lm_batches(batches=1).as_numpy_iterator())
    model = Distillation(*networks, label=True)
    weights = np.array([0.5, 0, 0, 2.0], "float32")
    found = []
    for given in (weights, weights[:, None]):
        model.compile(run_eagerly=True)
        found.append(logs_of(model, inputs, labels, given))
    assert found[0] == found[1]
    kept = weights > 0
    alone = {name: value[kept] for name, value in inputs.items()}
    expected = logs_of(model, alone, labels[kept], weights[kept])
    # The models almost agree: their divergence is what float32 leaves of entropies.
    assert found[0] == pytest.approx(expected, rel=1e-5, abs=1e-7)


def test_weights_of_examples_leave_padding_out():
    networks = [TokenClassifier(e, 3, dropout=0.0) for e in make_pair()]
    inputs, visible = make_inputs(4)
    assert not visible.all()
    labels = np.random.default_rng(0).integers(0, 3, visible.shape)
    model = Distillation(*networks, label=True)
    model.compile(run_eagerly=True)
    ones = np.ones(len(labels), "float32")
    found = [
        logs_of(model, inputs, labels, *weights)
        for weights in ((), (ones,), (ones[:, None],), (visible.astype("float32"),))
    ]
    assert found[0] == found[1] == found[2] == found[3]


@pytest.mark.slow
def test_a_model_that_was_compiled_twice_loads(tmp_path):
    model = Distillation(*make_pair())
    inputs, _ = make_inputs(4)
    model.compile()
    model.compile(tfeff.training.AdamW(1e-4))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert logs_of(loaded, inputs) == logs_of(model, inputs)


@pytest.mark.parametrize(
    ("task", "labels", "error"),
    [
        (Regressor, np.array([0.2, 1.4]), "`class_weight` .* ratings"),
        (lambda e: TokenClassifier(e, 3), np.ones((2, 7), int), "labels of tokens"),
        (lambda e: Classifier(e, 2), np.array([0, 1]), "integers from 0 to 1"),
        (SpanQA, dict.fromkeys(("start", "end"), np.zeros(2, int)), "targets by name"),
    ],
)
def test_weights_of_what_is_no_class(task, labels, error):
    model = Distillation(*map(task, make_pair()))
    model.compile()
    inputs, _ = make_inputs(2)
    for run in (model.fit, model.train_on_batch):
        with pytest.raises(ValueError, match=error):
            run(inputs, labels, class_weight={0: 1.0, 7: 9.0})


def test_labels_that_are_no_classes_are_named_where_they_are_read():
    inputs, _ = make_inputs(2)
    wrong = np.array([0, 5], "int32")
    models = [Classifier(encoder, 2) for encoder in make_pair()]
    model = Distillation(*models, label=True)
    model.compile(run_eagerly=True)
    for run in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch):
        with pytest.raises(ValueError, match="`y` must be ids of classes, from 0 to 1"):
            run(inputs, wrong)
    model = Distillation(*models)
    model.compile(run_eagerly=True)
    model.test_on_batch(inputs, wrong)


def test_names_of_targets_and_weights_are_checked():
    model = Distillation(*map(SpanQA, make_pair()), label=True)
    model.compile()
    inputs, _ = make_inputs(2)
    zeros, ones = np.zeros(2, "int32"), np.ones(2, "float32")
    both = {"start": zeros, "end": zeros}
    with pytest.raises(ValueError, match="`y` must have targets of start, end"):
        model.test_on_batch(inputs, {"start": zeros})
    with pytest.raises(ValueError, match="`sample_weight` must .* of start, end"):
        model.test_on_batch(inputs, both, {"start": ones})
    assert model.test_on_batch(inputs, both, return_dict=True)["loss"] > 0


@pytest.mark.slow
def test_missing_labels_are_named():
    networks = [Classifier(e, 3, dropout=0.0) for e in make_pair()]
    model = Distillation(*networks, label=True)
    model.compile()
    inputs, _ = make_inputs(2)
    for run in (model.fit, model.evaluate):
        with pytest.raises(ValueError, match="`y` must .*Received: y=None"):
            run(inputs, verbose=0)


@keras.saving.register_keras_serializable(package="test")
class Penalized(SelfAttention):
    """Adds a loss that pulls its weights towards 0, by calls or regularizers."""

    def call(self, hidden, **kwargs):
        outputs = super().call(hidden, **kwargs)
        self.add_loss(100 * keras.ops.sum(keras.ops.square(self.trainable_weights[0])))
        return outputs


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [1, 2])
def test_losses_that_layers_add_count_once(replicas):
    register_attention("penalized", Penalized)
    scope = two_replicas().scope() if replicas == 2 else contextlib.nullcontext()
    inputs, _ = make_inputs(4)
    with scope:
        student, teacher = make_encoder(1, attention="penalized"), make_encoder(2)
        randomize({v.path: v for v in student.trainable_variables})
        model = Distillation(student, teacher, attention=None)
        model.compile(optimizer=keras.optimizers.SGD(1e-3))
    (weight, *_) = student.blocks[0].attention.trainable_weights
    before = weight.numpy()
    data = tf.data.Dataset.from_tensors(inputs)
    model.fit(data, verbose=0)
    # w - 1e-3 * 200 w, but for the terms' own gradient.
    np.testing.assert_allclose(weight.numpy(), 0.8 * before, atol=2e-3)


def test_one_model_may_have_a_fixed_length():
    student, teacher = make_pair()
    inputs = {n: keras.Input((7,), dtype="int32", name=n) for n in student.input}
    logits = keras.layers.Dense(3)(student(inputs)["sequence_output"])
    fixed = keras.Model(inputs, logits)
    fixed.encoder = student
    batch, _ = make_inputs(4)
    model = Distillation(fixed, TokenClassifier(teacher, 3))
    assert evaluated(model, batch)["prediction_loss"] > 0


def test_models_whose_inputs_have_no_names():
    student, teacher = make_pair()
    ids = keras.Input((None,), dtype="int32", name="token_ids")
    rows = {name: ids for name in teacher.input}
    bare = keras.Model(ids, keras.layers.Dense(3)(teacher(rows)["sequence_output"]))
    bare.encoder = student
    with pytest.raises(TypeError, match="`student` must have a dict of inputs"):
        Distillation(bare, TokenClassifier(teacher, 3))


def test_targets_of_another_kind_are_named():
    inputs, _ = make_inputs(2)
    zeros = np.zeros(2, "int32")
    for task, labels in ((SpanQA, zeros), (lambda e: Classifier(e, 2), {"y": zeros})):
        model = Distillation(*map(task, make_pair()), label=True)
        model.compile(run_eagerly=True)
        with pytest.raises(ValueError, match="`y` must be the targets"):
            model.test_on_batch(inputs, labels)
    model = Distillation(*make_pair())
    model.compile()
    with pytest.raises(ValueError, match="`class_weight` must be None for encoders"):
        model.fit(inputs, zeros, class_weight={0: 1.0})
