"""A contender of Keras 3, whoever its encoder is by."""

import os

import keras
import runtimes

from peers.common import Contender, compiled, count, tensors


def contender(encoder, model, optimizer, task, batch):
    """A contender of Keras 3."""
    inputs, labels = tensors(batch)
    if task == "inference":
        del inputs["mask_positions"]
        return Contender(
            count(encoder),
            compiled(lambda x: encoder(x, training=False)["sequence_output"], inputs),
        )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, weighted_metrics=[])
    optimizer.build(model.trainable_variables)

    def step(*data):
        return model.train_step(data)["loss"]

    return Contender(count(model), compiled(step, inputs, labels))


def hidden_states(encoder):
    """The model of an encoder's last hidden states alone: no pooler, no other layer."""
    states = encoder.output["sequence_output"]
    return keras.Model(encoder.input, {"sequence_output": states})


def exports(make_model, sizes, folder, export=keras.Model.export):
    """The ways to run what is exported of a model, by the name of the runtime.

    Args:
        make_model: makes it; called when the first file is written.
        sizes: of the batch, for LiteRT alone: its files have fixed shapes, as on the
            devices that it is for.
        folder: where the files are, which are written once.
        export: as `keras.Model.export`.
    """

    def path_of(format, name, shape=(None, None)):
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            model = make_model()
            signature = {
                name: keras.InputSpec(x.dtype, shape, name=name)
                for name, x in model.input.items()
            }
            export(
                model, path, format=format, verbose=False, input_signature=[signature]
            )
        return path

    shape = (sizes.batch_size, sizes.length)
    tflite = f"{sizes.batch_size}x{sizes.length}.tflite"
    return {
        "SavedModel": lambda: runtimes.saved_model(
            path_of("tf_saved_model", "saved_model")
        ),
        "ONNX Runtime": lambda: runtimes.onnx_runtime(path_of("onnx", "model.onnx")),
        "LiteRT": lambda: runtimes.litert(path_of("litert", tflite, shape)),
    }
