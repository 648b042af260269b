"""Pretrained encoders on disk: a KerasHub preset of an encoder and its tokenizer.

A preset can keep a model's heads, too.
"""

import contextlib
import os
import re
from typing import Any

import keras
import keras_hub
import numpy as np

from tfeff import encoders
from tfeff.data.text.tokenizers import check_tokenizer
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import encoder_of, foreign_class
from tfeff.encoders.extend_length import extend_length
from tfeff.encoders.preset_digests import check_preset, of_another_version, saved_dtype
from tfeff.encoders.preset_heads import check_preset_path, save_preset
from tfeff.encoders.preset_layout import (
    ENCODER_CONFIG,
    TOKENIZER_CONFIG,
    architecture_hint,
    belongs_to_tokenizer,
    checkpoint_hint,
    is_weights_file,
    preset_folder,
)
from tfeff.encoders.quantization import check_keeps_quantization
from tfeff.encoders.swap_positions import METHODS
from tfeff.layers.encoder_block import check_memory_efficient
from tfeff.objectives.objective import Objective
from tfeff.storage.arguments import READ_MODEL, WRITE, paths
from tfeff.storage.manifest import OF_UPLOADS
from tfeff.tasks.encoder_limits import check_vocabulary, fitting
from tfeff.tasks.run_tokenizer import load_run_tokenizer, read_preset_tokenizer
from tfeff.training.checkpoint_file import load_checkpoint
from tfeff.training.checkpoint_folder import checkpoint_steps, run_checkpoint
from tfeff.utils.checks import (
    check_choice,
    check_integer,
    check_rate,
    check_seed,
)
from tfeff.utils.definitions import UNREGISTERED
from tfeff.utils.json_files import read_object
from tfeff.utils.naming import named_as
from tfeff.utils.paths import check_path, is_hub_name, is_url
from tfeff.utils.reading import DAMAGE, is_unreadable
from tfeff.utils.run_files import CHECKPOINTS, PRESET
from tfeff.utils.types import DType


@paths(path=WRITE)
def save_pretrained(
    model: Encoder | Objective,
    tokenizer: keras_hub.tokenizers.Tokenizer,
    path: str | os.PathLike,
    *,
    overwrite: bool = False,
) -> None:
    """Writes an encoder, or a model of one, and its tokenizer as a KerasHub preset.

    The preset is the encoder's: `load_pretrained` and `Encoder.from_preset` read it
    whatever heads are beside it. Its `SHA256SUMS` holds the digests of the files, which
    loading compares.

    Args:
        model: the encoder, such as `model.encoder` of an objective; or a task of
            `tfeff.tasks` or an objective such as `tfeff.objectives.MaskedLM`, whose
            heads are kept for `load_task`, `load_objective` and `load_masked_lm`.
        tokenizer: the KerasHub tokenizer that it was trained with.
        path: the folder to write, atomically. The folders above it are created.
        overwrite: whether a preset of tfeff that is at `path` is replaced, when the new
            one is written. Another folder is not. A process that is killed at that
            moment leaves the old one beside it, as `NAME.replaced-…`. Nobody should be
            reading it meanwhile. Not for URLs.

    Raises:
        TypeError: if an argument is of another type, or a model whose heads cannot be
            kept.
        ValueError: if `path` exists and is not to be replaced, the tokenizer has more
            ids than the encoder, or the model has adapters on quantized layers.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset")
    encoder, tokenizer = tfeff.tasks.load_pretrained("preset")
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset", overwrite=True)
    ```
    """
    encoder, heads, task = model, {}, None
    if isinstance(model, Objective):
        encoder, heads, task = model.encoder, head_arrays(model), task_config(model)
    if not isinstance(encoder, Encoder):
        raise TypeError(
            "`model` must be a `tfeff.encoders.Encoder`, or a task or an objective of "
            f"one. Received: model={model!r:.80}"
        )
    check_tokenizer(tokenizer)
    check_vocabulary("tokenizer", tokenizer, encoder)
    check_keeps_quantization(model)
    path = check_preset_path("path", path, overwrite)
    replace = overwrite and os.path.isdir(path)
    save_preset(encoder, tokenizer, path, heads, task, replace)


def head_arrays(model: Objective) -> dict[str, dict[str, np.ndarray]]:
    """The arrays of a model's heads, which are all that it has beside its encoder.

    Raises:
        TypeError: if the model has other weights, too, such as a teacher's.
    """
    heads = model.heads()
    parts = [model.encoder.weights, *(head.weights.values() for head in heads.values())]
    known = {id(weight) for part in parts for weight in part}
    others = [weight.path for weight in model.weights if id(weight) not in known]
    if others:
        raise TypeError(
            "`model` must be an encoder, or a model that has heads beside its encoder "
            f"and nothing else: a preset keeps no more. Received: model={model!r} with "
            f"{others}. Give `model.encoder` to keep the encoder alone"
        )
    return {name: head.arrays() for name, head in heads.items()}


