"""tokenizer.json as the only file of a tokenizer."""

import base64
import functools
import json
import shutil

import pytest
import tensorflow as tf
from sentencepiece.sentencepiece_model_pb2 import ModelProto

import tfeff.convert.tokenizer
from tests.convert.conversions import GOLDENS
from tfeff.convert.tokenizer import make_tokenizer

FOLDER = GOLDENS.parent / "tokenizer_goldens"
NAMES = {
    "bert": "bert",
    "bert_accents": "bert",
    "bert_cased": "bert",
    "bert_whole_chinese": "bert",
    "roberta": "roberta",
    "roberta_prefix_space": "roberta",
    "albert": "albert",
    "albert_cased": "albert",
    "xlnet": "xlnet",
    "xlm_roberta": "xlm-roberta",
}


@pytest.fixture(scope="module", autouse=True)
def _models_once():
    """The SentencePiece model of a file, which takes a second, once for each text."""
    module, models = tfeff.convert.tokenizer, {}
    make = module.sentence_piece_model

    def once(file):
        key = json.dumps(file.values)
        if key not in models:
            models[key] = make(file)
        return models[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "sentence_piece_model", once)
        yield


def copied(name, folder):
    """A copy of a golden, to be changed, with the rules that its file lacks."""
    source = shutil.copytree(FOLDER / name, folder / name)
    change(source, lambda values: None)
    return source


@functools.cache
def charsmap():
    proto = (GOLDENS / "albert" / "spiece.model").read_bytes()
    rules = ModelProto.FromString(proto).normalizer_spec.precompiled_charsmap
    return base64.b64encode(rules).decode()


def change(source, make):
    """Changes the values of the source's tokenizer.json in place."""
    path = source / "tokenizer.json"
    values = json.loads(path.read_text("utf-8"))
    for step in (values["normalizer"] or {}).get("normalizers", ()):
        if step["type"] == "Precompiled":
            step["precompiled_charsmap"] = charsmap()
    make(values)
    path.write_text(json.dumps(values), "utf-8")


def golden(name):
    return json.loads((FOLDER / name / "ids.json").read_text("utf-8"))


@pytest.mark.parametrize("name", NAMES)
def test_the_ids_are_those_of_hugging_face(name, tmp_path):
    expected = golden(name)
    tokenizer = make_tokenizer(str(copied(name, tmp_path)), NAMES[name])
    texts = tf.data.Dataset.from_tensors(tf.constant(expected["texts"]))
    (ids,) = texts.map(tokenizer)
    assert ids.to_list() == expected["ids"]
    for text, row in zip(expected["texts"], expected["ids"]):
        assert [int(id) for id in tokenizer(text)] == row
