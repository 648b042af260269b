"""Objectives and tasks on disk: presets that keep their heads, and runs."""

import os
from typing import Any

import keras
import keras_hub
import numpy as np

from tfeff.encoders.preset_digests import check_settings_and_assets
from tfeff.encoders.preset_heads import head_names, read_head, read_task
from tfeff.encoders.preset_layout import preset_folder
from tfeff.objectives import registry
from tfeff.objectives.heads import heads_of, trained_model
from tfeff.objectives.masked_lm import MaskedLM
from tfeff.objectives.masked_lm_head import HEAD_SETTINGS
from tfeff.objectives.objective import Objective, OptionError
from tfeff.storage.arguments import READ_HEADS, READ_MODEL, paths
from tfeff.tasks import (  # noqa: F401
    classifier,
    multiple_choice,
    regressor,
    sentence_embedding,
    span_qa,
    token_classifier,
)
from tfeff.tasks.encoder_limits import check_vocabulary
from tfeff.tasks.pretrained import find_preset, load_pretrained, split_step
from tfeff.tasks.run_tokenizer import load_run_tokenizer
from tfeff.training.checkpoint_file import load_checkpoint
from tfeff.training.checkpoint_folder import latest_checkpoint, run_checkpoint
from tfeff.utils.checks import check_choice
from tfeff.utils.naming import named_as
from tfeff.utils.paths import check_path
from tfeff.utils.run_files import CHECKPOINTS

# The models of these objectives consist of an encoder and its heads alone.
_OBJECTIVES = ("masked_lm", "sentence_order", "next_sentence", "permutation_lm")


@paths(path=READ_MODEL)
def load_task(
    path: str | os.PathLike, **options: Any
) -> tuple[Objective, keras_hub.tokenizers.Tokenizer]:
    """Reads a task or an objective, with all its weights, and its tokenizer.

    Args:
        path: a preset of one, as `save_pretrained` writes it, and `tfeff convert` of a
            published fine-tuned model; or a run of fine-tuning.
        **options: arguments of `load_pretrained`, such as `dtype`. They count for a
            generator, too; a model that has one keeps its positions.

    Returns:
        The model, such as a `tfeff.tasks.Classifier`, and its KerasHub tokenizer.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `path` holds no such model, and then it says what there is; or a
            file is damaged; or the model cannot have an option.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    model = tfeff.tasks.Classifier(encoder, 2, label_names=["still", "moving"])
    tfeff.tasks.save_pretrained(model, tokenizer, "preset")
    model, tokenizer = tfeff.tasks.load_task("preset")
    ```
    """
    path = check_path("path", path)
    preset = find_preset(path)
    task = read_task(preset)
    if task is None:
        check_settings_and_assets(preset)  # A task's file may be lost.
        raise ValueError(
            "`path` must be a preset of a task, as `tfeff.tasks.save_pretrained` "
            "writes it, or `tfeff convert` of a fine-tuned model. Received: "
            f"path={path!r}, {_held(preset)}"
        )
    encoder, tokenizer = load_pretrained(path, **options)
    try:
        name = task["registered_name"]
        kind = keras.saving.get_registered_object(name)
        if not isinstance(kind, type) or not issubclass(kind, Objective):
            raise ValueError(
                f"{name!r} is no model of tfeff, nor of a class of one's own, which "
                "must be imported and registered with Keras before"
            )
        model = kind.of_encoder(encoder, kind.with_options(task["config"], options))
    except OptionError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"`path` must hold a model of tfeff. Received: path={path!r}, whose "
            f"task.json is of another one, or damaged: {error}"
        ) from error
    model.compile()
    _assign(model, preset, path)
    return model, tokenizer


