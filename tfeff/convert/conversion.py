"""Conversion of published checkpoints to encoders, in memory or as presets."""

import contextlib
import dataclasses
import os
import warnings
from collections.abc import Mapping

import keras_hub
import numpy as np

from tfeff.convert import harmless
from tfeff.convert.heads import find_heads
from tfeff.convert.keras_hub_presets import KerasHub
from tfeff.convert.keras_hub_tokenizer import make_keras_hub_tokenizer
from tfeff.convert.sources import find
from tfeff.convert.tokenizer import file_without_segments, make_tokenizer
from tfeff.convert.weights import assign, check_names
from tfeff.data.finetuning.packing import num_segments
from tfeff.encoders import Encoder
from tfeff.encoders.preset_heads import check_preset_path, save_preset
from tfeff.objectives.objective import Objective
from tfeff.storage.arguments import READ, WRITE, paths
from tfeff.tasks.pretrained import task_config


@dataclasses.dataclass(frozen=True)
class Converted:
    """The result of `convert`.

    Args:
        encoder: the encoder.
        tokenizer: its tokenizer, or `None` if the source has none.
        ignored: number of unused tensors of each kind, such as `{"task head": 2}`.
        heads: the names of the heads that the preset keeps, such as `"masked_lm"`.
        task: the fine-tuned model, such as a `tfeff.tasks.Classifier`, or `None`.

    Example: see `convert`.
    """

    encoder: Encoder
    tokenizer: keras_hub.tokenizers.Tokenizer | None
    ignored: Mapping[str, int]
    heads: tuple[str, ...] = ()
    task: Objective | None = None


@paths(source=READ)
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
    found, encoder = _encoder(source)
    _assign(found, encoder, [])
    return encoder


@paths(source=READ)
def load_task(
    source: str | os.PathLike,
) -> tuple[Objective, keras_hub.tokenizers.Tokenizer | None]:
    """Reads a published fine-tuned model into a task.

    Args:
        source: as for `convert`; of Hugging Face, with a head for the classification of
            texts or of tokens, for questions or for multiple choice; of
            sentence-transformers; or a `TextClassifier` of KerasHub.

    Returns:
        A `tfeff.tasks.Classifier`, `Regressor`, `TokenClassifier`, `SpanQA`,
        `MultipleChoice` or `SentenceEmbedding` with the checkpoint's weights, in
        float32, whose logits or embeddings equal those of the original; and its
        tokenizer, or `None` if the source has none.

    Raises:
        TypeError, ValueError: as `convert`, and if the source is no fine-tuned model,
            or one that tfeff does not have.

    Example:
    ```python
    import tfeff

    model, tokenizer = tfeff.convert.load_task("textattack/bert-base-uncased-SST-2")
    ```
    """
    found, encoder = _encoder(source)
    with _config_named(found):  # Before their heads are missed.
        check_names(found.format.weights(encoder), found.tensors)
    heads = find_heads(found, encoder, must_be_task=True)
    if heads.task is None:
        raise ValueError(
            "`source` must be a fine-tuned model. Received: "
            f"{found.directory!r}, of architectures="
            f"{found.config.get('architectures', None)}, with "
            f"{f'the heads {sorted(heads.heads)}' if heads.heads else 'no heads'}"
        )
    _assign(found, encoder, heads.weights)
    return heads.task, _tokenizer(found, encoder)


@paths(source=READ)
def load_with_heads(
    source: str | os.PathLike, generator: bool = False
) -> tuple[
    Encoder, dict[str, dict[str, np.ndarray]], keras_hub.tokenizers.Tokenizer | None
]:
    """Reads a published checkpoint with its heads.

    Args:
        source: as for `convert`.
        generator: whether the generator is read of a checkpoint that holds it beside
            the discriminator.

    Returns:
        The encoder; the arrays of its heads by the heads' names; the tokenizer, or
        `None` if the source has none.
    """
    found, encoder = _encoder(source, generator)
    heads = find_heads(found, encoder)
    _assign(found, encoder, heads.weights)
    arrays = {name: head.arrays() for name, head in heads.heads.items()}
    return encoder, arrays, _tokenizer(found, encoder)


