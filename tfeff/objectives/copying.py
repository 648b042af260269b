"""Students that begin with weights of their teacher (DistilBERT)."""

from collections.abc import Sequence

import keras

from tfeff.encoders import Encoder
from tfeff.encoders.encoder import check_encoder
from tfeff.encoders.layer_names import weight_names
from tfeff.objectives.distillation.layer_map import make_layer_map
from tfeff.objectives.masked_lm import MaskedLM
from tfeff.utils.checks import differences

_PARTS = ("attention", "feedforward", "attention_norm", "feedforward_norm")
# Settings of a layer that do not change what its weights mean: places and costs, and a
# table that layers share, whose settings are the attention's, too.
_WITHOUT_MEANING = (
    *("name", "trainable", "dtype", "dropout", "axis", "epsilon"),
    *("layer_index", "num_layers", "disabled_heads", "query_block_size"),
    "relative_embedding",
)


def copy_layers(
    student: Encoder, teacher: Encoder, layer_map: str | Sequence[int] = "uniform"
) -> None:
    """Copies the teacher's embedding, and layer g(m) to layer m of the student.

    Tables of the embedding that the student does not have, such as that of segments,
    are left out; of a longer table of positions the first rows are copied.

    Args:
        student: a `tfeff.encoders.Encoder` with the teacher's kind of layer and widths.
            Weights that its layers share must come from one layer of the teacher, or
            from weights that the teacher's layers share.
        teacher: another one.
        layer_map: g, as in `tfeff.objectives.Distillation`.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if layers differ in their kind, settings or shapes, the layer map
            does not fit, or weights that the student's layers share would come from
            different ones. No weight is changed.

    Example:

    >>> import numpy as np
    >>> import tfeff
    >>> teacher = tfeff.encoders.build("bert_tiny", vocabulary_size=9)
    >>> student = tfeff.encoders.build("bert_tiny", vocabulary_size=9, num_layers=1)
    >>> copy_layers(student, teacher, "top")
    >>> one, two = (
    ...     np.array(block.attention.query_dense.kernel)
    ...     for block in (student.blocks[0], teacher.blocks[1])
    ... )
    >>> bool(np.all(one == two))
    True

    Reference:
        Sanh et al., "DistilBERT", section 3: "by taking one layer out of two".
    """
    check_encoder("student", student)
    check_encoder("teacher", teacher)
    layers = make_layer_map(layer_map, student.num_layers, teacher.num_layers)
    triples = _table_triples(student.embedding, teacher.embedding)
    for m, n in enumerate(layers, start=1):
        one, other = student.blocks[m - 1], teacher.blocks[n - 1]
        for part in _PARTS:
            name = f"{part} of layer {m}"
            triples += _layer_triples(name, getattr(one, part), getattr(other, part))
    _copy(triples)


def copy_head(student: MaskedLM, teacher: MaskedLM) -> None:
    """Copies the head of a masked language model, without the table of tokens.

    Args:
        student: a `tfeff.objectives.MaskedLM`.
        teacher: another one.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if the heads differ in their activation, the ε of their norm, or
            the shapes of their weights.

    Example:

    >>> import numpy as np
    >>> import tfeff
    >>> student, teacher = (
    ...     MaskedLM(tfeff.encoders.build("bert_tiny", vocabulary_size=9))
    ...     for _ in range(2)
    ... )
    >>> copy_head(student, teacher)
    >>> one, two = (model.head.own_weights() for model in (student, teacher))
    >>> all(np.array_equal(one[name], two[name]) for name in one)
    True
    """
    for name, model in (("student", student), ("teacher", teacher)):
        if not isinstance(model, MaskedLM):
            raise TypeError(
                f"`{name}` must be a `tfeff.objectives.MaskedLM`. "
                f"Received: {name}={model!r:.80}"
            )
    found = differences(student.head.settings, teacher.head.settings)
    if found:
        told = (f"{k} {ours!r}, of the teacher {theirs!r}" for k, ours, theirs in found)
        raise ValueError(
            "`student` must have a head like the teacher's to copy it. Received: "
            f"{'; '.join(told)}"
        )
    one, other = student.head.own_weights(), teacher.head.own_weights()
    _copy([(name, one[name], other[name]) for name in one])


def _table_triples(student, teacher):
    """The name, the student's and the teacher's weight, for all of the embedding."""
    one, other = weight_names(student), weight_names(teacher)
    if missing := sorted(set(one) - set(other)):
        raise ValueError(
            "`student` must have layers like the teacher's to copy them. Received: a "
            f"student with {', '.join(missing)}, which the teacher has not"
        )
    # Without a norm or a projection, layers would read inputs of another scale.
    tables = ("position_embedding/", "segment_embedding/")
    left = sorted(x for x in set(other) - set(one) if not x.startswith(tables))
    if left:
        raise ValueError(
            "`student` must have layers like the teacher's to copy them. Received: a "
            f"student without {', '.join(left)} of the teacher's embedding"
        )
    return [(name, weight, other[name]) for name, weight in one.items()]


def _layer_triples(name, student, teacher):
    """A name, the student's weight and the teacher's, for each weight of a layer."""
    one, other = (_meaning(layer) for layer in (student, teacher))
    found = [
        f"{key} {ours!r} in the student, {theirs!r} in the teacher"
        for key, ours, theirs in differences(one, other)
    ]
    if found:
        raise ValueError(
            "`student` must have layers like the teacher's to copy them. Received: "
            f"{name} with {'; '.join(found)}"
        )
    pairs = zip(student.weights, teacher.weights)
    return [(f"{name}: {weight.name}", weight, source) for weight, source in pairs]


def _meaning(layer):
    """The kind of a layer, and the settings that change what its weights mean."""
    config = {
        name: value
        for name, value in layer.get_config().items()
        if name not in _WITHOUT_MEANING and not name.endswith("initializer")
    }
    names = [weight.name for weight in layer.weights]
    return {"kind": type(layer).__name__, "weights": names, **config}


def _copy(triples):
    """Copies all weights, or none."""
    sources = {}
    for name, to, source in triples:
        if sources.setdefault(id(to), source) is not source:
            raise ValueError(
                "`student` must not share weights that would come from different "
                f"layers of the teacher. Received: {name}"
            )
    values = []
    for name, to, source in triples:
        value = keras.ops.convert_to_numpy(source)
        if name.startswith("position_embedding"):
            value = value[: to.shape[0]]
        if value.shape != tuple(to.shape):
            raise ValueError(
                "`student` must have the teacher's sizes to copy its layers. Received: "
                f"{name} of shape {tuple(to.shape)} in the student, {value.shape} in "
                "the teacher"
            )
        values.append(value)
    for (_, to, _), value in zip(triples, values):
        to.assign(value)
