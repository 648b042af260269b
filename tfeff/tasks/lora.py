"""LoRA adapters alone on disk, for a model on the same frozen weights."""

import dataclasses
import hashlib
import json
import os
from typing import Any

import numpy as np
import safetensors

from tfeff.compat.layers import sublayers
from tfeff.encoders import Encoder
from tfeff.encoders.adapters import adapted_projections, own_weights, projections
from tfeff.encoders.encoder import encoder_of
from tfeff.encoders.layer_names import layer_names, weight_names
from tfeff.objectives.heads import heads_of, weight_array, weights_beside
from tfeff.objectives.objective import Objective
from tfeff.storage.arguments import READ, REPLACE, paths
from tfeff.utils.files import atomic_file
from tfeff.utils.paths import check_path
from tfeff.utils.safetensors import write_safetensors

_FORMAT = "tfeff.lora.2"
_FACTORS = ("lora_kernel_a", "lora_kernel_b")


@paths(path=REPLACE)
def save_lora(model: Encoder | Objective, path: str | os.PathLike) -> None:
    """Writes what was trained beside a frozen encoder: its adapters, and the heads.

    The file has a digest of itself, and one of the frozen weights, without which it is
    of no use. If Keras' own `enable_lora` gave adapters to only some of the layers of a
    name, it loads into a model with adapters on the same layers. It keeps one rank, and
    a `lora_alpha` only if it equals that rank.

    Args:
        model: an encoder with adapters (`encoder.enable_lora`), or an objective or a
            task of one, whose other weights are written as a whole.
        path: file name that ends in `.safetensors`. A file of that name is replaced.

    Raises:
        TypeError: if `model` is of another type, such as a distillation, whose
            `model.student` is one.
        ValueError: if it has no adapters, adapters of several ranks, adapters with a
            `lora_alpha` that is not their rank, or one on an embedding; or if `path`
            has another ending.
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
    adapted = _by_name(adapted_projections(encoder), encoder)
    if not adapted:
        raise ValueError(
            "`model` must have adapters: `enable_lora` of its encoder adds them. "
            f"Received: model={model!r} without any"
        )
    _check_scale(adapted.values())
    arrays = {
        f"encoder/{name}/{factor}": weight_array(getattr(layer, factor))
        for name, layer in adapted.items()
        for factor in _FACTORS
    }
    arrays |= {
        f"head/{name}": weight_array(x) for name, x in _head_weights(model).items()
    }
    notes = {
        "format": _FORMAT,
        "rank": str(next(iter(adapted.values())).lora_rank),
        "layers": json.dumps(sorted(map(_last, adapted))),
        "heads": json.dumps(_settings(model)),
        "base_shapes": json.dumps(_shapes(encoder)),
        "base_sha256": _base_digest(encoder),
    }
    notes["sha256"] = _whole_digest(arrays, notes)
    with atomic_file(path) as new:
        write_safetensors(new, arrays, notes)


@paths(path=READ)
def load_lora(model: Encoder | Objective, path: str | os.PathLike) -> None:
    """Gives a model the adapters, and the heads, that `save_lora` wrote.

    Training can go on from them; the model must be compiled after this, or again, as
    after `enable_lora`. `tfeff.encoders.merge_lora` makes them part of the
    weights.

    Args:
        model: an encoder, or an objective or a task of one, with the frozen weights
            that the adapters were trained beside, and without adapters, or with
            adapters on the same layers, of the same rank and with a `lora_alpha` of
            that rank. An encoder alone leaves out the heads.
        path: the file.

    Raises:
        TypeError: if `model` is of another type, as for `save_lora`.
        ValueError: if the file is missing or damaged, or lacks adapters that it names;
            if the model has other adapters, or none although the file has them for only
            some of the layers of a name; or if the frozen weights, the heads or their
            settings are others. The model is then as it was.

    Example: see `save_lora`.
    """
    path, encoder = check_path("path", path), _encoder(model)
    adapted = _by_name(adapted_projections(encoder), encoder)
    arrays, notes = _read(path)
    _check_base(encoder, notes, path)
    rank, layers = notes.rank, notes.layers
    present = {x.lora_rank for x in adapted.values()}, set(map(_last, adapted))
    if adapted and present != ({rank}, set(layers)):
        raise ValueError(
            "`model` must have no adapters, or such of the same layers and rank. "
            f"Received: rank {sorted(present[0])} on {sorted(present[1])}; {path} has "
            f"rank {rank} on {layers}"
        )
    _check_scale(adapted.values())
    able = _by_name(projections(encoder), encoder)
    _check_factors(adapted or able, arrays, notes, path)
    heads = _head_weights(model)
    found = {name: x.shape for name, x in arrays.items() if name.startswith("head/")}
    expected = {f"head/{name}": tuple(x.shape) for name, x in heads.items()}
    if model is not encoder and found != expected:
        raise ValueError(
            "`model` must have the heads that were trained with the adapters. "
            f"Received: heads with {expected}; {path} has {found}"
        )
    settings = _settings(model)
    if heads and notes.heads != settings:
        raise ValueError(
            "`model` must have heads with the settings with which they were trained. "
            f"Received: {settings}; {path} has {notes.heads}"
        )
    if not adapted:
        if rank > encoder.hidden_dim:
            raise ValueError(
                "`path` must have adapters of a rank up to the encoder's `hidden_dim`, "
                f"{encoder.hidden_dim}. Received: {path} of rank {rank}"
            )
        names = {layer.name for name, layer in able.items() if _last(name) in layers}
        encoder.enable_lora(rank, sorted(names))
    for name, layer in _by_name(adapted_projections(encoder), encoder).items():
        for factor in _FACTORS:
            getattr(layer, factor).assign(arrays[f"encoder/{name}/{factor}"])
    for name, weight in heads.items():
        weight.assign(arrays[f"head/{name}"])


def _encoder(model):
    encoder = encoder_of(model)
    if encoder is None or not _is_of_one(model):
        raise TypeError(
            "`model` must be a `tfeff.encoders.Encoder`, or an objective or a task of "
            "one; of a distillation, its `model.student`. "
            f"Received: model={model!r:.80}"
        )
    return encoder


def _is_of_one(model):
    """Whether a model has no encoder beside its own, such as a distillation's teacher.

    The generator of an objective's encoder is a part of the objective.
    """
    encoders = [part for part in sublayers(model) if isinstance(part, Encoder)]
    return isinstance(model, Objective) or len(encoders) == 1


def _head_weights(model):
    """The weights of a model that are not its encoder's, by their names."""
    beside = {id(weight) for weight in weights_beside(_encoder(model), model)}
    return {n: x for n, x in weight_names(model).items() if id(x) in beside}


