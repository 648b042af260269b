"""Pretrained encoders on disk: a KerasHub preset of an encoder and its tokenizer."""

import contextlib
import os

import keras
import keras_hub

from tfeff.convert import BertTokenizer
from tfeff.encoders import Encoder
from tfeff.encoders.extend_length import extend_length
from tfeff.encoders.preset_files import (
    check_preset,
    save_preset,
    saved_dtype,
    tokenizer_files,
)
from tfeff.encoders.quantization import check_keeps_quantization
from tfeff.utils.checks import check_integer, check_path, check_rate
from tfeff.utils.files import check_new_path

_CONFIG = "config.json"
_TOKENIZER = "tokenizer.json"


def save_pretrained(
    encoder: Encoder,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    path: str | os.PathLike,
) -> None:
    """Writes an encoder and its tokenizer as a KerasHub preset.

    Its `SHA256SUMS` holds the digests of the files, which `load_pretrained` compares.

    Args:
        encoder: the encoder, such as `model.encoder` of an objective.
        tokenizer: the KerasHub tokenizer that it was trained with.
        path: the folder to write, atomically; it must not exist. The folders above it
            are created.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if `path` exists, the tokenizer has more ids than the encoder, or
            the encoder has adapters on quantized layers.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset")
    encoder, tokenizer = tfeff.tasks.load_pretrained("preset")
    ```
    """
    if not isinstance(encoder, Encoder):
        raise TypeError(
            "`encoder` must be a `tfeff.encoders.Encoder`. "
            f"Received: encoder={encoder!r}"
        )
    if not isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
        raise TypeError(
            "`tokenizer` must be a KerasHub tokenizer. "
            f"Received: tokenizer={tokenizer!r}"
        )
    _check_sizes("tokenizer", tokenizer, encoder)
    check_keeps_quantization(encoder)
    save_preset(encoder, tokenizer, check_new_path("path", path))


def load_pretrained(
    path: str | os.PathLike,
    sequence_length: int | None = None,
    dropout: float | None = None,
    dtype=None,
    seed: int = 0,
    attention_dropout: float | None = None,
) -> tuple[Encoder, keras_hub.tokenizers.Tokenizer]:
    """Reads a pretrained encoder and its tokenizer, to train them further.

    The preset's files are compared with its `SHA256SUMS`. A `UserWarning` is issued if
    there is none, as in presets of earlier versions, or if it lacks a file.

    Args:
        path: the folder of a preset, as `save_pretrained` and
            `tfeff convert` write it; or a run directory that holds one as
            `preset/`.
        sequence_length: integer, the longest sequence. If it is longer than the
            encoder's, `tfeff.encoders.extend_length` extends the encoder and warns of
            new rows; a shorter one changes nothing. `None` means the encoder's own.
        dropout: float in [0, 1), dropout rate instead of the encoder's; `None` keeps
            it. Most encoders are fine-tuned with the rate of pretraining; ALBERT is
            pretrained with 0.
        dtype: dtype or dtype policy, such as `"mixed_bfloat16"`; `None` means the one
            that the encoder was saved with.
        seed: integer, for the rows of an extended table.
        attention_dropout: float in [0, 1), dropout rate of the attention scores instead
            of the encoder's; `None` keeps it: `dropout`, unless the encoder has another
            one for them.

    Returns:
        The encoder and its KerasHub tokenizer.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if the folder, its encoder, weights or tokenizer is missing,
            damaged, or of another kind; if another argument is out of range.

    Example: see `save_pretrained`.
    """
    if sequence_length is not None:
        sequence_length = check_integer("sequence_length", sequence_length)
    overrides = {}
    rates = {"dropout": dropout, "attention_dropout": attention_dropout}
    for name, rate in rates.items():
        if rate is not None:
            overrides[name] = check_rate(name, rate)
    if dtype is not None:
        try:
            overrides["dtype"] = keras.dtype_policies.get(dtype)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`dtype` must be a dtype or a policy. Received: dtype={dtype!r}"
            ) from error
    # Absolute, so that KerasHub never looks for a preset of this name online.
    preset = os.path.abspath(_find(path))
    # KerasHub's own tokenizers do not do this themselves.
    with _damage_named(preset, "KerasHub tokenizer"):
        check_preset(preset, tokenizer_files())
    with _damage_named(preset, "encoder of tfeff"):
        overrides.setdefault("dtype", saved_dtype(preset))
        encoder = Encoder.from_preset(preset, **overrides)
    with _damage_named(preset, "KerasHub tokenizer"):
        # The file names its own class; KerasHub only asks for one that encoders have.
        tokenizer = BertTokenizer.from_preset(preset)
    _check_sizes("path", tokenizer, encoder)
    if sequence_length is not None and sequence_length > encoder.max_sequence_length:
        encoder = extend_length(encoder, sequence_length, seed=seed)
    return encoder, tokenizer


def _find(path):
    """The folder of the preset."""
    path = check_path("path", path)
    inner = os.path.join(path, "preset")
    preset = inner if os.path.isdir(inner) else path
    present = os.listdir(preset) if os.path.isdir(preset) else []
    missing = [
        f"{what} ({name})"
        for name, what in ((_CONFIG, "an encoder"), (_TOKENIZER, "its tokenizer"))
        if name not in present
    ]
    if not any(name.startswith("model.weights.") for name in present):
        missing.append("its weights (model.weights.h5)")
    if missing:
        known = "no folder" if not os.path.isdir(preset) else f"without {missing}"
        raise ValueError(
            "`path` must be a preset with an encoder and its tokenizer, or a run "
            f"directory that holds one as preset/. Received: path={path!r}, {known}"
        )
    return preset


@contextlib.contextmanager
def _damage_named(preset, kind):
    try:
        yield
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"`path` must hold a whole {kind}. Received: path={preset!r}, whose {kind} "
            f"is missing, cut short or damaged: {error}"
        ) from error


def _check_sizes(name, tokenizer, encoder):
    if tokenizer.vocabulary_size() > encoder.vocabulary_size:
        raise ValueError(
            f"`{name}` must have no more ids than the encoder has rows. Received: "
            f"{tokenizer.vocabulary_size()} ids, {encoder.vocabulary_size} rows"
        )
