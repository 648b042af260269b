"""Exported models, run as other programs run them."""

import os
import tempfile

import keras
import numpy as np
import tensorflow as tf

from tests.checks import assert_close, randomize

# What ends the name of a file of each format; a SavedModel is a folder.
ENDINGS = {"tf_saved_model": "", "litert": ".tflite", "onnx": ".onnx"}
# Ragged, one without a real token; one token; longer, of another batch size.
LENGTHS = ((7, 4, 0), (1,), (12, 3))


def exported(model, folder, format, **kwargs):
    """The path of a model's new export."""
    path = os.path.join(tempfile.mkdtemp(dir=folder), f"{model.name}{ENDINGS[format]}")
    model.export(path, format=format, verbose=False, **kwargs)
    return path


def run(path, batch) -> dict[str, np.ndarray]:
    """The outputs of an exported model by name."""
    return runner(path)(batch)


def runner(path):
    """A function that runs an exported model."""
    if path.endswith(".tflite"):
        return lambda batch: interpreter(path).get_signature_runner()(**batch)
    if path.endswith(".onnx"):
        import onnxruntime

        session = onnxruntime.InferenceSession(path)
        names = [output.name for output in session.get_outputs()]
        return lambda batch: dict(zip(names, session.run(None, batch)))
    loaded = tf.saved_model.load(path)

    def call(batch):
        tensors = {name: tf.constant(x) for name, x in batch.items()}
        outputs = loaded.signatures["serving_default"](**tensors)
        return {name: output.numpy() for name, output in outputs.items()}

    return call


def interpreter(path):
    """LiteRT's interpreter without TensorFlow's operators."""
    return tf.lite.Interpreter(path)


def operators(path) -> set[str]:
    """The names of the operators in a file of LiteRT or ONNX."""
    if path.endswith(".onnx"):
        import onnx

        return {node.op_type for node in onnx.load(path).graph.node}
    found = {x["op_name"] for x in interpreter(path)._get_ops_details()}
    return found - {"DELEGATE"}  # XNNPACK's, in place of some of the others.


def check_own_operators(path):
    """A file of LiteRT has no operator of TensorFlow or anybody else."""
    from tensorflow.lite.python import schema_py_generated as schema
    from tensorflow.lite.tools import flatbuffer_utils

    codes = flatbuffer_utils.read_model(path).operatorCodes
    builtin = {
        value: name
        for name, value in vars(schema.BuiltinOperator).items()
        if isinstance(value, int)
    }
    names = [builtin[max(c.builtinCode, c.deprecatedBuiltinCode)] for c in codes]
    assert "CUSTOM" not in names and all(c.customCode is None for c in codes), names
    assert not [name for name in names if "RANDOM" in name], names


def named_outputs(model, batch) -> dict:
    """The outputs of an encoder or task, with the names that an export gives them."""
    outputs = model(batch)
    if not isinstance(outputs, dict):
        return {"logits": outputs}
    outputs = dict(outputs)
    for index, states in enumerate(outputs.pop("hidden_states", ())):
        outputs[f"hidden_states_{index}"] = states
    return outputs


def randomized(model):
    """The model with random weights."""
    weights = [w for w in model.weights if "seed" not in w.path]
    randomize({w.path: w for w in weights}, scale=0.3)
    return model


def error(outputs, expected) -> float:
    """The largest difference of outputs of the same names."""
    assert set(outputs) == set(expected)
    return max(
        float(np.abs(outputs[name] - np.asarray(expected[name])).max())
        for name in outputs
    )


def check_same(outputs, expected, tolerance=1e-5):
    assert set(outputs) == set(expected)
    for name, output in outputs.items():
        assert output.dtype == np.float32, name
        assert_close(output, expected[name], tolerance, name)


def specs(model, shape) -> dict[str, keras.InputSpec]:
    """Inputs of one shape."""
    return {name: keras.InputSpec(shape=shape, dtype="int32") for name in model.input}
