"""Pretrained masked language models on disk."""

import os

import keras_hub

from tfeff.encoders.preset_files import read_head
from tfeff.objectives.masked_lm import MaskedLM
from tfeff.tasks.pretrained import find_preset, load_pretrained
from tfeff.training.checkpoints import latest_checkpoint, load_checkpoint
from tfeff.utils.checks import check_path


def load_masked_lm(
    path: str | os.PathLike,
) -> tuple[MaskedLM, keras_hub.tokenizers.Tokenizer]:
    """Reads a masked language model and its tokenizer.

    Args:
        path: a run directory of masked language modelling, of which the newest
            checkpoint is read; or a preset that keeps the head, as `tfeff convert`
            writes it of a published BERT or ALBERT, and `save_pretrained` of a
            `tfeff.objectives.MaskedLM`.

    Returns:
        The `tfeff.objectives.MaskedLM` and its KerasHub tokenizer.

    Raises:
        TypeError: if `path` is no path.
        ValueError: if there is no such model, or a file is damaged.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    model = tfeff.objectives.MaskedLM(encoder)
    tfeff.tasks.save_pretrained(model, tokenizer, "preset")
    model, tokenizer = tfeff.tasks.load_masked_lm("preset")
    ```
    """
    path = check_path("path", path)
    encoder, tokenizer = load_pretrained(path)
    checkpoint, _ = latest_checkpoint(os.path.join(path, "checkpoints"))
    if checkpoint is not None:
        model = load_checkpoint(checkpoint)
        if isinstance(model, MaskedLM):
            return model, tokenizer
    arrays = read_head(find_preset(path))
    if arrays is None:
        raise ValueError(
            "`path` must be a run of masked language modelling that has a checkpoint, "
            "or a preset that keeps the head of one: `tfeff convert` keeps that of "
            f"published checkpoints that have it. Received: path={path!r}"
        )
    return _with_head(encoder, arrays, path), tokenizer


def _with_head(encoder, arrays, path):
    """The encoder with a head of these weights, and settings like the encoder's."""
    settings = {
        "activation": encoder.blocks[0].feedforward.get_config()["activation"],
        "layer_norm_epsilon": encoder.layer_norm_epsilon,
    }
    if "activation" in arrays:
        settings = {
            "activation": str(arrays.pop("activation")),
            "layer_norm_epsilon": float(arrays.pop("layer_norm_epsilon")),
        }
    model = MaskedLM(encoder, **settings)
    model.compile()
    weights = model.head.own_weights()
    expected = {name: tuple(weight.shape) for name, weight in weights.items()}
    found = {name: array.shape for name, array in arrays.items()}
    if found != expected:
        raise ValueError(
            "`path` must hold a head of the encoder's sizes. Received: "
            f"path={path!r}, with {found}, not {expected}"
        )
    for name, weight in weights.items():
        weight.assign(arrays[name])
    return model
