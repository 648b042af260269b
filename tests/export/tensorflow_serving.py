"""What TensorFlow Serving does with an export, in Python, from its sources.

It polls a base path for folders with numbers as names and loads the highest one
(`file_system_storage_path_source.cc`): a session with the graph tagged "serve", its
variables restored and its initial operation run (`saved_model_bundle_factory.cc`). A
request names a signature, or none for `serving_default`, and must have exactly its
inputs; the session is fed and fetched by the tensors that the signature names
(`predict_util.cc`). The REST API turns rows or columns of JSON into such a request
(`json_tensor.cc`).
"""

import os
import re

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401, whose operations the server has, too


class Server:
    """A model as `tensorflow_model_server --model_base_path=BASE` serves it."""

    def __init__(self, base):
        names = [name for name in os.listdir(base) if re.fullmatch("[0-9]+", name)]
        name = max(names, key=int)  # Also of 00000007.
        self.version = int(name)
        graph = tf.Graph()
        self.session = tf.compat.v1.Session(graph=graph)
        with graph.as_default():
            loaded = tf.compat.v1.saved_model.load(
                self.session, ["serve"], os.path.join(base, name)
            )
        self.signatures = loaded.signature_def

    def predict(self, inputs, signature_name="", output_filter=()):
        """The outputs of a `PredictRequest`: `tf.TensorProto`s by name, both ways."""
        signature = self.signatures[signature_name or "serving_default"]
        assert signature.method_name == "tensorflow/serving/predict"
        if set(inputs) != set(signature.inputs):
            raise ValueError(f"input keys {[*inputs]}, expected {[*signature.inputs]}")
        feed = {
            signature.inputs[name].name: tf.make_ndarray(tensor)
            for name, tensor in inputs.items()
        }
        names = {
            name: info.name
            for name, info in signature.outputs.items()
            if not output_filter or name in output_filter
        }
        outputs = self.session.run(names, feed)
        return {
            name: tf.make_tensor_proto(value, signature.outputs[name].dtype)
            for name, value in outputs.items()
        }

    def rest(self, body):
        """The answer to a POST of JSON to `/v1/models/NAME:predict`."""
        name = body.get("signature_name", "serving_default")
        signature = self.signatures[name]
        rows = body.get("instances")
        inputs = body["inputs"] if rows is None else rows
        if rows is not None and isinstance(rows[0], dict):
            inputs = {key: [row[key] for row in rows] for key in rows[0]}
        if not isinstance(
            inputs, dict
        ):  # The only input may be given without its name.
            (only,) = signature.inputs
            inputs = {only: inputs}
        protos = {
            key: tf.make_tensor_proto(value, signature.inputs[key].dtype)
            for key, value in inputs.items()
        }
        outputs = {
            key: _as_json(tf.make_ndarray(proto))
            for key, proto in self.predict(protos, name).items()
        }
        if rows is None:
            return {"outputs": outputs if len(outputs) > 1 else [*outputs.values()][0]}
        sizes = {key: len(value) for key, value in outputs.items()}
        assert set(sizes.values()) == {len(rows)}, f"no rows of texts: {sizes}"
        of_rows = [dict(zip(outputs, row)) for row in zip(*outputs.values())]
        if len(outputs) == 1:
            of_rows = [next(iter(row.values())) for row in of_rows]
        return {"predictions": of_rows}


def _as_json(array):
    if array.dtype == object:
        array = np.vectorize(bytes.decode, otypes=[object])(array)
    return array.tolist()
