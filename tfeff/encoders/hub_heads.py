"""The heads of KerasHub's tasks of an `Encoder`, as presets of tfeff keep them.

KerasHub names the class of a task in `task.json` and keeps its weights together, by the
order of its layers.
"""

import os
from collections.abc import Mapping

import keras
import numpy as np

from tfeff.utils.reading import raise_unreadable

_CLASSIFIER, _MASKED_LM = "tfeff>EncoderTextClassifier", "tfeff>EncoderMaskedLM"
_MASKED_LM_WEIGHTS = {
    "intermediate_dense/kernel": "dense/kernel",
    "intermediate_dense/bias": "dense/bias",
    "intermediate_layer_norm/gamma": "norm/gamma",
    "intermediate_layer_norm/beta": "norm/beta",
    "mlm_head/output_bias": "bias",
}
_HEADS = {_CLASSIFIER: ("logits", "pooler"), _MASKED_LM: ("masked_lm",)}


def hub_head_names(task: Mapping | None) -> tuple[str, ...]:
    """The names of the heads of a task; none of a task that is not KerasHub's.

    Args:
        task: what `task.json` holds; `None` where there is none.
    """
    name = None if task is None else task.get("registered_name")
    return _HEADS.get(name, ()) if isinstance(name, str) else ()


def hub_task(task: dict) -> dict | None:
    """The configuration of the model of tfeff that a task of KerasHub is.

    `None` for a masked language model, of which presets keep the head alone.

    Args:
        task: what `task.json` holds, of a task that has `hub_head_names`.

    Raises:
        ValueError: if tfeff has no such model, or the configuration is damaged.
    """
    if task["registered_name"] == _MASKED_LM:
        return None
    try:
        config = task["config"]
        config = config.get("states", config) | config
        activation = config["activation"]
        arguments = {name: config[name] for name in ("num_classes", "dropout")}
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"task.json is damaged: {error!r}") from error
    if activation not in ("linear", "softmax"):
        raise ValueError(
            "A text classifier of KerasHub must have the activation None or 'softmax' "
            "to be a `tfeff.tasks.Classifier`. Received in task.json: "
            f"activation={activation!r}"
        )
    return {
        "module": "tfeff.tasks.classifier",
        "class_name": "Classifier",
        "registered_name": "tfeff>Classifier",
        "config": arguments,
    }


def read_hub_heads(folder: str, task: Mapping) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of the heads of a task, by their names.

    Args:
        folder: the preset.
        task: what its `task.json` holds, of a task that has `hub_head_names`.

    Raises:
        ValueError: if a file is damaged.
        OSError: if the system refuses to read one.
    """
    kind = keras.saving.get_registered_object(task["registered_name"])
    try:
        model = kind.from_preset(os.path.abspath(folder), preprocessor=None)
        if task["registered_name"] == _MASKED_LM:
            return {"masked_lm": _masked_lm_arrays(model.get_layer("mlm_head"))}
        pooler, logits = (_arrays(model.get_layer(x)) for x in ("pooler", "logits"))
    except Exception as error:  # KerasHub and Keras raise what they came to.
        raise_unreadable(error, folder)
        raise ValueError(
            f"{folder!r} must hold a whole task of KerasHub. It is damaged: {error}"
        ) from error
    settings = {"pooling": np.array("cls"), "activation": np.array("tanh")}
    return {"pooler": pooler | settings, "logits": logits}


def _masked_lm_arrays(head):
    arrays = {
        _MASKED_LM_WEIGHTS[name]: keras.ops.convert_to_numpy(weight)
        for weight in head.weights
        if (name := "/".join(weight.path.split("/")[-2:])) in _MASKED_LM_WEIGHTS
    }
    activation = keras.activations.serialize(head.intermediate_activation)
    return arrays | {
        "activation": np.array(activation),
        "layer_norm_epsilon": np.array(head.layer_norm_epsilon),
    }


def _arrays(layer):
    return {w.name: keras.ops.convert_to_numpy(w) for w in layer.weights}
