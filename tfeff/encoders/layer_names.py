"""Names of a model's layers that are the same in every process.

Keras gives a layer without a name of its own a number, which counts all layers of its
class that the process has made: the same model has other names in each process.
"""

import re

import keras

from tfeff.compat.layers import direct_sublayers, sublayers


def layer_names(model: keras.Model) -> dict[str, keras.layers.Layer]:
    """The layers of a model, but for those of models inside it, by their names.

    A name is that of the layer below that of its owner, such as
    `"block_0/attention/query"`. Of layers that Keras has named, the number is
    left out; layers of one owner and name are numbered, in their order: `"dense"`,
    `"dense#1"`.

    Args:
        model: the model. An owner comes before its layers.
    """
    _, *layers = sublayers(model)
    parts = [layer for layer in layers if isinstance(layer, keras.Model)]
    known = {id(layer) for part in parts for layer in sublayers(part)}
    return _names_below(model, "", known)


def weight_names(owner: keras.layers.Layer) -> dict[str, keras.Variable]:
    """The weights of a layer or model by their names below it.

    A name is that of the weight below that of its layer, such as
    `"block_0/attention/query/kernel"`; models inside a model count as layers.

    Args:
        owner: the layer or model.
    """
    names = {}
    for name, layer in {"": owner, **_names_below(owner, "", {id(owner)})}.items():
        counts: dict[str, int] = {}
        for weight in layer.weights:  # The last name is that of the innermost layer.
            names[id(weight)] = f"{name}/{_numbered(weight.name, counts)}".strip("/")
    return {names[id(weight)]: weight for weight in owner.weights}


def _names_below(owner, prefix, known) -> dict[str, keras.layers.Layer]:
    """The layers of an owner that are not known yet, and those below them."""
    found: dict[str, keras.layers.Layer] = {}
    counts: dict[str, int] = {}
    for layer in direct_sublayers(owner):
        if id(layer) not in known:
            known.add(id(layer))
            name = prefix + _numbered(_stem(layer), counts)
            found[name] = layer
            found |= _names_below(layer, f"{name}/", known)
    return found


def _stem(layer):
    """The layer's name, without the number of one that Keras has made."""
    stem = re.sub(r"_\d+$", "", layer.name)
    kind = type(layer).__name__
    is_automatic = stem.replace("_", "") == kind.replace("_", "").lower()
    return stem if is_automatic else layer.name


def _numbered(name, counts):
    """The name, with a number from the second of its kind on."""
    number = counts.get(name, 0)
    counts[name] = number + 1
    return f"{name}#{number}" if number else name
