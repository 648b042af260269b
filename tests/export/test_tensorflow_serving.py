"""Exports answer the requests that TensorFlow Serving brings, as it calls them.

No server can be installed from a package index; `tests/export/tensorflow_serving.py`
does what it does. `docs/EXPORT.md` has the command line of the real one.
"""

import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import tfeff
from tests.export.tensorflow_serving import Server
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.serving import load, make_encoder, make_model, own_model
from tfeff.tasks import Classifier, MultipleChoice, SpanQA

TEXTS = ["A tiger followed [MASK] boxes", "", "Zebra ÉTÉ 日本 🦓"]
PAIRS = [DOCUMENTS[5], "zebras", ""]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """Version 1 fills masks, version 2 is a model of a user's own, of pairs."""
    base = str(tmp_path_factory.mktemp("models") / "films")
    length = {"sequence_length": 24}
    tfeff.export.save_version(make_model(), tokenizer(), base, top_k=2, **length)
    model = own_model(make_encoder(max_sequence_length=24))
    tfeff.export.save_version(model, tokenizer(), base, pairs=True)
    return base


def protos(**inputs):
    return {
        name: tf.make_tensor_proto(value, tf.string) for name, value in inputs.items()
    }


def check(server, path, name, **inputs):
    """The server gives what the signature does, in the format of the request."""
    tensors = {key: tf.constant(value, tf.string) for key, value in inputs.items()}
    expected = load(path).signatures[name](**tensors)
    outputs = server.predict(protos(**inputs), name)
    assert outputs.keys() == expected.keys()
    for key, value in expected.items():
        found = tf.make_ndarray(outputs[key])
        if value.dtype.is_floating:
            np.testing.assert_allclose(found, value, atol=1e-6)
        else:
            np.testing.assert_array_equal(found, value)
    return outputs


@pytest.mark.slow
def test_the_newest_version_answers_requests(base):
    server = Server(base)
    assert server.version == 2
    signature = server.signatures["serving_default"]
    assert {key: info.dtype for key, info in signature.inputs.items()} == {
        "text": tf.string.as_datatype_enum,
        "text_pair": tf.string.as_datatype_enum,
    }
    outputs = check(server, f"{base}/2", "predict", text=TEXTS, text_pair=PAIRS)
    given = protos(text=TEXTS, text_pair=PAIRS)
    default = server.predict(given)  # A request without the name of a signature.
    assert tf.make_ndarray(default["output"]).shape == (3, 2)
    np.testing.assert_allclose(
        tf.make_ndarray(default["output"]), tf.make_ndarray(outputs["output"])
    )
    rows = [{"text": a, "text_pair": b} for a, b in zip(TEXTS, PAIRS)]
    found = server.rest({"signature_name": "predict", "instances": rows})
    expected = tf.make_ndarray(outputs["output"])
    np.testing.assert_allclose(found["predictions"], expected, atol=1e-6)
    with pytest.raises(ValueError, match="input keys"):
        server.predict(protos(text=TEXTS))
    with pytest.raises(tf.errors.InvalidArgumentError, match="`text_pair` must have"):
        server.predict(protos(text=TEXTS, text_pair=PAIRS[:1]))
    tfeff.export.check_export(base)


@pytest.mark.slow
def test_an_earlier_version_serves_on_its_own(base, tmp_path):
    # As with `model_version_policy`, or where a second server has it.
    (tmp_path / "1").symlink_to(f"{base}/1")
    (tmp_path / ".partial-x").mkdir()  # Of a version that is being written.
    server = Server(tmp_path)
    assert server.version == 1
    for name in ("sentence_embeddings", "token_embeddings", "fill_mask"):
        check(server, f"{base}/1", name, text=TEXTS)
    filled = server.rest({"signature_name": "fill_mask", "instances": TEXTS[:1]})
    (row,) = filled["predictions"]
    assert len(row["fillings"][0]) == 2 and isinstance(row["fillings"][0][0], str)
    found = server.rest({"inputs": {"text": TEXTS}})["outputs"]
    assert np.shape(found) == (3, 16)
    only = server.predict(protos(text=TEXTS), "fill_mask", ["token_ids"])
    assert set(only) == {"token_ids"}


@pytest.mark.slow
def test_other_tasks_serve(tmp_path):
    encoder = make_encoder(max_sequence_length=24)
    labels = {"label_names": ["bad", "good"]}
    texts = {"text": TEXTS}
    choices = {
        "passage": TEXTS,
        "question": PAIRS,
        "options": [["a", "cat"]] * len(TEXTS),
    }
    asked = {"question": ["cat?"] * 2, "passage": DOCUMENTS[:2]}
    for name, model, inputs, options in (
        ("classify", Classifier(encoder, 2), texts, labels),
        ("choose", MultipleChoice(encoder), choices, {}),
        ("answer", SpanQA(encoder), asked, {"stride": 7}),
    ):
        base = str(tmp_path / name)
        path = tfeff.export.save_version(model, tokenizer(), base, **options)
        server = Server(base)
        check(server, path, name, **inputs)
        columns = server.rest({"signature_name": name, "inputs": inputs})["outputs"]
        rows = [dict(zip(inputs, row)) for row in zip(*inputs.values())]
        answers = server.rest({"signature_name": name, "instances": rows})
        for key, values in columns.items():
            assert [row[key] for row in answers["predictions"]] == values


@pytest.mark.slow
def test_requests_of_the_real_interface(base):
    """The messages that clients send by gRPC; `tensorflow-serving-api` has them."""
    messages = pytest.importorskip("tensorflow_serving.apis.predict_pb2")
    request = messages.PredictRequest()
    request.model_spec.name = "films"
    request.model_spec.signature_name = "predict"
    for name, texts in (("text", TEXTS), ("text_pair", PAIRS)):
        request.inputs[name].CopyFrom(tf.make_tensor_proto(texts))
    received = messages.PredictRequest.FromString(request.SerializeToString())
    outputs = Server(base).predict(
        dict(received.inputs), received.model_spec.signature_name
    )
    response = messages.PredictResponse(outputs=outputs)
    assert tf.make_ndarray(response.outputs["output"]).shape == (3, 2)


@pytest.mark.slow
def test_the_command_line_of_saved_models(base):
    def run(*arguments):
        code = (
            "import tensorflow_text; "
            "from tensorflow.python.tools.saved_model_cli import main; main()"
        )
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    folder = ("--dir", f"{base}/2", "--tag_set", "serve", "--signature_def", "predict")
    shown = run("show", *folder).stdout
    for name in ("inputs['text']", "inputs['text_pair']", "outputs['output']"):
        assert name in shown
    assert "tensorflow/serving/predict" in shown
    texts = "text=['zebras', 'a cat'];text_pair=['', 'boxes']"
    result = run("run", *folder, "--input_exprs", texts)
    assert "Result for output key output" in result.stdout