def _by_name(layers, encoder):
    """Layers of an encoder by their names."""
    wanted = {id(layer) for layer in layers}
    return {n: x for n, x in layer_names(encoder).items() if id(x) in wanted}


def _last(name):
    """The last part of the name of a layer."""
    return name.rpartition("/")[2]


def _settings(model):
    """The settings of each head of a model, by the heads' names."""
    return {name: dict(head.settings) for name, head in heads_of(model).items()}


def _shapes(encoder):
    return [list(weight.shape) for weight in own_weights(encoder)]


def _base_digest(encoder):
    return _digest(
        {f"{i:06d}": weight_array(x) for i, x in enumerate(own_weights(encoder))}
    )


def _digest(arrays):
    """The SHA-256 of the names, dtypes, shapes and values of arrays."""
    checksum = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        checksum.update(f"{name} {array.dtype.name} {array.shape}\n".encode())
        checksum.update(array.tobytes())
    return checksum.hexdigest()


def _whole_digest(arrays, notes):
    """SHA-256 of a file's arrays and of all its notes but this one."""
    covered = {name: note for name, note in notes.items() if name != "sha256"}
    text = json.dumps([covered, _digest(arrays)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class _Notes:
    """The description of the adapters in a file.

    Attributes:
        rank: integer, at least 1.
        layers: the names of the projections that have adapters.
        heads: the settings of each head.
        base_shapes: the shapes of the frozen weights.
        base_sha256: their digest.
    """

    rank: int
    layers: list[str]
    heads: Any
    base_shapes: list
    base_sha256: str

    @classmethod
    def of(cls, notes):
        """The notes as a file holds them; raises where one is missing or wrong."""
        found = cls(
            rank=int(notes["rank"]),
            layers=json.loads(notes["layers"]),
            heads=json.loads(notes["heads"]),
            base_shapes=json.loads(notes["base_shapes"]),
            base_sha256=notes["base_sha256"],
        )
        names = found.layers if isinstance(found.layers, list) else []
        if not names or not all(isinstance(name, str) for name in names):
            raise ValueError(f"its layers are {found.layers!r}")
        if found.rank < 1 or not isinstance(found.base_shapes, list):
            raise ValueError(f"its rank is {found.rank}, {found.base_shapes=}")
        return found


def _read(path):
    """The arrays and notes of a file; raises where it is missing or damaged."""
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            names = file.keys()
            arrays = {name: file.get_tensor(name) for name in names}
            notes = file.metadata() or {}
    except (OSError, TypeError, safetensors.SafetensorError) as error:
        raise ValueError(
            f"`path` must be a file of adapters. Received: path={path!r}, which is "
            f"missing or damaged: {error}"
        ) from error
    if notes.get("format") != _FORMAT:
        raise ValueError(
            "`path` must be a file of adapters that `save_lora` wrote. Received: "
            f"path={path!r}, of format {notes.get('format')!r}"
        )
    if _whole_digest(arrays, notes) != notes.get("sha256"):
        raise ValueError(
            f"`path` must be a whole file of adapters. Received: path={path!r}, which "
            "is damaged: its values differ from its digest"
        )
    try:
        return arrays, _Notes.of(notes)
    except (KeyError, RecursionError, ValueError) as error:
        raise ValueError(
            f"`path` must be a file of adapters with all notes. Received: path={path!r}"
            f", which is damaged: {type(error).__name__} {error}"
        ) from error


def _check_base(encoder, notes, path):
    if _shapes(encoder) != notes.base_shapes:
        received = (
            f"{len(_shapes(encoder))} weights of other shapes than the "
            f"{len(notes.base_shapes)} that {path} is for"
        )
    elif _base_digest(encoder) != notes.base_sha256:
        received = f"an encoder like that of {path}, with other weights"
    else:
        return
    raise ValueError(
        "`model` must have the encoder beside which the adapters were trained. "
        f"Received: {received}"
    )


def _check_scale(adapted):
    """Raises where adapters have a scale that a file does not keep."""
    scales = {(layer.lora_rank, layer.lora_alpha) for layer in adapted}
    if len(scales) > 1 or any(rank != alpha for rank, alpha in scales):
        raise ValueError(
            "`model` must have adapters of one rank, with a `lora_alpha` of that rank: "
            "files of adapters keep no other. `tfeff.encoders.merge_lora` does. "
            f"Received: adapters of (rank, alpha) {sorted(scales)}"
        )


def _check_factors(layers, arrays, notes, path):
    """Raises unless a file has both factors, of its rank, for each layer it names.

    It also raises if these are other layers than the given ones with its names.
    """
    found = {name for name in arrays if not name.startswith("head/")}
    given = {name.rpartition("/")[0] for name in found}
    if (
        found != {f"{layer}/{factor}" for layer in given for factor in _FACTORS}
        or set(map(_last, given)) != set(notes.layers)
        or {_inner_size(name, arrays[name]) for name in found} != {notes.rank}
    ):
        raise ValueError(
            "`path` must have the adapters that it names. "
            f"Received: path={path!r}, which names those of rank {notes.rank} on "
            f"{notes.layers} and has {sorted((n, arrays[n].shape) for n in found)}"
        )
    expected = {f"encoder/{x}" for x in layers if _last(x) in notes.layers}
    if given != expected:
        raise ValueError(
            "`model` must have adapters on the layers that the file has them for: "
            "Keras' `enable_lora` of a layer gives them to it alone. "
            f"Received: {sorted(expected)}; {path} has {sorted(given)}"
        )


def _inner_size(name, factor):
    """The size of the axis that both factors of an adapter have; None of a scalar."""
    axis = -1 if name.endswith(_FACTORS[0]) else 0
    return factor.shape[axis] if factor.ndim else None
