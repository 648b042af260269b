"""LoRA adapters alone on disk, for a model on the same frozen weights."""

import hashlib
import json
import os

import keras
import numpy as np
import safetensors
import safetensors.numpy

from tfeff.encoders import Encoder
from tfeff.encoders.adapters import adapted_layers, own_weights
from tfeff.encoders.encoder import encoder_of
from tfeff.objectives.objective import Objective
from tfeff.storage.arguments import READ, REPLACE, paths
from tfeff.utils.checks import check_path
from tfeff.utils.files import atomic_file

_FORMAT = "tfeff.lora.1"
_FACTORS = ("lora_kernel_a", "lora_kernel_b")


@paths(path=REPLACE)
def save_lora(model: Encoder | Objective, path: str | os.PathLike) -> None:
    """Writes what was trained beside a frozen encoder: its adapters, and the heads.

    The file has a digest of itself, and one of the frozen weights, without which it is
    of no use.

    Args:
        model: an encoder with adapters (`encoder.enable_lora`), or an objective or a
            task of one, whose other weights are written as a whole.
        path: file name that ends in `.safetensors`. A file of that name is replaced.

    Raises:
        TypeError: if `model` is of another type.
        ValueError: if it has no adapters, or `path` another ending.
        OSError: if the file cannot be written; what was there then still is.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset")

    model = tfeff.tasks.Classifier(encoder, num_classes=2)
    encoder.enable_lora(rank=4)
    model.compile()  # Then `model.fit(...)`: the adapters and the head train.
    tfeff.tasks.save_lora(model, "green.safetensors")

    encoder, tokenizer = tfeff.tasks.load_pretrained("preset")
    model = tfeff.tasks.Classifier(encoder, num_classes=2)
    tfeff.tasks.load_lora(model, "green.safetensors")
    ```

    Reference:
        Hu et al., "LoRA", 2021.
    """
    path, encoder = check_path("path", path), _encoder(model)
    if not path.endswith(".safetensors"):
        raise ValueError(f"`path` must end in .safetensors. Received: path={path!r}")
    adapted = adapted_layers(encoder)
    if not adapted:
        raise ValueError(
            "`model` must have adapters: `enable_lora` of its encoder adds them. "
            f"Received: model={model!r} without any"
        )
    arrays = {
        f"encoder/{layer.path}/{factor}": _array(getattr(layer, factor))
        for layer in adapted
        for factor in _FACTORS
    }
    arrays |= {f"head/{name}": _array(x) for name, x in _heads(model).items()}
    notes = {
        "format": _FORMAT,
        "rank": str(adapted[0].lora_rank),
        "layers": json.dumps(sorted({layer.name for layer in adapted})),
        "heads": json.dumps(_settings(model)),
        "base_shapes": json.dumps(_shapes(encoder)),
        "base_sha256": _base_digest(encoder),
        "sha256": _digest(arrays),
    }
    with atomic_file(path) as new:
        safetensors.numpy.save_file(arrays, new, notes)


