"""KerasHub's own calls make, train, save and load tasks of tfeff's encoders."""

import json
import shutil
import warnings

import keras
import keras_hub
import numpy as np
import pytest

import tfeff
from tests.subjects.encoders import tiny
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.versions import needs_no_preprocessor
from tfeff.encoders import (
    EncoderMaskedLM,
    EncoderTextClassifier,
    EncoderTextClassifierPreprocessor,
)
from tfeff.utils.digests import check_digests

LABELS = np.array([0, 1, 0, 1])


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub") / "preset"
    encoder = tiny("albert_base", vocabulary_size=60, num_segments=2)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), folder)
    return str(folder)


def word_pieces():
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in DOCUMENTS for word in text.lower().split()})
    return tfeff.data.BertTokenizer(pieces + words, lowercase=True)


def check_same_predictions(loaded, model, inputs):
    expected = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(
        loaded.predict(inputs, verbose=0), expected, rtol=1e-6, atol=1e-6
    )


@pytest.mark.slow
def test_classifier(preset, tmp_path):
    model = keras_hub.models.TextClassifier.from_preset(preset, num_classes=2)
    assert type(model) is EncoderTextClassifier
    first = model.predict(DOCUMENTS[:4], verbose=0)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    model.fit(DOCUMENTS[:4], LABELS, batch_size=2, epochs=3, verbose=0)
    assert not np.allclose(model.predict(DOCUMENTS[:4], verbose=0), first, atol=1e-3)
    model.save_to_preset(str(tmp_path / "saved"))
    loaded = keras_hub.models.TextClassifier.from_preset(str(tmp_path / "saved"))
    check_same_predictions(loaded, model, DOCUMENTS[:4])

    # The folder is a preset of tfeff's too, whole and with digests.
    check_digests(str(tmp_path / "saved"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoder, _ = tfeff.tasks.load_pretrained(tmp_path / "saved")
    for one, other in zip(encoder.weights, model.backbone.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    metadata = json.loads((tmp_path / "saved" / "metadata.json").read_text())
    assert metadata["tasks"] == ["MaskedLM", "TextClassifier"]


@pytest.mark.slow
def test_classifier_in_one_file(preset, tmp_path):
    model = keras_hub.models.TextClassifier.from_preset(preset, num_classes=3)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    check_same_predictions(loaded, model, DOCUMENTS[:2])


@pytest.mark.slow
def test_quantized_classifier(preset, tmp_path):
    model = keras_hub.models.TextClassifier.from_preset(preset, num_classes=2)
    model.backbone.quantize("int8")
    model.save_to_preset(str(tmp_path / "saved"))
    loaded = keras_hub.models.TextClassifier.from_preset(str(tmp_path / "saved"))
    assert loaded.backbone.blocks[0].attention.query_dense.quantization_mode == "int8"
    check_same_predictions(loaded, model, DOCUMENTS[:2])


@pytest.mark.slow
def test_masked_lm(preset, tmp_path):
    model = keras_hub.models.MaskedLM.from_preset(preset)
    assert type(model) is EncoderMaskedLM
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    kernel = model.get_layer("mlm_head").get_weights()[0]
    model.fit(DOCUMENTS[:4], batch_size=2, verbose=0)
    assert not np.array_equal(model.get_layer("mlm_head").get_weights()[0], kernel)
    model.save_to_preset(str(tmp_path / "saved"))
    loaded = keras_hub.models.MaskedLM.from_preset(str(tmp_path / "saved"))
    inputs, *_ = model.preprocessor(DOCUMENTS[:2])
    loaded.preprocessor = model.preprocessor = None
    check_same_predictions(loaded, model, inputs)


@pytest.mark.quick("9-False-tokenizer", "9-True-word_pieces", "40-True-tokenizer")
@pytest.mark.parametrize("make", [tokenizer, word_pieces])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("length", [9, 40])
def test_rows_are_those_of_fine_tuning(make, pairs, length):
    first, second = DOCUMENTS[:5], [*DOCUMENTS[5:9], "a"]
    examples = tfeff.data.TextExamples(
        first, second if pairs else None, None, None, list(range(5))
    )
    expected = tfeff.data.text_features(examples, make(), length).inputs
    preprocessor = EncoderTextClassifierPreprocessor(make(), sequence_length=length)
    # KerasHub takes a tuple alone for texts and labels.
    texts = (np.array(first), np.array(second)) if pairs else first
    rows = preprocessor(texts, y=None)
    assert set(rows) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(np.asarray(rows[name]), values, err_msg=name)


def test_lengths(preset):
    make = keras_hub.models.TextClassifierPreprocessor.from_preset
    assert make(preset).sequence_length == 16
    assert make(preset, sequence_length=8).sequence_length == 8


def test_backbones_of_others_are_refused():
    other = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    with pytest.raises(TypeError, match="`backbone` must be a .*Sequential"):
        EncoderTextClassifier(other, 2)
    with pytest.raises(ValueError, match="num_classes=1"):
        EncoderTextClassifier(tiny("bert_base"), 1)
    with pytest.raises(TypeError, match="`backbone` must be a .*None"):
        EncoderMaskedLM(None)


def test_tokenizers_of_other_rows_are_refused():
    class TwoSeparators:
        pair_separators = 2

    with pytest.raises(ValueError, match="one separator between .*TwoSeparators"):
        EncoderTextClassifierPreprocessor(TwoSeparators())


@pytest.mark.parametrize("kind", ["RobertaTokenizer", "XLMRobertaTokenizer"])
def test_tokenizers_of_two_separators_of_keras_hub_are_refused(kind):
    tokenizer = getattr(keras_hub.tokenizers, kind)(None)
    with pytest.raises(ValueError, match="one separator between"):
        EncoderTextClassifierPreprocessor(tokenizer)
    with pytest.raises(TypeError, match=rf"`tfeff\.data\.{kind}` has them"):
        tfeff.data.text_features(tfeff.data.TextExamples(["a"]), tokenizer, 8)


TASKS = {
    "classifier": lambda encoder: EncoderTextClassifier(encoder, 2),
    "masked_lm": EncoderMaskedLM,
}


def made(task):
    return TASKS[task](tiny("bert_base", num_layers=1, num_segments=2))


def from_file(model, folder):
    model.save(folder / "model.keras")
    return keras.models.load_model(folder / "model.keras")


def from_preset(model, folder):
    model.save_to_preset(str(folder / "preset"))
    return type(model).from_preset(str(folder / "preset"))


WAYS = [from_file, pytest.param(from_preset, marks=needs_no_preprocessor)]


@pytest.mark.quick("classifier-from_preset", "masked_lm-from_file")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("task", TASKS)
def test_a_quantized_task(task, way, tmp_path):
    model = made(task)
    model.quantize("int8")
    loaded = way(model, tmp_path)
    assert [w.dtype for w in loaded.weights] == [w.dtype for w in model.weights]
    for one, other in zip(loaded.weights, model.weights, strict=True):
        np.testing.assert_array_equal(one, other)
    inputs = {name: np.ones((2, 3), "int32") for name in model.input}
    np.testing.assert_array_equal(loaded(inputs), model(inputs))


def freeze_head(model):
    model.layers[-1].trainable = False


def freeze_backbone(model):
    model.backbone.trainable = False


def freeze_all(model):
    model.trainable = False


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("freeze", [freeze_head, freeze_backbone, freeze_all])
@pytest.mark.parametrize("task", TASKS)
def test_a_frozen_task(task, freeze, way, tmp_path):
    model = made(task)
    freeze(model)
    loaded = way(model, tmp_path)
    assert [w.trainable for w in loaded.weights] == [w.trainable for w in model.weights]
    assert len(loaded.trainable_weights) == len(model.trainable_weights)


@needs_no_preprocessor
def test_other_classes_get_a_new_head(tmp_path):
    model = made("classifier")
    model.get_layer("logits").quantize("int8")
    model.get_layer("pooler").trainable = False
    model.save_to_preset(str(tmp_path))
    for classes in (2, 3):
        new = EncoderTextClassifier.from_preset(str(tmp_path), num_classes=classes)
        assert new.num_classes == classes
        assert all(weight.trainable for weight in new.weights)


def test_unknown_arguments_are_refused(preset):
    encoder = tiny("bert_base", num_layers=1)
    with pytest.raises(TypeError, match="`droput` must be .*'dropout'"):
        EncoderTextClassifier(encoder, 2, droput=0.9)
    with pytest.raises(TypeError, match="`dtype` must be left out"):
        EncoderMaskedLM(encoder, dtype="bfloat16")
    with pytest.raises(TypeError, match="`droput` must be .*'dropout'"):
        keras_hub.models.TextClassifier.from_preset(preset, num_classes=2, droput=0.9)
    model = keras_hub.models.TextClassifier.from_preset(
        preset, num_classes=2, dropout=0.3, dtype="float64", compile=False
    )
    assert model.dropout == 0.3
    assert not model.compiled
    assert model.backbone.compute_dtype == "float64"


@pytest.mark.slow
def test_damage_is_found_by_kerashubs_own_classes(preset, tmp_path):
    whole = str(tmp_path / "whole")
    make = keras_hub.models.TextClassifier.from_preset
    make(preset, num_classes=2).save_to_preset(whole)
    make(whole)
    for name in ("config.json", "task.json", "preprocessor.json", "task.weights.h5"):
        damaged = tmp_path / name.replace(".", "_")
        shutil.copytree(whole, damaged)
        with open(damaged / name, "ab") as file:
            file.write(b" ")
        with pytest.raises(ValueError, match=f"is damaged.*{name}"):
            make(str(damaged))
