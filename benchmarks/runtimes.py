"""Runtimes of exported encoders: each reads a file, then runs batches.

A batch is the dict of `peers.make_batch`; running it gives the last hidden states
`[B, T, D]`. Inputs are matched by their names: whoever exported, the ids, the segments
and the mask are told by "mask", "segment" or "type" in them.
"""

import os
from collections.abc import Callable

import numpy as np

# From a batch to a function that runs it.
Runner = Callable[[dict[str, np.ndarray]], Callable[[], np.ndarray]]


def saved_model(path: str) -> Runner:
    """TensorFlow, of a SavedModel."""
    import tensorflow as tf

    loaded = tf.saved_model.load(path)
    serve = loaded.signatures["serving_default"]
    names = list(serve.structured_input_signature[1])

    def runner(batch):
        tensors = {name: tf.constant(_of(name, batch), "int32") for name in names}

        def run():
            (states,) = serve(**tensors).values()
            return states.numpy()

        run.model = loaded  # Its weights are there as long as it is.
        return run

    return runner


def onnx_runtime(path: str) -> Runner:
    """ONNX Runtime on all cores, with all its own optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    session = onnxruntime.InferenceSession(
        path, options, providers=["CPUExecutionProvider"]
    )

    def runner(batch):
        feed = {
            x.name: _of(x.name, batch).astype(
                "int64" if x.type == "tensor(int64)" else "int32"
            )
            for x in session.get_inputs()
        }
        return lambda: session.run(None, feed)[0]

    return runner


def litert(path: str) -> Runner:
    """LiteRT on all cores: XNNPACK where it has the operation, else its own kernels."""
    import tensorflow as tf

    interpreter = tf.lite.Interpreter(path, num_threads=os.cpu_count())
    interpreter.allocate_tensors()
    (output,) = interpreter.get_output_details()

    def runner(batch):
        inputs = [
            (x["index"], _of(x["name"], batch).astype(x["dtype"]))
            for x in interpreter.get_input_details()
        ]

        def run():
            for index, value in inputs:
                interpreter.set_tensor(index, value)
            interpreter.invoke()
            return interpreter.get_tensor(output["index"])

        return run

    return runner


def _of(name, batch):
    """The part of the batch that an input of this name takes."""
    if "mask" in name:
        return batch["padding_mask"]
    return batch["segment_ids" if "segment" in name or "type" in name else "token_ids"]