@paths(path=READ_HEADS)
def load_objective(
    path: str | os.PathLike, objective: str
) -> tuple[Objective, keras_hub.tokenizers.Tokenizer]:
    """Reads a pretrained model with its heads, and its tokenizer.

    Args:
        path: a run of pretraining, or of a distillation in general of predictions, of
            which the newest checkpoint is read; `"RUN@STEP"` for another one that it
            has kept; or a preset that keeps the heads, as `tfeff convert` writes it of
            published checkpoints, and `save_pretrained` of an objective.
        objective: `"masked_lm"`, `"next_sentence"`, `"sentence_order"` or
            `"permutation_lm"`.

    Returns:
        The model and its KerasHub tokenizer. A model of sentence pairs also predicts
        masked tokens if the preset has a head for them.

    Raises:
        TypeError: if `path` is no path.
        ValueError: if there is no such model, and then it says what there is; or if a
            file is damaged.

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    model = tfeff.objectives.SentencePairPrediction(encoder, kind="next")
    tfeff.tasks.save_pretrained(model, tokenizer, "preset")
    model, tokenizer = tfeff.tasks.load_objective("preset", "next_sentence")
    ```
    """
    path = check_path("path", path)
    check_choice("objective", objective, _OBJECTIVES)
    run_dir, step = split_step(path)
    if step is None:
        checkpoint, _ = latest_checkpoint(os.path.join(run_dir, CHECKPOINTS))
    else:
        with named_as(step="path", run_dir="path"):
            checkpoint, _ = run_checkpoint(run_dir, step)
    if checkpoint is not None:
        loaded = load_checkpoint(checkpoint)
        model = trained_model(loaded)
        heads = heads_of(model)
        if objective in heads:
            tokenizer = _run_tokenizer(run_dir, model.encoder)
            if objective == "masked_lm" and not isinstance(model, MaskedLM):
                # It was learnt beside pairs of sentences.
                arrays = heads[objective].arrays()
                settings = masked_lm_settings(arrays)
                model = MaskedLM(model.encoder, **settings)
                model.compile()
                model.head.as_head().assign(arrays)
            elif not model.compiled:  # A student.
                model.compile()
            return model, tokenizer
        if step is not None or preset_folder(path) == path:  # It is not finished.
            held = _with_heads(f"a {type(loaded).__name__}", sorted(heads))
            raise _without_head(path, objective, held)
    preset = find_preset(path)
    names = head_names(preset)
    if objective not in names:
        raise _without_head(path, objective, _held(preset))
    encoder, tokenizer = load_pretrained(path)
    chosen, settings = registry.get(objective), {}
    if "masked_lm" in names and chosen.has_setting("activation"):
        settings = masked_lm_settings(read_head(preset, "masked_lm"))
    if chosen.has_setting("masked_lm"):  # Models of pairs of sentences.
        settings["masked_lm"] = "masked_lm" in names
    model = chosen.make_model(encoder, **settings)
    model.compile()
    _assign(model, preset, path)
    return model, tokenizer


def load_masked_lm(
    path: str | os.PathLike,
) -> tuple[MaskedLM, keras_hub.tokenizers.Tokenizer]:
    """Reads a masked language model and its tokenizer.

    Args:
        path: as for `load_objective`.

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
    return load_objective(path, "masked_lm")


def masked_lm_settings(arrays: dict[str, np.ndarray]) -> dict:
    """The settings of a head, from its arrays."""
    return {name: arrays[name].item() for name in HEAD_SETTINGS}


def _run_tokenizer(path, encoder):
    """The tokenizer of a run, which may be that of another encoder."""
    tokenizer = load_run_tokenizer(path)
    check_vocabulary("path", tokenizer, encoder)
    return tokenizer


def _without_head(path, objective, held):
    return ValueError(
        f"`path` must be a run of the objective {objective!r} that has a checkpoint, "
        "or a preset that keeps its head: `tfeff convert` keeps those of published "
        f"checkpoints that have them. Received: path={path!r}, {held}"
    )


def _assign(model, preset, path):
    """Assigns the heads of a preset to the model's."""
    for name, head in model.heads().items():
        try:
            head.assign(read_head(preset, name))
        except ValueError as error:
            raise ValueError(
                f"`path` must hold the model's head {name!r}, whole. Received: "
                f"path={path!r}. {error}"
            ) from error


def _held(preset):
    """A description of a preset's contents for messages."""
    task, heads = read_task(preset), head_names(preset)
    model = "an encoder" if task is None else f"a {task.get('class_name')}"
    return _with_heads(model, heads)


def _with_heads(model, heads):
    return f"{model} with {f'the heads {heads}' if heads else 'no heads'}"
