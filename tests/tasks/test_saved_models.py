"""Presets of objectives and tasks: there and back, and what may be wrong."""

import copy
import json

import keras
import numpy as np
import pytest

import tfeff
from tests.checks import randomize
from tests.subjects.sentences import tokenizer
from tfeff.encoders.preset_heads import head_names
from tfeff.objectives import (
    Distillation,
    MaskedLM,
    PermutationLM,
    ReplacedTokenDetection,
    SentencePairPrediction,
    generator_for,
)
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SpanQA,
    TokenClassifier,
    load_masked_lm,
    load_objective,
    load_pretrained,
    load_task,
    save_pretrained,
)
from tfeff.tasks.run_tokenizer import save_run_tokenizer

MODELS = {
    "classifier": lambda e: Classifier(e, 2, "last", 0.2, "gelu", ["no", "yes"]),
    "layerwise": lambda e: Classifier(e, 3, "layerwise"),
    "regressor": Regressor,
    "choice": lambda e: MultipleChoice(e, name="options"),
    "questions": SpanQA,
    "tokens": lambda e: TokenClassifier(e, 4),
    "masked_lm": lambda e: MaskedLM(e, "gelu_tanh", 1e-5),
    "sentences": lambda e: SentencePairPrediction(e, kind="next", activation="relu"),
    "sentences_alone": lambda e: SentencePairPrediction(e, masked_lm=False),
    "permutation_lm": PermutationLM,
}


def make_encoder(**kwargs):
    arguments = dict(
        vocabulary_size=60,
        num_layers=1,
        num_heads=2,
        hidden_dim=8,
        embedding_dim=6,
        intermediate_dim=12,
        max_sequence_length=16,
    )
    return tfeff.encoders.Encoder(**(arguments | kwargs))


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_a_functional_model_of_the_layers_of_one(kind, tmp_path):
    """What its layers share, they share in a saved one and in a copy, too."""
    # The query stream reads absolute positions of the table itself.
    model = MODELS[kind](make_encoder(position="none"))
    part = keras.Model(model.input, model.output)
    inputs = {
        name: np.ones([size or 3 for size in x.shape], "int32")
        for name, x in model.input.items()
    }
    part.save(tmp_path / "part.keras")
    loaded = keras.models.load_model(tmp_path / "part.keras")
    for copied in (loaded, copy.deepcopy(part)):
        assert len(copied.weights) == len(part.weights)
        outputs = (keras.tree.flatten(x(inputs)) for x in (copied, part))
        for one, other in zip(*outputs, strict=True):
            np.testing.assert_array_equal(one, other)


def make_model(kind, **kwargs):
    model = MODELS[kind](make_encoder(**kwargs))
    randomize({w.path: w for w in model.weights}, scale=0.3)
    return model


@pytest.mark.quick("questions", "masked_lm", "classifier")
@pytest.mark.parametrize("kind", MODELS)
def test_there_and_back(kind, tmp_path):
    model = make_model(kind)
    save_pretrained(model, tokenizer(), tmp_path / "preset")
    loaded, pieces = load_task(tmp_path / "preset")
    assert type(loaded) is type(model) and loaded.get_config() == model.get_config()
    assert pieces.vocabulary_size() == tokenizer().vocabulary_size()
    for one, other in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    encoder, _ = load_pretrained(tmp_path / "preset", dropout=0.5)
    assert encoder.dropout == 0.5
    other, _ = load_task(tmp_path / "preset", dropout=0.5)
    assert other.encoder.dropout == 0.5


def test_a_compiled_and_quantized_model_comes_back(tmp_path):
    model = make_model("classifier")
    model.compile()
    model.quantize("int8")
    save_pretrained(model, tokenizer(), tmp_path / "preset")
    loaded, _ = load_task(tmp_path / "preset")
    modes = [layer.quantization_mode for layer in loaded.layers[-1:]]
    assert modes == ["int8"]
    for one, other in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_bfloat16_comes_back(tmp_path):
    model = make_model("regressor", dtype="bfloat16")
    save_pretrained(model, tokenizer(), tmp_path / "preset")
    loaded, _ = load_task(tmp_path / "preset")
    assert {w.dtype for w in loaded.encoder.weights} == {"bfloat16"}
    for one, other in zip(model.weights, loaded.weights, strict=True):
        assert other.dtype == one.dtype
        np.testing.assert_array_equal(
            np.asarray(one, "float32"), np.asarray(other, "float32")
        )


