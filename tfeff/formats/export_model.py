"""Models as files that take token ids: SavedModel, LiteRT and ONNX."""

import contextlib
import importlib.util
import logging
import os
import re
import tempfile
from typing import Any

import keras
from keras import ops

from tfeff.compat.layers import other_policies, policy_of, sublayers
from tfeff.layers.checks import check_model
from tfeff.layers.scored_attention import ScoredAttention
from tfeff.ops.kernels.backends import forward_only
from tfeff.storage.arguments import WRITE, paths
from tfeff.utils.backend import check_tensorflow
from tfeff.utils.checks import check_choice
from tfeff.utils.files import new_path
from tfeff.utils.loggers import quieter
from tfeff.utils.paths import check_new_path

FORMATS = ("tf_saved_model", "litert", "onnx", "openvino", "torch")  # Keras' own.
_OF_TENSORFLOW = FORMATS[:3]
# The endings that Keras requires of their files' names.
_ENDINGS = {"litert": ".tflite", "openvino": ".xml", "torch": ".pt2"}
# Inputs that a signature may lack, and what they are then, computed from the token ids.
_DEFAULTS = {"segment_ids": ops.zeros_like, "padding_mask": ops.ones_like}
# LiteRT's converter names the operator, and the path of the operation in the model.
_PLACE = re.compile(r'fused\["(\w+):", "([^"@]+)@')


@paths(filepath=WRITE)
def export_model(
    model: keras.Model,
    filepath: str | os.PathLike,
    format: str = "tf_saved_model",
    verbose: bool | None = None,
    input_signature: Any = None,
    **kwargs: Any,
) -> None:
    """As `keras.Model.export`, of any model with layers of tfeff.

    In LiteRT and ONNX, which compute in float32, attentions of mixed precision do so
    too, and all queries are computed at once: converters cannot translate loops over
    blocks of queries. A LiteRT file has LiteRT's own operators alone.

    Args:
        model: the `keras.Model`.
        filepath: the file to write, whose name ends in `.tflite` for LiteRT, or the
            folder of a SavedModel. It must not exist yet, and is there only once it is
            complete.
        format: `"tf_saved_model"`, `"litert"`, `"onnx"`, or another one of Keras.
        verbose: whether to print the name of what was written; `None` does.
        input_signature: as in `keras.Model.export`; by default, sequences and batches
            have any size.
        **kwargs: further arguments of `keras.Model.export`, such as `opset_version` for
            ONNX, or `optimizations` for LiteRT.

    Raises:
        TypeError: if `model` is not a `keras.Model`, or another argument has a wrong
            type.
        ValueError: if `filepath` exists; if the format is unknown or has no operator
            for a layer, whose path the message has, or `model` has weights in half or
            double precision; if Keras runs on another backend than TensorFlow, but for
            the formats of PyTorch and OpenVINO.
        ImportError: if a package of the format is missing.

    Example:

    ```python
    import keras, tfeff

    hidden = keras.Input((None, 64))
    attention = tfeff.layers.OneHeadAttention(num_parts=4)
    model = keras.Model(hidden, attention(hidden))
    tfeff.export.export_model(model, "attention.tflite", format="litert")
    ```
    """
    check_model(model)
    check_choice("format", format, FORMATS)
    if format in _OF_TENSORFLOW:
        check_tensorflow(f"`export` with format={format!r}")
    if not isinstance(verbose, bool | None):
        raise TypeError(
            f"`verbose` must be a bool or None. Received: verbose={verbose!r:.80}"
        )
    if input_signature is not None:
        input_signature = _listed(input_signature)
    filepath = check_new_path("filepath", filepath)
    if format in _EXPORTS:
        _check_weights(model, format)
    if not filepath.endswith(ending := _ENDINGS.get(format, "")):
        raise ValueError(
            f"`filepath` must end in {ending!r}, for format={format!r}. "
            f"Received: filepath={filepath!r}"
        )
    if input_signature is None and getattr(model, "inputs", None):
        # Keras infers it too, but not for ONNX of a model that was never called.
        input_signature = [keras.tree.map_structure(_spec, model.input)]
    arguments = dict(verbose=False, input_signature=input_signature, **kwargs)
    with new_path("filepath", filepath) as unfinished:
        if format in _EXPORTS:
            with _whole_and_exact(model):
                _EXPORTS[format](model, unfinished, **arguments)
        else:
            with forward_only(), quieter("tensorflow", logging.WARNING):
                model.export(unfinished, format=format, **arguments)
    if verbose is not False:
        # The folder is a temporary one where `filepath` is a URL.
        print(f"Saved {os.path.basename(filepath)!r}.")


