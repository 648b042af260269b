"""Conversion of published checkpoints to encoders, in memory or as presets."""

import dataclasses
import os
from collections.abc import Mapping

import keras_hub

from tfeff.convert import harmless
from tfeff.convert.masked_lm_head import find_head
from tfeff.convert.sources import find
from tfeff.convert.tokenizer import make_tokenizer
from tfeff.convert.weights import assign
from tfeff.encoders import Encoder
from tfeff.encoders.preset_files import save_preset
from tfeff.utils.files import check_new_path


@dataclasses.dataclass(frozen=True)
class Converted:
    """The result of `convert`.

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer, or `None` if the source has none.
        ignored: number of unused tensors of each kind, such as `{"pooler": 2}`.
        has_masked_lm_head: whether the preset has a masked language model head.
    """

    encoder: Encoder
    tokenizer: keras_hub.tokenizers.Tokenizer | None
    ignored: Mapping[str, int]
    has_masked_lm_head: bool = False


def load(source: str | os.PathLike) -> Encoder:
    """Reads a published checkpoint into an encoder.

    Args:
        source: as for `convert`.

    Returns:
        A `tfeff.encoders.Encoder` with the checkpoint's weights, in float32. Its hidden
        states equal those of the original.

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

    Every tensor of the source is either used or of a kind that an encoder does not use:
    poolers, heads, training state. The head of a BERT's or ALBERT's masked language
    model is kept, for `tfeff.tasks.load_masked_lm`. Pickles are not read. The tokenizer
    returns the same ids as Hugging Face's, or is refused. A `UserWarning` names
    settings that are neither used nor known to be harmless.

    Args:
        source: a folder, or a name on the Hugging Face hub.
        destination: the folder to write; it must not exist. It appears when it is
            complete, or not at all. `tfeff.tasks.load_pretrained(destination)` loads
            the encoder and its tokenizer, `Encoder.from_preset(destination)` the
            encoder.

    Returns:
        A `Converted`: the encoder, its tokenizer and the kinds of ignored tensors.

    Raises:
        TypeError: if an argument is not a path.
        ValueError: if `destination` exists; if `source` is not found or in no known
            format; if its configuration or its tokenizer's files ask for something that
            tfeff does not support, or contradict each other (`load` reads the encoder
            alone); if tensors are missing, unknown or of wrong shapes, which are
            listed; or if a file is cut short or damaged.

    Example:
    ```python
    import tfeff

    tfeff.convert.convert("bert-base-uncased", "presets/bert")
    encoder = tfeff.encoders.Encoder.from_preset("presets/bert")
    ```
    """
    destination = check_new_path("destination", destination)
    found, encoder, head, ignored = _read(source)
    tokenizer = make_tokenizer(found.directory, found.family)
    if tokenizer and tokenizer.vocabulary_size() > encoder.vocabulary_size:
        raise ValueError(
            "`source` must have no more ids than the embedding has rows. Received: "
            f"{found.directory!r} with {tokenizer.vocabulary_size()} ids, "
            f"{encoder.vocabulary_size} rows"
        )
    save_preset(encoder, tokenizer, destination, head and head.arrays())
    return Converted(encoder, tokenizer, ignored, head is not None)


def _read(source):
    """The source, its encoder, its head and the counts of ignored tensors."""
    found = find(source)
    arguments = found.format.arguments(found.config)
    found.config.warn_of_others(harmless.CONFIG)
    try:
        encoder = Encoder(**arguments)
        head, of_head = find_head(found, encoder)
        ignored = assign(
            [*found.format.weights(encoder), *of_head],
            found.tensors,
            found.format.ignored(encoder),
        )
    except (TypeError, ValueError) as error:
        raise ValueError(f"In {found.config.path!r}, or beside it: {error}") from error
    return found, encoder, head, dict(ignored)
