"""The signature of any Keras model over an encoder: its own outputs by name."""

import inspect

import keras
import tensorflow as tf

from tfeff.compat.layers import sublayers
from tfeff.compat.models import input_structure
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import INPUTS, check_encoder
from tfeff.export.parts import limit_bytes, limit_cells
from tfeff.export.text_encoder import TextEncoder, text_function
from tfeff.layers.checks import check_model


def find_encoder(model: keras.Model, encoder: Encoder | None = None) -> Encoder:
    """The encoder that reads the texts: the given one, or the only one of the model.

    Raises:
        TypeError: if `model` is no Keras model, or `encoder` no `Encoder`.
        ValueError: if the model has none or several, or not the given one's weights.
    """
    check_model(model)
    if encoder is not None:
        own = {id(weight) for weight in model.weights}
        if not any(id(w) in own for w in check_encoder("encoder", encoder).weights):
            raise ValueError(
                "`encoder` must be the one of `model`, which has none of its weights. "
                f"Received: encoder={encoder!r}, model={model!r}"
            )
        return encoder
    found = {id(x): x for x in sublayers(model) if isinstance(x, Encoder)}
    if len(found) != 1:
        raise ValueError(
            "`model` must have one `tfeff.encoders.Encoder` among its layers, or "
            f"`encoder` must be given. Received: model={model!r}, which has "
            f"{len(found) or 'none'}"
        )
    return next(iter(found.values()))


def check_inputs(model: keras.Model) -> int | None:
    """The length of a functional model's inputs; None if they take any length.

    Raises:
        ValueError: if texts do not give the inputs, or these have different lengths.
    """
    lengths: set = {None}
    for name, x in _named_inputs(model):
        if name not in INPUTS or len(x.shape) != 2 or x.shape[0] is not None:
            raise ValueError(
                f"`model` must have no inputs but {', '.join(INPUTS)} of any number of "
                f"rows, which texts give. Received: model={model!r} with {name!r} of "
                f"the shape {tuple(x.shape)}. `model.export` writes a model that takes "
                "other inputs"
            )
        lengths.add(x.shape[1])
    first, *others = lengths - {None} or lengths
    if others:
        raise ValueError(
            "`model` must have inputs of one length. Received: lengths "
            f"{sorted([first, *others])}"
        )
    return first


def predict_endpoint(
    model: keras.Model, text_encoder: TextEncoder, pairs: bool, max_tokens: int
):
    """The function `predict` of texts `[B]`, or of them and their partners.

    The model gets all rows at once: its outputs may depend on the padded length, or
    on the other rows. So what it takes is bounded by `max_tokens`, and the size of the
    outputs is known when they are computed.
    """
    call = _call_of(model)
    # An eager call builds a model that was not called yet, and shows what fails.
    shape = [2, text_encoder.padded_length or 3]
    sample = tf.fill(shape, text_encoder.tokenizer.cls_token_id)
    inputs = dict(zip(INPUTS, (sample, tf.zeros_like(sample), tf.ones_like(sample))))
    try:
        outputs = call(inputs)
    except Exception as error:
        raise ValueError(
            f"`model` must have outputs for {', '.join(INPUTS)} of texts. Received: "
            f"model={model!r}, whose call ends in {type(error).__name__}: {error}"
        ) from error
    if not _by_name(outputs):
        raise ValueError(
            "`model` must have outputs. Received: "
            f"model={model!r}, which gives {outputs!r}"
        )

    def answer(rows, starts):
        rows = limit_cells("tokens", rows, max_tokens, text_encoder.padded_length)
        outputs = _by_name(call(text_encoder.packed_inputs(rows, starts)))
        return limit_bytes(outputs)

    return text_function(answer, text_encoder, pairs)


def _call_of(model):
    """The model's call as a function of a dict of the encoder's three inputs."""
    inputs = input_structure(model)
    if inputs is not None:
        names = [name for name, _ in _named_inputs(model)]
        return lambda given: model(
            keras.tree.pack_sequence_as(inputs, [given[name] for name in names]),
            training=False,
        )
    parameters = inspect.signature(model.call).parameters
    names = [name for name in INPUTS if name in parameters]
    if names:
        return lambda given: model(
            **{name: given[name] for name in names}, training=False
        )
    return lambda given: model(given, training=False)


def _named_inputs(model):
    """A functional model's inputs: each by its key, or by its name where it has none.

    They are in the order in which Keras flattens them. A model with a `call` alone has
    none.
    """
    inputs = input_structure(model)
    return [
        (path[-1] if path and isinstance(path[-1], str) else x.name, x)
        for path, x in keras.tree.flatten_with_path([] if inputs is None else inputs)
    ]


def _by_name(outputs):
    """Tensors by the path to them, joined by "_"; half precision as float32."""
    named = {}
    for path, value in keras.tree.flatten_with_path(outputs):
        if not path or not isinstance(path[0], str):
            path = ("output", *path)
        name = "_".join(map(str, path))
        if not isinstance(value, tf.Tensor) or name in named:
            raise TypeError(
                "`model` must give tensors of different names. Received: the output "
                f"{name!r}, {value!r}"
            )
        half = value.dtype in (tf.float16, tf.bfloat16)
        named[name] = tf.cast(value, tf.float32) if half else value
    return named