def task_config(model: Objective) -> dict:
    """The configuration of a model without that of its encoder, for a preset."""
    config = model.get_config()
    del config[model.encoder_argument]
    return {
        "module": type(model).__module__,
        "class_name": type(model).__name__,
        "registered_name": keras.saving.get_registered_name(type(model)),
        "config": config,
    }


@paths(path=READ_MODEL)
def load_pretrained(
    path: str | os.PathLike,
    sequence_length: int | None = None,
    dropout: float | None = None,
    dtype: DType | None = None,
    seed: int = 0,
    attention_dropout: float | None = None,
    swap_positions: str | None = None,
    memory_efficient: bool | str | None = None,
) -> tuple[Encoder, keras_hub.tokenizers.Tokenizer]:
    """Reads a pretrained encoder and its tokenizer, to train them further.

    The preset's files are compared with its `SHA256SUMS`. A `UserWarning` is issued if
    there is none, or if it lacks a file.

    Args:
        path: the folder of a preset, as `save_pretrained` and
            `tfeff convert` write it; a run directory that holds one as
            `preset/`; or `"RUN@STEP"`, the encoder that a run of pretraining had after
            so many steps, of which it has kept the checkpoint.
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
        swap_positions: a method of `tfeff.encoders.swap_positions`, such as `"huang4"`,
            which takes the place of absolute positions before the encoder is
            extended; `None` keeps them.
        memory_efficient: what the backward pass recomputes, as of
            `tfeff.encoders.Encoder`: `"block"`, `"attention"` or False; `None` means as
            the encoder was saved.

    Returns:
        The encoder and its KerasHub tokenizer.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if the folder, its encoder, weights or tokenizer is missing,
            damaged, or of another kind; if the run has no checkpoint of the step, and
            then it names those that there are; if the encoder cannot be extended; or
            if another argument is out of range.

    Example: see `save_pretrained`.

    Reference:
        Huang et al., "Improve Transformer models with better relative position
        embeddings", section 4.4, for `swap_positions`; Tian et al., "Shatter",
        sections 5.2.2 and 5.2.3, for `sequence_length` and for steps.
    """
    if sequence_length is not None:
        sequence_length = check_integer("sequence_length", sequence_length)
    if swap_positions is not None:
        check_choice("swap_positions", swap_positions, METHODS)
    seed = check_seed(seed)
    overrides: dict[str, Any] = {}
    rates = {"dropout": dropout, "attention_dropout": attention_dropout}
    for name, rate in rates.items():
        if rate is not None:
            overrides[name] = check_rate(name, rate)
    if dtype is not None:
        try:
            overrides["dtype"] = keras.dtype_policies.get(dtype)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`dtype` must be a dtype or a policy. Received: dtype={dtype!r:.80}"
            ) from error
    if memory_efficient is not None:
        overrides["memory_efficient"] = check_memory_efficient(memory_efficient)
    folder, step = split_step(path)
    if step is None:
        encoder, tokenizer = _read_preset(folder, overrides)
    else:
        _, encoder, tokenizer = read_step(folder, step, overrides)
    check_vocabulary("path", tokenizer, encoder)
    if swap_positions is not None:
        with fitting("path", path, swap_positions=swap_positions):
            encoder = encoders.swap_positions(encoder, swap_positions)
    if sequence_length is not None and sequence_length > encoder.max_sequence_length:
        with fitting("path", path, sequence_length=sequence_length):
            encoder = extend_length(encoder, sequence_length, seed=seed)
    return encoder, tokenizer


def split_step(path: str | os.PathLike) -> tuple[str, int | None]:
    """The run directory and the step of `"RUN@STEP"`; other paths have no step."""
    path = str(path) if is_url(path) else check_path("path", path)
    found = re.fullmatch(r"(.+)@(\d+)", path)
    if found is None or os.path.isdir(path):
        return path, None
    return found[1], int(found[2])


def _read_preset(path, overrides):
    """The encoder and the tokenizer of a preset."""
    # Absolute, so that KerasHub never looks for a preset of this name online.
    preset = os.path.abspath(find_preset(path))
    if name := _foreign_class_of(preset):
        raise ValueError(
            "`path` must be a preset with an encoder of tfeff. Received: "
            f"path={path!r}, a preset of {name!r}, which is none. `tfeff convert` "
            "makes presets of tfeff of some of KerasHub's; a class of one's own must "
            "be registered with Keras before"
        )
    # SentencePiece's operators have TensorFlow's own errors.
    with _damage_named(preset, "KerasHub tokenizer", Exception):
        check_preset(preset, belongs_to_tokenizer())
        tokenizer = read_preset_tokenizer(preset)
    with _damage_named(preset, "encoder of tfeff"):
        overrides.setdefault("dtype", saved_dtype(preset))
        encoder = Encoder.from_preset(preset, **overrides)
    return encoder, tokenizer


