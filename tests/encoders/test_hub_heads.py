"""Heads that were trained through KerasHub's tasks are those of tfeff's models."""

import json

import keras_hub
import numpy as np
import pytest

import tfeff
from tests.checks import randomize
from tests.subjects.encoders import tiny
from tests.subjects.sentences import DOCUMENTS
from tfeff.utils.digests import FILE_NAME


@pytest.fixture(name="preset")
def _preset(tmp_path):
    encoder = tiny("bert_base", vocabulary_size=60, num_segments=2)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted({word for text in DOCUMENTS for word in text.lower().split()})
    tokenizer = tfeff.data.BertTokenizer(pieces + words, lowercase=True)
    tfeff.tasks.save_pretrained(encoder, tokenizer, tmp_path / "pretrained")
    return str(tmp_path / "pretrained")


def inputs_of(tokenizer, length):
    examples = tfeff.data.TextExamples(DOCUMENTS[:3])
    return tfeff.data.text_features(examples, tokenizer, length).inputs


@pytest.mark.quick("None")
@pytest.mark.parametrize("activation", [None, "softmax"])
def test_a_classifier(preset, activation, tmp_path):
    model = keras_hub.models.TextClassifier.from_preset(
        preset, num_classes=3, activation=activation, dropout=0.2
    )
    randomize(dict(enumerate(model.weights)))
    model.save_to_preset(str(tmp_path / "saved"))
    found, tokenizer = tfeff.tasks.load_task(tmp_path / "saved")
    assert isinstance(found, tfeff.tasks.Classifier) and found.dropout == 0.2
    inputs = inputs_of(tokenizer, found.encoder.max_sequence_length)
    expected = model.predict(DOCUMENTS[:3], verbose=0)
    logits = found.predict(inputs, verbose=0)
    if activation == "softmax":
        exp = np.exp(logits - logits.max(axis=-1, keepdims=True))
        exp /= exp.sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(exp, expected, atol=1e-6)
    else:
        np.testing.assert_allclose(logits, expected, atol=1e-5)

    written = tfeff.convert.to_huggingface(tmp_path / "saved", tmp_path / "published")
    assert written.model == "BertForSequenceClassification"
    again, _ = tfeff.convert.load_task(tmp_path / "published")
    np.testing.assert_allclose(again.predict(inputs, verbose=0), logits, atol=1e-5)
    # A preset of tfeff takes its place.
    tfeff.tasks.save_pretrained(found, tokenizer, tmp_path / "saved", overwrite=True)
    assert not (tmp_path / "saved" / "task.weights.h5").exists()


def test_a_masked_language_model(preset, tmp_path):
    model = keras_hub.models.MaskedLM.from_preset(preset)
    randomize(dict(enumerate(model.weights)))
    model.save_to_preset(str(tmp_path / "saved"))
    found, tokenizer = tfeff.tasks.load_masked_lm(tmp_path / "saved")
    inputs = inputs_of(tokenizer, 9)
    inputs["mask_positions"] = np.array([[1, 2], [3, 1], [1, 0]], "int32")
    np.testing.assert_allclose(found(inputs), model(inputs), atol=1e-5)
    written = tfeff.convert.to_huggingface(tmp_path / "saved", tmp_path / "published")
    assert (written.model, written.heads) == ("BertForMaskedLM", ("masked_lm",))
    with pytest.raises(ValueError, match="must be a preset of a task"):
        tfeff.tasks.load_task(tmp_path / "saved")


def change_task(folder, **changes):
    task = json.loads((folder / "task.json").read_text())
    (folder / "task.json").write_text(json.dumps(task | changes))
    (folder / FILE_NAME).unlink()


@pytest.mark.filterwarnings("ignore:.*SHA256SUMS")
def test_what_is_no_model_of_tfeff_or_damaged(preset, tmp_path):
    model = keras_hub.models.TextClassifier.from_preset(
        preset, num_classes=3, activation="sigmoid"
    )
    folder = tmp_path / "saved"
    model.save_to_preset(str(folder))
    for read in (
        tfeff.tasks.load_task,
        lambda path: tfeff.convert.to_huggingface(path, tmp_path / "published"),
    ):
        with pytest.raises(ValueError, match="activation='sigmoid'"):
            read(folder)
    assert not (tmp_path / "published").exists()
    change_task(folder, config=5)
    with pytest.raises(ValueError, match=r"task\.json is damaged"):
        tfeff.tasks.load_task(folder)