@paths(source=READ, destination=WRITE)
def convert(
    source: str | os.PathLike,
    destination: str | os.PathLike,
    *,
    overwrite: bool = False,
) -> Converted:
    """Writes a published checkpoint as a preset of `tfeff.encoders.Encoder`.

    Known formats are those of

    - Hugging Face (`config.json` and safetensors): BERT, ELECTRA and RoBERTa, also with
      `relative_key` or `relative_key_query` positions, ALBERT, ConvBERT, DistilBERT and
      XLNet; CamemBERT and XLM-RoBERTa are RoBERTas;
    - TensorFlow's Model Garden (`bert_config.json` or `albert_config.json`, and a
      checkpoint of an encoder): BERT and ALBERT;
    - the authors of BERT and of ALBERT (a TensorFlow 1 checkpoint, with
      `bert_config.json` or `albert_config.json`);
    - the authors of ELECTRA and of ConvBERT (a TensorFlow 1 checkpoint): the
      discriminator; `load_replaced_token` reads the generator, too;
    - KerasHub (the folder of `save_to_preset`): the backbones of BERT, RoBERTa,
      XLM-RoBERTa, ALBERT, DistilBERT and ELECTRA, and their tasks. No object in the
      preset is loaded.

    Heads come along. Those of pretraining (masked language modelling, pooler, next
    sentence, sentence order, XLNet's language modelling) are kept for
    `tfeff.tasks.load_objective`, those of ELECTRA's networks for `load_replaced_token`;
    fine-tuned ones (classification of texts and tokens, questions, multiple choice, a
    `TextClassifier`) become a task, which `tfeff.tasks.load_task` reads. So do the
    modules of sentence-transformers (`modules.json`): a Transformer, its pooling by
    the first token, the last one or the mean, and Normalize make a
    `SentenceEmbedding`.

    Every tensor of the source is either used or of a kind that an encoder and its heads
    do not use, such as training state: `Converted.ignored` counts these. A warning
    says which head or module is left out and why, and names settings that are neither
    used nor known to be harmless. Pickles are not read. The tokenizer returns the same
    ids as Hugging Face's, or is refused; `tokenizer.json` alone is enough for it. That
    of KerasHub's SentencePiece models returns KerasHub's.

    Args:
        source: a folder, or a name on the Hugging Face hub.
        destination: the folder to write. It appears when it is complete, or not at
            all. `tfeff.tasks.load_pretrained(destination)` loads the encoder and its
            tokenizer, `Encoder.from_preset(destination)` the encoder.
        overwrite: whether a preset that is at `destination` is replaced, as by
            `tfeff.tasks.save_pretrained`.

    Returns:
        A `Converted`: the encoder, its tokenizer and heads, and the kinds of ignored
        tensors.

    Raises:
        TypeError: if an argument is not a path.
        ValueError: if `destination` exists and is not to be replaced; if `source` is
            not found or in no known format; if its configuration or its tokenizer's
            files ask for something that tfeff does not support, or contradict each
            other (`load` reads the encoder alone); if tensors are missing, unknown or
            of wrong shapes, which are listed; or if a file is cut short or damaged.

    Example:
    ```python
    import tfeff

    tfeff.convert.convert("bert-base-uncased", "presets/bert")
    encoder = tfeff.encoders.Encoder.from_preset("presets/bert")
    ```
    """
    destination = check_preset_path("destination", destination, overwrite)
    replace = overwrite and os.path.isdir(destination)
    found, encoder = _encoder(source)
    heads = find_heads(found, encoder)
    ignored = _assign(found, encoder, heads.weights)
    if heads.left_out:
        kinds = [f"{kind} ({count} tensors)" for kind, count in ignored.items()]
        warnings.warn(
            f"Heads of {found.directory!r} are left out, since "
            f"{'; '.join(heads.left_out)}. Not used: {', '.join(kinds) or 'none'}",
            stacklevel=1,
        )
    tokenizer = _tokenizer(found, encoder)
    save_preset(
        encoder,
        tokenizer,
        destination,
        {name: head.arrays() for name, head in heads.heads.items()},
        None if heads.task is None else task_config(heads.task),
        replace,
    )
    return Converted(encoder, tokenizer, ignored, tuple(heads.heads), heads.task)


def _encoder(source, generator=False):
    """The source, and its encoder without its weights."""
    found = find(source, generator)
    arguments = found.format.arguments(found.config)
    found.config.warn_of_others(harmless.CONFIG)
    with _config_named(found):
        return found, Encoder(**arguments)


def _assign(found, encoder, of_heads):
    """Assigns all weights; the counts of ignored tensors."""
    weights = [*found.format.weights(encoder), *of_heads]
    with _config_named(found):
        return dict(assign(weights, found.tensors, found.format.left_out))


def _tokenizer(found, encoder):
    """The source's tokenizer, or `None` if it has none."""
    is_of_keras_hub = isinstance(found.format, KerasHub)
    if is_of_keras_hub:
        tokenizer = make_keras_hub_tokenizer(found.directory)
    else:
        tokenizer = make_tokenizer(found.directory, found.family)
    if tokenizer and tokenizer.vocabulary_size() > encoder.vocabulary_size:
        raise ValueError(
            "`source` must have no more ids than the embedding has rows. Received: "
            f"{found.directory!r} with {tokenizer.vocabulary_size()} ids, "
            f"{encoder.vocabulary_size} rows"
        )
    padding = found.format.padding_id
    if tokenizer and padding not in (None, tokenizer.pad_token_id):
        raise ValueError(
            f"`source` must have the id {padding} for padding, from which positions "
            f"are counted. Received: {found.directory!r}, whose tokenizer has "
            f"pad_token_id={tokenizer.pad_token_id}"
        )
    has_segments = encoder.num_segments > 1 and found.family != "xlnet"
    if tokenizer and has_segments and not is_of_keras_hub:
        _warn_of_segments(found.directory, tokenizer)
    return tokenizer


def _warn_of_segments(directory, tokenizer):
    if num_segments(tokenizer) == 1:
        return
    if path := file_without_segments(directory):
        warnings.warn(
            f"By {path!r} transformers give both texts of a pair the segment 0. tfeff "
            "gives the second one the segment 1, as the encoder has been pretrained: "
            "a model that has been fine-tuned without segments gives other outputs "
            "for pairs",
            stacklevel=1,
        )


@contextlib.contextmanager
def _config_named(found):
    try:
        yield
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"In {found.config.path!r}, or beside it: {error}") from error