@paths(path=READ)
def load_lora(model: Encoder | Objective, path: str | os.PathLike) -> None:
    """Gives a model the adapters, and the heads, that `save_lora` wrote.

    Training can go on from them; `tfeff.encoders.merge_lora` makes them part of the
    weights.

    Args:
        model: an encoder, or an objective or a task of one, with the frozen weights
            that the adapters were trained beside, and without adapters or with such of
            the same layers and rank. An encoder alone leaves out the heads.
        path: the file.

    Raises:
        TypeError: if `model` is of another type.
        ValueError: if the file is missing or damaged; if the frozen weights, the heads
            or their settings are others.

    Example: see `save_lora`.
    """
    path, encoder = check_path("path", path), _encoder(model)
    arrays, notes = _read(path)
    _check_base(encoder, notes, path)
    heads = {} if model is encoder else _heads(model)
    found = {name: x.shape for name, x in arrays.items() if name.startswith("head/")}
    expected = {f"head/{name}": tuple(x.shape) for name, x in heads.items()}
    if heads and found != expected:
        raise ValueError(
            "`model` must have the heads that were trained with the adapters. "
            f"Received: heads with {expected}; {path} has {found}"
        )
    settings = _settings(model)
    # Files of earlier versions do not have them.
    trained = json.loads(notes.get("heads", "null"))
    if heads and trained not in (None, settings):
        raise ValueError(
            "`model` must have heads with the settings with which they were trained. "
            f"Received: {settings}; {path} has {trained}"
        )
    rank, layers = int(notes["rank"]), json.loads(notes["layers"])
    adapted = adapted_layers(encoder)
    present = {layer.lora_rank for layer in adapted}, {x.name for x in adapted}
    if adapted and present != ({rank}, set(layers)):
        raise ValueError(
            "`model` must have no adapters, or such of the same layers and rank. "
            f"Received: rank {sorted(present[0])} on {sorted(present[1])}; {path} has "
            f"rank {rank} on {layers}"
        )
    if not adapted:
        encoder.enable_lora(rank, layers)
    for layer in adapted_layers(encoder):
        for factor in _FACTORS:
            getattr(layer, factor).assign(arrays[f"encoder/{layer.path}/{factor}"])
    for name, weight in heads.items():
        weight.assign(arrays[f"head/{name}"])


def _encoder(model):
    encoder = encoder_of(model)
    if encoder is None:
        raise TypeError(
            "`model` must be a `tfeff.encoders.Encoder`, or an objective or a task of "
            f"one. Received: model={model!r}"
        )
    return encoder


def _heads(model):
    """The weights of a model that are not its encoder's, by their paths."""
    inside = {id(weight) for weight in _encoder(model).weights}
    return {x.path: x for x in model.weights if id(x) not in inside}


def _settings(model):
    """The settings of each head of a model, by the heads' names."""
    heads = getattr(model, "heads", dict)()
    return {name: dict(head.settings) for name, head in heads.items()}


def _array(weight):
    array = keras.ops.convert_to_numpy(weight)
    # NumPy, and with it safetensors, has no bfloat16, whose values float32 has.
    return array.astype("float32") if array.dtype.name == "bfloat16" else array


def _shapes(encoder):
    return [list(weight.shape) for weight in own_weights(encoder)]


def _base_digest(encoder):
    return _digest({f"{i:06d}": _array(x) for i, x in enumerate(own_weights(encoder))})


def _digest(arrays):
    """SHA-256 of arrays: names, dtypes, shapes and values."""
    checksum = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        checksum.update(f"{name} {array.dtype.name} {array.shape}\n".encode())
        checksum.update(array.tobytes())
    return checksum.hexdigest()


def _read(path):
    """The arrays and notes of a file; raises where it is missing or damaged."""
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            names = file.keys()
            arrays = {name: file.get_tensor(name) for name in names}
            notes = file.metadata() or {}
    except (OSError, safetensors.SafetensorError) as error:
        raise ValueError(
            f"`path` must be a file of adapters. Received: path={path!r}, which is "
            f"missing or damaged: {error}"
        ) from error
    if notes.get("format") != _FORMAT:
        raise ValueError(
            "`path` must be a file of adapters that `save_lora` wrote. Received: "
            f"path={path!r}, of format {notes.get('format')!r}"
        )
    if _digest(arrays) != notes["sha256"]:
        raise ValueError(
            f"`path` must be a whole file of adapters. Received: path={path!r}, which "
            "is damaged: its values differ from its digest"
        )
    return arrays, notes


def _check_base(encoder, notes, path):
    shapes = json.loads(notes["base_shapes"])
    if _shapes(encoder) != shapes:
        received = (
            f"{len(_shapes(encoder))} weights of other shapes than the {len(shapes)} "
            f"that {path} is for"
        )
    elif _base_digest(encoder) != notes["base_sha256"]:
        received = f"an encoder like that of {path}, with other weights"
    else:
        return
    raise ValueError(
        "`model` must have the encoder beside which the adapters were trained. "
        f"Received: {received}"
    )
