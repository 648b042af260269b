"""Uses of private names of Keras' configurations and files."""

import contextlib
import weakref
import zipfile
from collections.abc import Iterable
from typing import Any

import keras
from keras.src.backend.common import global_state
from keras.src.saving.saving_lib import H5IOStore, get_attr_skipset


def saves_model() -> bool:
    """Whether Keras saves a whole model: then configurations mark shared objects."""
    configs = global_state.get_global_attribute("shared_objects/id_to_config_map")
    return configs is not None


def shared_config(layer: keras.layers.Layer) -> dict:
    """The layer's configuration, with Keras' mark of a shared object in a saved model.

    Keras sets the mark on the second configuration of an object and, later, on the
    first, of which a functional model has made a copy by then. So layers that share one
    layer also share it in a loaded model. Elsewhere Keras does not read the mark, and
    configurations of equal layers would differ by it.
    """
    config = keras.layers.serialize(layer)
    if saves_model():
        config["shared_object_id"] = id(layer)
    return config


class SavedReference:
    """A layer that another one shares weights with, for configurations of models.

    Neither layer is within the other, and only the configuration of a whole model that
    is saved names it: there the loaded one shares the weights, too.

    Args:
        layer: the layer, or `None`.
    """

    def __init__(self, layer: keras.layers.Layer | None):
        # A strong reference would make its weights those of the other layer.
        self._layer = (lambda: None) if layer is None else weakref.ref(layer)

    def config(self, name: str) -> dict:
        """The entry of a configuration, `{}` where it names no other layer."""
        layer = self._layer()
        if layer is None or not saves_model():
            return {}
        return {name: shared_config(layer)}

    @staticmethod
    def revived(kind: type, config: dict, name: str) -> dict:
        """The configuration with a layer of this kind in place of its own one."""
        value = config.get(name)
        is_one = isinstance(value, dict) and (
            value.get("registered_name") == keras.saving.get_registered_name(kind)
        )
        if not is_one:
            return config
        return {**config, name: keras.saving.deserialize_keras_object(value)}


def untracked(value):
    """A copy of nested dicts, lists, tuples and arrays, in plain containers.

    A layer keeps containers as Keras' tracked ones, and a configuration that had these
    would change the layer with it. Arrays are lists then, as are those that Keras saved
    in a configuration, which no layer reads.
    """
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, dict):
        if value.get("class_name") == "__numpy__":
            return value["config"]["value"]
        return {name: untracked(below) for name, below in value.items()}
    if isinstance(value, (list, tuple)):
        kind = tuple if isinstance(value, tuple) else list
        return kind(untracked(below) for below in value)
    return value


def is_functional(config: dict) -> bool:
    """Whether a model's configuration is that of Keras' functional API."""
    return "input_layers" in config


def num_saved(archive: zipfile.ZipFile) -> int:
    """The number of variables of the optimizer in the archive of a saved model.

    Keras only warns where it is not that of the loaded one, and skips them.
    """
    store = H5IOStore("model.weights.h5", archive=archive)
    with contextlib.closing(store):
        return len(store.get("optimizer").keys())


class ReadsCopies(keras.StatelessScope):
    """In a thread, the variables of a model have the values that were copied of them.

    Keras makes an optimizer to compare with whenever it saves one, which no scope
    without state allows. It would look for what it found out the last time, if it kept
    that under the same name.

    Args:
        copies: pairs of a variable and its value, an array.
    """

    def __init__(self, copies: Iterable[tuple[keras.Variable, Any]]):
        super().__init__(copies, initialize_variables=False)
        global_state.set_global_attribute(
            "saving_attr_skiplist_Optimizer", get_attr_skipset("Optimizer")
        )

    def get_current_value(self, variable: keras.Variable) -> Any:
        """The copy. Without one the value would be that of another moment."""
        value = super().get_current_value(variable)
        if value is None:
            raise ValueError(f"there is no copy of the variable {variable.path}")
        return value