def export_outputs(
    name: str, inputs: dict, outputs: dict, filepath, input_signature=None, **kwargs
) -> None:
    """`export_model` of the functional model from named inputs to named outputs.

    Args:
        name: the name of the model, which is in messages about its layers.
        inputs, outputs: `keras.KerasTensor` by name.
        filepath: as in `export_model`.
        input_signature: dict of a `keras.InputSpec` for each input, or a list with that
            dict. It may lack `padding_mask`, for texts without padding, and
            `segment_ids`, for one segment. By default, all sizes are unknown.
        **kwargs: further arguments of `export_model`.
    """
    model = keras.Model(inputs, outputs, name=name)
    specs = _specs(inputs, input_signature)
    if len(specs) < len(inputs):
        given = {
            name: keras.Input(spec.shape[1:], dtype=spec.dtype, name=name)
            for name, spec in specs.items()
        }
        others = {x: f(given["token_ids"]) for x, f in _DEFAULTS.items()}
        filled = {x: given.get(x, others.get(x)) for x in inputs}
        model = keras.Model(given, model(filled))
    export_model(model, filepath, input_signature=[specs], **kwargs)


def _specs(inputs, signature) -> dict[str, keras.InputSpec]:
    """The shapes and names of the inputs of an exported model."""
    if isinstance(signature, list | tuple) and len(signature) == 1:
        (signature,) = signature
    signature = inputs if signature is None else signature
    expected = {name: len(x.shape) for name, x in inputs.items()}
    if not isinstance(signature, dict) or any(
        expected.get(name) != len(getattr(spec, "shape", None) or ())
        for name, spec in signature.items()
    ):
        raise ValueError(
            "`input_signature` must be a dict of `keras.InputSpec` by name, with as "
            f"many dimensions as the model's inputs, {expected}. "
            f"Received: input_signature={signature!r}"
        )
    for name, spec in signature.items():
        if spec.dtype not in (None, inputs[name].dtype):
            raise ValueError(
                f"`input_signature` must have the dtypes of the model's inputs, for "
                f"`{name}` {inputs[name].dtype}, or none. Received: {spec!r}"
            )
    missing = [x for x in inputs if x not in signature and x not in _DEFAULTS]
    if missing:
        raise ValueError(
            f"`input_signature` must have {', '.join(f'`{x}`' for x in missing)}, "
            "without which the model has no outputs; it may lack "
            f"{' and '.join(f'`{x}`' for x in _DEFAULTS)}. "
            f"Received: input_signature={signature!r}"
        )
    return {
        name: keras.InputSpec(
            shape=tuple(signature[name].shape), dtype=inputs[name].dtype, name=name
        )
        for name in inputs
        if name in signature
    }


def _listed(signature) -> list:
    """The signature as a list with the structure of one argument."""
    listed = [signature] if isinstance(signature, dict) else signature
    specs = keras.tree.flatten(listed)
    if (
        not isinstance(listed, list | tuple)
        or not specs
        or not all(hasattr(x, "shape") and hasattr(x, "dtype") for x in specs)
    ):
        raise TypeError(
            "`input_signature` must be a list with the structure of the model's "
            "inputs, of `keras.InputSpec`. "
            f"Received: input_signature={signature!r:.80}"
        )
    return list(listed)


def _spec(tensor):
    return keras.InputSpec(shape=tensor.shape, dtype=tensor.dtype, name=tensor.name)


