"""Published checkpoints as encoders, in memory and as presets on disk."""

import dataclasses
import os
from collections.abc import Mapping

import keras_hub

from tfeff.convert.sources import find
from tfeff.convert.tokenizer import make_tokenizer
from tfeff.convert.weights import assign
from tfeff.encoders import Encoder
from tfeff.folders import appearing, check_new_path


@dataclasses.dataclass(frozen=True)
class Converted:
    """What `convert` wrote.

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer, or `None` if the source has none.
        left_out: how many tensors of each known kind have no place in an encoder,
            such as `{"pooler": 2}`.
    """

    encoder: Encoder
    tokenizer: keras_hub.tokenizers.Tokenizer | None
    left_out: Mapping[str, int]


def load(source: str | os.PathLike) -> Encoder:
    """Reads a published checkpoint into an encoder.

    Args:
        source: as for `convert`.

    Returns:
        A `tfeff.encoders.Encoder` with the checkpoint's weights, in float32. All its
        hidden states are those of the original.

    Raises:
        TypeError, ValueError: as `convert`.

    Example:
    ```python
    encoder = tfeff.convert.load("bert-base-uncased")
    ```
    """
    return _read(source)[1]


def convert(source: str | os.PathLike, destination: str | os.PathLike) -> Converted:
    """Writes a published checkpoint as a preset of `tfeff.encoders.Encoder`.

    Known formats are those of

    - Hugging Face (`config.json` and safetensors): BERT, also with `relative_key` or
      `relative_key_query` positions, ALBERT, ConvBERT and XLNet;
    - TensorFlow's Model Garden (`bert_config.json` or `albert_config.json`, and a
      checkpoint of an encoder): BERT and ALBERT;
    - the authors of ConvBERT (a TensorFlow 1 checkpoint).

    Every tensor of the source is either used or known to have no place in an
    encoder: poolers, heads, training state. Pickles are not read.

    Args:
        source: a folder, or a name on the Hugging Face hub.
        destination: the folder to write; it must not exist. It appears when it is
            complete, or not at all. `Encoder.from_preset(destination)` loads the
            encoder, `keras_hub.tokenizers.Tokenizer.from_preset(destination)` the
            tokenizer.

    Returns:
        What was written, and what was left out.

    Raises:
        TypeError: if an argument is not a path.
        ValueError: if `destination` exists; if `source` is not found or in no known
            format; if its configuration asks for something that tfeff does not have;
            if tensors are missing, unknown or of wrong shapes, which are listed; or
            if a file is cut short or damaged.

    Example:
    ```python
    import tfeff

    tfeff.convert.convert("bert-base-uncased", "presets/bert")
    encoder = tfeff.encoders.Encoder.from_preset("presets/bert")
    ```
    """
    destination = check_new_path("destination", destination)
    found, encoder, left_out = _read(source)
    tokenizer = make_tokenizer(found.directory, found.family)
    if tokenizer and tokenizer.vocabulary_size() > encoder.vocabulary_size:
        raise ValueError(
            "The tokenizer must have no more ids than the embedding has rows. "
            f"Received: {tokenizer.vocabulary_size()} ids, "
            f"{encoder.vocabulary_size} rows"
        )
    with appearing(destination) as unfinished:
        encoder.save_to_preset(unfinished)
        if tokenizer is not None:
            tokenizer.save_to_preset(unfinished)
    return Converted(encoder, tokenizer, left_out)


def _read(source):
    """What was found, its encoder, and counts of what was left out."""
    found = find(source)
    encoder = Encoder(**found.format.arguments(found.config))
    left_out = assign(
        found.format.weights(encoder), found.tensors, found.format.left_out(encoder)
    )
    return found, encoder, dict(left_out)