def _foreign_class_of(preset):
    try:
        return foreign_class(read_object(os.path.join(preset, ENCODER_CONFIG)))
    except ValueError:  # It is damaged, which is told where it is read.
        return None


def read_step(run_dir, step, overrides):
    """The model of a run's checkpoint, its encoder anew, and the run's tokenizer."""
    with named_as(step="path", run_dir="path"):
        checkpoint, _ = run_checkpoint(run_dir, step)
    model = load_checkpoint(checkpoint, compile=False)
    saved = encoder_of(model)
    if saved is None:
        raise ValueError(
            "`path` must be a step of a run that pretrains an encoder. "
            f"Received: path={run_dir}@{step}"
        )
    encoder = type(saved).from_config({**saved.get_config(), **overrides})
    encoder.set_weights(saved.get_weights())
    return model, encoder, load_run_tokenizer(run_dir)


@paths(path=READ_MODEL)
def find_preset(path):
    """The folder of the preset."""
    if isinstance(path, str) and (name := re.sub("^hf:(//)?", "", path)) != path:
        raise ValueError(
            "`path` must be a preset on this machine. Received: "
            f"path={path!r}{_hub_hint(name)}"
        )
    path = check_path("path", path)
    preset = preset_folder(path)
    present = os.listdir(preset) if os.path.isdir(preset) else []
    needed = {ENCODER_CONFIG: "an encoder", TOKENIZER_CONFIG: "its tokenizer"}
    missing = [
        f"{what} ({name})" for name, what in needed.items() if name not in present
    ]
    if not any(map(is_weights_file, present)):
        missing.append("its weights (model.weights.h5)")
    if missing:
        steps = []
        with contextlib.suppress(OSError):  # Steps are only advice.
            steps = checkpoint_steps(os.path.join(path, CHECKPOINTS))
        beside = os.path.join(path, PRESET)
        if preset == path and os.path.lexists(beside) and not os.path.isdir(beside):
            known = f"a run whose {PRESET}/ is a file, or a link to what is not there"
        elif steps and preset == path:
            known = (
                "a run that is not finished, with checkpoints of steps "
                f"{', '.join(map(str, steps))}: its encoder is '{path}@{steps[-1]}'"
            )
        elif not os.path.isdir(preset):
            known = f"no folder{_file_hint(path) or _hub_hint(path)}"
        else:
            known = f"without {missing}{_folder_hint(path, present, missing)}"
        raise ValueError(
            "`path` must be a preset with an encoder and its tokenizer, a run "
            "directory that holds one as preset/, or RUN@STEP. "
            f"Received: path={path!r}, {known}"
        )
    return preset


def _file_hint(path):
    """A hint for the error message if the path is a file of Keras."""
    if not os.path.isfile(path):
        return ""
    return ", but a file. `tfeff.training.load_checkpoint` reads those of .keras"


def _hub_hint(path):
    """A hint for the error message if the path is a preset's or a hub name."""
    if hint := architecture_hint(path):
        return hint
    if not is_hub_name(path):
        return ""
    return (
        ". Of a name on the Hugging Face hub, `tfeff convert "
        f"{path} PRESET` makes a preset"
    )


def _folder_hint(path, present, missing):
    """A hint for the error message: what else the folder is, or was made by."""
    if not {*OF_UPLOADS}.isdisjoint({*present, *os.listdir(path)}):
        return ", as tfeff has uploaded it: give its URL, such as file:// and the path"
    if hint := checkpoint_hint(present):
        return hint
    if len(missing) == 1 and TOKENIZER_CONFIG not in present:
        return (
            ", as `tfeff convert` leaves it where the source has no files of one: put "
            "them beside the source's weights and convert it again; or as "
            "`save_to_preset` leaves it: `tfeff.tasks.save_pretrained` saves both. "
            "`tfeff.encoders.Encoder.from_preset` reads the encoder"
        )
    return ""


@contextlib.contextmanager
def _damage_named(preset, kind, errors=DAMAGE):
    try:
        yield
    except errors as error:
        if is_unreadable(error) or isinstance(error, MemoryError):
            raise
        what = f"is damaged{of_another_version(preset)}"
        if UNREGISTERED in str(error):
            what = "has no class"
        raise ValueError(
            f"`path` must hold a whole {kind}. Received: path={preset!r}, whose {kind} "
            f"{what}: {error}"
        ) from error
