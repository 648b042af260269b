"""Whether Keras will load what it saves of a model, asked before a training."""

import json

import keras

from tfeff.compat.saving import is_functional
from tfeff.utils.random_state import kept_random_state

# Packages whose classes Keras loads without their being registered.
_LOADED = ("keras", "keras_hub", "builtins")


def check_can_be_loaded(model: keras.Model) -> None:
    """Raises where Keras would not save the configuration of a model, or not load it.

    Raises:
        ValueError: naming the classes and functions that are not registered, or that
            are not made anew by their configurations.
    """
    try:
        unknown = sorted({*_unknown(keras.saving.serialize_keras_object(model))})
    except Exception as error:  # From anybody's `get_config`.
        raise ValueError(
            "`make_model` must make a model that can be saved. Received: a "
            f"{type(model).__name__}, whose configuration cannot be made: "
            f"{type(error).__name__}: {error}"
        ) from error
    if unknown:
        raise ValueError(
            "`make_model` must make a model whose checkpoints can be loaded: what is "
            "not of Keras must be registered by "
            "`keras.saving.register_keras_serializable`. Received: a "
            f"{type(model).__name__} with {', '.join(unknown)}"
        )
    for part in _parts(model):
        try:
            config = keras.saving.serialize_keras_object(part)["config"]
            with kept_random_state():
                # A file gives the configuration as JSON.
                type(part).from_config(json.loads(json.dumps(config)))
        except Exception as error:  # From anybody's `from_config`.
            reason = str(error).strip().rpartition("\n")[2]
            raise ValueError(
                "`make_model` must make a model whose checkpoints can be loaded: what "
                "`get_config` returns must be what its class is made with. Received: a "
                f"{type(model).__name__} with {type(part).__name__}: "
                f"{type(error).__name__}: {reason}"
            ) from error


def _parts(model):
    """The layers, and models, of a user's own classes that Keras makes anew.

    A model that makes weights in its `__init__` is there twice for a moment.
    """
    is_graph = isinstance(model, keras.Model) and is_functional(model.get_config())
    if is_graph or isinstance(model, keras.Sequential):
        for layer in model.layers:
            yield from _parts(layer)
    elif type(model).__module__.partition(".")[0] not in (*_LOADED, "tfeff"):
        yield model


def _unknown(config):
    """The names of what a configuration has, and Keras does not find."""
    if isinstance(config, dict):
        if "class_name" in config and not _is_known(config):
            is_function = config["class_name"] == "function"
            yield str(config["config" if is_function else "class_name"]).strip("_")
        config = [*config.values()]
    if isinstance(config, (list, tuple)):
        for item in config:
            yield from _unknown(item)


def _is_known(config):
    """Whether Keras finds the class or the function of a configuration."""
    if config["class_name"] in ("function", "__lambda__"):
        try:
            keras.saving.deserialize_keras_object(config)
        except (TypeError, ValueError):  # Lambdas, unless the user has allowed them.
            return False
        return True
    if "registered_name" not in config:  # Keras knows the type by its name.
        return True
    package = str(config.get("module")).partition(".")[0]
    if package in _LOADED:
        return True
    registered = config["registered_name"]
    return keras.saving.get_registered_object(registered) is not None
