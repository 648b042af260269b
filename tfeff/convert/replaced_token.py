"""Published discriminators and generators as the objective that pretrained them."""

import os
from typing import Any

import keras_hub
import numpy as np

from tfeff.convert.conversion import load_with_heads
from tfeff.convert.folders import without_scheme
from tfeff.encoders.preset_heads import read_heads
from tfeff.encoders.preset_layout import is_weights_file
from tfeff.objectives.replaced_token import ReplacedTokenDetection
from tfeff.storage.arguments import READ, paths
from tfeff.tasks.pretrained import find_preset, load_pretrained
from tfeff.tasks.saved_models import masked_lm_settings
from tfeff.utils.paths import check_path

# Arguments in which two encoders with the same tables agree.
_OF_TABLES = (
    "vocabulary_size",
    "embedding_dim",
    "num_segments",
    "position",
    "max_sequence_length",
    "embedding_layer_norm",
    "layer_norm_epsilon",
)


@paths(discriminator=READ, generator=READ)
def load_replaced_token(
    discriminator: str | os.PathLike,
    generator: str | os.PathLike | None = None,
    **settings: Any,
) -> tuple[ReplacedTokenDetection, keras_hub.tokenizers.Tokenizer | None]:
    """Reads a discriminator and a generator, such as ELECTRA's, to train them further.

    All weights of both are read, heads included. If both have the same embedding
    tables, as published ones do, the model shares them.

    Args:
        discriminator: a checkpoint that has the head of a discriminator: a source as
            for `convert`, or a preset.
        generator: likewise, with the head of a masked language model; `None` if the
            discriminator's checkpoint holds the generator too, as that of ELECTRA's
            authors does.
        **settings: arguments of `tfeff.objectives.ReplacedTokenDetection`, such as
            `discriminator_weight`.

    Returns:
        The compiled `tfeff.objectives.ReplacedTokenDetection` and its tokenizer, or
        `None` if there is none. `tfeff.tasks.save_pretrained` keeps both networks in
        one preset.

    Raises:
        TypeError, ValueError: as `convert`, and if a head is missing, or the
            vocabularies of both differ.

    Example:
    ```python
    model, tokenizer = tfeff.convert.load_replaced_token(
        "google/electra-small-discriminator", "google/electra-small-generator"
    )
    ```

    Reference:
        Clark et al., "ELECTRA", section 3.2.
    """
    encoder, head, tokenizer = _read("discriminator", discriminator, "replaced_token")
    source = discriminator if generator is None else generator
    other, masked_lm, others = _read("generator", source, "masked_lm")
    if tokenizer is None:
        tokenizer = others
    elif others is not None and others.get_vocabulary() != tokenizer.get_vocabulary():
        raise ValueError(
            "`generator` must have the vocabulary of `discriminator`. Received: "
            f"generator={source!r}, discriminator={discriminator!r}"
        )
    model = ReplacedTokenDetection(
        _beside(other, encoder),
        encoder,
        activation=head["activation"].item(),
        generator_head=masked_lm_settings(masked_lm),
        **settings,
    )
    model.heads()["replaced_token"].assign(head)
    model.get_layer("generator_head").as_head().assign(masked_lm)
    model.compile()
    return model, tokenizer


def _read(name, path, head):
    """The encoder, the arrays of its head and the tokenizer of a source or a preset."""
    path = check_path(name, without_scheme(path))
    try:
        if _is_preset(path):
            encoder, tokenizer = load_pretrained(path)
            heads = read_heads(find_preset(path))
        else:
            encoder, heads, tokenizer = load_with_heads(path, name == "generator")
    except ValueError as error:
        raise ValueError(
            f"`{name}` must be a source as for `convert`, or a preset. "
            f"Received: {name}={path!r}: {error}"
        ) from error
    if head not in heads:
        raise ValueError(
            f"`{name}` must hold an encoder with a head of {head!r}. "
            f"Received: {name}={path!r}, with the heads {sorted(heads)}"
        )
    return encoder, heads[head], tokenizer


def _is_preset(path):
    names = os.listdir(path) if os.path.isdir(path) else []
    return "preset" in names or any(map(is_weights_file, names))


def _beside(generator, discriminator):
    """A generator of these weights, with the discriminator's tables if it has them."""
    same = all(
        getattr(generator, name) == getattr(discriminator, name) for name in _OF_TABLES
    ) and all(map(np.array_equal, _tables(generator), _tables(discriminator)))
    config = generator.get_config() | {"name": f"{discriminator.name}_generator"}
    tables_of = discriminator if same else None
    copy = type(generator).from_config({**config, "tables_of": tables_of})
    values = {weight.path: weight for weight in generator.weights}
    for weight in copy.weights:
        weight.assign(values[weight.path])
    return copy


def _tables(encoder):
    """The values of the embedding's tables and of its norm."""
    projection = getattr(encoder.embedding, "projection", None)
    others = [] if projection is None else projection.weights
    known = {id(weight) for weight in others}
    own = [weight for weight in encoder.embedding.weights if id(weight) not in known]
    return [np.asarray(weight) for weight in sorted(own, key=lambda w: w.path)]