@pytest.mark.slow
def test_options_count_for_a_generator_too(tmp_path):
    encoder = make_encoder(attention={"name": "relative", "method": "shaw"})
    model = ReplacedTokenDetection(generator_for(encoder, 1 / 2), encoder)
    randomize({w.path: w for w in model.weights if w.dtype != "uint32"}, scale=0.3)
    save_pretrained(model, tokenizer(), tmp_path / "preset")
    for name, value in (
        ("dropout", 0.3),
        ("attention_dropout", 0.4),
        ("dtype", "mixed_bfloat16"),
    ):
        loaded, _ = load_task(tmp_path / "preset", **{name: value})
        for part in (loaded.generator, loaded.encoder):
            found = part.dtype_policy.name if name == "dtype" else getattr(part, name)
            assert found == value
    with pytest.warns(UserWarning, match="grew from 16 to 24 rows"):
        loaded, _ = load_task(tmp_path / "preset", sequence_length=24)
    assert loaded.generator.max_sequence_length == 24 and loaded.share_embeddings
    ids = np.arange(16)[None] % 50
    inputs = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    inputs["mask_positions"] = ids[:, :2]
    np.testing.assert_array_equal(
        loaded(inputs)["masked_lm"], model(inputs)["masked_lm"]
    )
    longer = {x: np.repeat(inputs[x], 2, 1)[:, :24] for x in inputs}
    assert np.isfinite(loaded(longer)["replaced"]).all()


@pytest.mark.filterwarnings("ignore:The table of absolute positions grew")
def test_options_that_a_generator_cannot_have_are_named(tmp_path):
    encoder = make_encoder()
    generator = make_encoder(name="generator", dropout=0.2)
    model = ReplacedTokenDetection(generator, encoder)
    save_pretrained(model, tokenizer(), tmp_path / "preset")
    with pytest.raises(ValueError, match="^`swap_positions` must.*Received.*huang4"):
        load_task(tmp_path / "preset", swap_positions="huang4")
    with pytest.raises(ValueError, match="^`sequence_length` must be at most 16.*=24"):
        load_task(tmp_path / "preset", sequence_length=24)
    loaded, _ = load_task(tmp_path / "preset", sequence_length=8, dropout=None)
    assert loaded.generator.dropout == 0.2 and loaded.encoder.dropout == 0.1


def test_heads_of_objectives_can_be_read_one_by_one(tmp_path):
    model = make_model("sentences")
    save_pretrained(model, tokenizer(), tmp_path / "preset")
    names = ["masked_lm", "next_sentence", "pooler"]
    assert head_names(str(tmp_path / "preset")) == names
    masked_lm, _ = load_masked_lm(tmp_path / "preset")
    assert masked_lm.head_settings == model.head_settings
    pair, _ = load_objective(tmp_path / "preset", "next_sentence")
    assert pair.get_config()["kind"] == "next"
    for one, other in zip(pair.weights, model.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    with pytest.raises(ValueError, match="'sentence_order'.*a SentencePairPrediction"):
        load_objective(tmp_path / "preset", "sentence_order")
    alone = make_model("sentences_alone")
    save_pretrained(alone, tokenizer(), tmp_path / "alone")
    pair, _ = load_objective(tmp_path / "alone", "sentence_order")
    assert not pair.masked_lm


def make_run(folder, *models):
    """A run that is not finished: a checkpoint a model, and its tokenizer."""
    (folder / "checkpoints").mkdir(parents=True)
    for step, model in enumerate(models, 2):
        model.compile()
        path = folder / "checkpoints" / f"step-{step:08}.keras"
        tfeff.training.save_checkpoint(model, str(path))
    save_run_tokenizer(tokenizer(), folder)
    return folder


def check_model_of(run, model):
    loaded, pieces = load_objective(run, "masked_lm")
    assert loaded.compiled
    for one, other in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert pieces.get_vocabulary() == tokenizer().get_vocabulary()


def test_the_model_of_a_run_is_that_of_its_checkpoint(tmp_path):
    model = make_model("masked_lm")
    run = make_run(tmp_path / "run", model)
    check_model_of(run, model)
    message = r"of the objective 'next_sentence'.*a MaskedLM with .*\['masked_lm'\]$"
    with pytest.raises(ValueError, match=message):
        load_objective(run, "next_sentence")
    save_pretrained(model.encoder, tokenizer(), run / "preset")  # It is finished.
    check_model_of(run, model)


def test_the_model_of_a_step_of_a_run(tmp_path):
    models = make_model("masked_lm"), make_model("masked_lm")
    randomize({w.path: w for w in models[1].weights})
    run = make_run(tmp_path / "run", *models)
    check_model_of(f"{run}@2", models[0])
    for path in (run, f"{run}@3"):
        check_model_of(path, models[1])
    save_pretrained(models[1].encoder, tokenizer(), run / "preset")
    message = rf"path='{run}@2', a MaskedLM with .*\['masked_lm'\]$"
    with pytest.raises(ValueError, match=message):
        load_objective(f"{run}@2", "next_sentence")
    message = rf"`path` must .*: step 4 of {run}, which has those of steps 2, 3$"
    with pytest.raises(ValueError, match=message):
        load_masked_lm(f"{run}@4")


def test_masked_lm_of_a_run_of_sentence_pairs(tmp_path):
    """Of a run it is a `MaskedLM`, too, with the head that was learnt beside."""
    pairs = SentencePairPrediction(make_encoder(), kind="order")
    randomize({w.path: w for w in pairs.weights})
    run = make_run(tmp_path / "run", pairs)
    loaded, _ = load_masked_lm(run)
    assert type(loaded) is MaskedLM
    expected = pairs.heads()["masked_lm"].arrays()
    for name, value in loaded.heads()["masked_lm"].arrays().items():
        np.testing.assert_array_equal(value, expected[name])
    for one, other in zip(pairs.encoder.weights, loaded.encoder.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
    assert isinstance(load_objective(run, "sentence_order")[0], SentencePairPrediction)


@pytest.mark.slow
def test_masked_lm_of_a_run_of_distillation_is_the_student(tmp_path):
    student, teacher = make_model("masked_lm"), make_model("masked_lm")
    run = make_run(tmp_path / "run", Distillation(student, teacher))
    check_model_of(f"{run}@2", student)
    run = make_run(tmp_path / "own", Distillation(student.encoder, teacher.encoder))
    with pytest.raises(ValueError, match="a Distillation with no heads$"):
        load_masked_lm(run)


def damage(path, change):
    """Changes a JSON file of a preset on purpose."""
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))
    (path.parent / "SHA256SUMS").unlink(missing_ok=True)