def _check_weights(model, format):
    """Raises unless the weights are integers or float32, and no layer has float8."""
    for layer in sublayers(model):
        if layer.quantization_mode == "float8":
            raise ValueError(
                f"`model` must not be quantized to float8, to be exported with "
                f"format={format!r}. Received: the layer {layer.path}"
            )
    for weight in model.weights:
        if keras.backend.is_float_dtype(weight.dtype) and weight.dtype != "float32":
            raise ValueError(
                f"`model` must have weights in float32, to be exported with "
                f"format={format!r}. Received: {weight.dtype} in {weight.path}"
            )


@contextlib.contextmanager
def _whole_and_exact(model):
    """Within it, attentions compute all queries at once, and mixed precision is off."""
    attentions, policies = [], []
    for layer in sublayers(model):
        if isinstance(layer, ScoredAttention):
            attentions.append(layer)
        # Policies of quantized layers have the dtype in them: int8_from_mixed_bfloat16.
        name = policy_of(layer).name
        exact = re.sub("mixed_b?float16", "float32", name)
        if exact != name:
            policies.append((layer, keras.dtype_policies.get(exact)))
    before = [attention.is_converted for attention in attentions]
    with other_policies(policies):
        try:
            for attention in attentions:
                attention.is_converted = True
            yield
        finally:
            for attention, value in zip(attentions, before):
                attention.is_converted = value


def _export_litert(model, filepath, **kwargs):
    """Writes LiteRT's own operators, unless `target_spec` allows others."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        builtin = {"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS]}
        kwargs.setdefault("target_spec", builtin)
    try:
        model.export(filepath, format="litert", **kwargs)
    except Exception as error:
        places = [x for x in _PLACE.findall(str(error)) if "/" in x[1]]
        if not places:
            raise
        raise _no_operators("litert", model, places) from None


def _export_onnx(model, filepath, **kwargs):
    """Writes what ONNX Runtime knows and makes faster."""
    needed = ["onnx"]
    if keras.backend.backend() == "tensorflow":
        needed.append("tf2onnx")
        kwargs.setdefault("opset_version", 17)  # The first one with layer norms.
    # A folder `onnx` of models is found as a package, too, but has no file of its own.
    found = map(importlib.util.find_spec, needed)
    if any(spec is None or spec.origin is None for spec in found):
        raise ImportError(
            f"format='onnx' needs {' and '.join(needed)}. "
            "Install them: pip install 'tfeff[onnx]'"
        )
    import onnx

    from tfeff.formats import onnx_graph, onnx_simplify

    # The folder is beside the file, so that no other disk can be full.
    beside = os.path.dirname(filepath)
    with (
        tempfile.TemporaryDirectory(dir=beside) as folder,
        quieter("tf2onnx", logging.CRITICAL),  # Its gaps are found below, by layer.
    ):
        path = os.path.join(folder, "model.onnx")
        model.export(path, format="onnx", **kwargs)
        exported = onnx.load(path)
    onnx_graph.write_out(exported.graph)
    places = onnx_graph.unknown_operators(exported.graph)
    if places:
        raise _no_operators("onnx", model, places)
    onnx_simplify.simplify(exported)
    onnx.save(exported, filepath)


def _no_operators(format, model, places):
    """The error for operations, by operator and path, that a format does not have."""
    names = {layer.name for layer in sublayers(model)}

    def layer_of(path):
        *layers, _ = path.split("/")
        # TensorFlow adds a number to a name that it has seen before.
        layers = (x if x in names else re.sub(r"_\d+$", "", x) for x in layers)
        return "/".join(x for x in layers if x in names)

    found = dict.fromkeys((operator, layer_of(path)) for operator, path in places)
    listed = "; ".join(f"{operator} of {layer}" for operator, layer in found)
    hint = ""
    if format == "litert" and all("StridedSlice" in name for name, _ in found):
        hint = (
            ". Indexing with None, as `x[..., None]`, is one; `ops.expand_dims` is none"
        )
    return ValueError(
        f"`model` must have operators that format={format!r} has. Received: "
        f"{listed}{hint}"
    )


_EXPORTS = {"litert": _export_litert, "onnx": _export_onnx}