@pytest.mark.filterwarnings("ignore:.*SHA256SUMS")
def test_damage_is_named(tmp_path):
    preset = tmp_path / "preset"
    save_pretrained(make_model("classifier"), tokenizer(), preset)
    task = preset / "task.json"
    text = task.read_text()
    task.write_text(text.replace('"last"', '"cls"'))
    with pytest.raises(ValueError, match="task.json"):
        load_task(preset)
    load_pretrained(preset)
    task.write_text(text)
    head = (preset / "logits_head.npz").read_bytes()
    (preset / "logits_head.npz").write_bytes(head[:-9])
    with pytest.raises(ValueError, match=r"head 'logits'.*logits_head\.npz"):
        load_task(preset)
    (preset / "logits_head.npz").unlink()
    with pytest.raises(ValueError, match=r"logits_head\.npz"):
        load_task(preset)
    (preset / "logits_head.npz").write_bytes(head)
    for change, message in (
        (lambda c: c.update(registered_name="tfeff>Nothing"), "of another one"),
        (lambda c: c.update(registered_name="Dense"), "of another one"),
        (lambda c: c["config"].update(colour="red"), "of another one"),
        (lambda c: c.pop("config"), "of another one"),
        (lambda c: c["config"].update(pooling="max"), "`pooling` must be one of"),
        (
            lambda c: c["config"].update(label_names=["no", "no"]),
            "`path` must hold a model.*`label_names` must be 2 strings, different",
        ),
        (
            lambda c: c["config"].update(num_classes=3, label_names=None),
            r"head 'logits'.*kernel \(8, 2\), not \(8, 3\)",
        ),
        (lambda c: c["config"].update(pooling="cls"), "head 'pooler'.*last, not cls"),
    ):
        task.write_text(text)
        damage(task, change)
        with pytest.raises(ValueError, match=message):
            load_task(preset)
    task.write_text("[1]")
    with pytest.raises(ValueError, match=r"task\.json must hold a configuration"):
        load_task(preset)
    task.write_text("{")
    with pytest.raises(ValueError, match=r"task\.json is damaged"):
        load_task(preset)


def test_bad_arguments_are_named(tmp_path):
    with pytest.raises(TypeError, match="`model` must be .*Encoder.*Received: model=3"):
        save_pretrained(3, tokenizer(), tmp_path / "new")
    with pytest.raises(TypeError, match="`path`"):
        load_task(3)
    with pytest.raises(ValueError, match="no folder"):
        load_task(tmp_path / "nothing")
    assert not list(tmp_path.iterdir())
