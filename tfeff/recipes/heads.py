"""The heads of a preset or a run, for a model that starts from it."""

import os
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np

from tfeff.encoders.preset_heads import (
    head_names,
    read_head,
    read_heads,
    read_task,
)
from tfeff.objectives.heads import heads_of, trained_model, weights_beside
from tfeff.recipes.runs import read_config
from tfeff.storage.arguments import READ_HEADS, READ_MODEL, paths
from tfeff.tasks.pretrained import find_preset, split_step
from tfeff.tasks.saved_models import masked_lm_settings
from tfeff.training.checkpoint_file import load_checkpoint
from tfeff.training.checkpoint_folder import checkpoint_steps, run_checkpoint
from tfeff.utils.naming import named_as
from tfeff.utils.run_files import CHECKPOINTS, CONFIG

# The tasks that have a layer for their labels, ratings or answers.
_TASKS = ("Classifier", "MultipleChoice", "Regressor", "SpanQA", "TokenClassifier")


class PretrainedHeads:
    """The heads of a preset or a run, to go on training with.

    Args:
        pretrained: a preset, a run or `"RUN@STEP"`.
        objective: the name of the objective to train for. The heads of a run of
            another one are not read.
    """

    @paths(pretrained=READ_HEADS)
    def __init__(self, pretrained: str, objective: str):
        self.objective = objective
        run_dir, step = split_step(pretrained)
        self.model, self.arrays = None, {}
        has_model = checkpoint_steps(os.path.join(run_dir, CHECKPOINTS))
        trained = None  # A preset, or a distilled student, which keeps its heads in it.
        if has_model and os.path.isfile(os.path.join(run_dir, CONFIG)):
            trained = read_config(run_dir).get("objective")
        # A step of a run of no objective is of a distillation.
        if trained == objective or (trained is None and step is not None):
            with named_as(step="pretrained", run_dir="pretrained"):
                checkpoint, _ = run_checkpoint(run_dir, step)
            self.model = trained_model(load_checkpoint(checkpoint, compile=False))
            heads = heads_of(self.model)
            self.arrays = {name: head.arrays() for name, head in heads.items()}
        elif trained is None:
            self.arrays = read_heads(find_preset(run_dir))

    def settings(self) -> dict:
        """The arguments of a model like the one that the heads are of."""
        if "masked_lm" not in self.arrays:
            return {}
        return masked_lm_settings(self.arrays["masked_lm"])

    def copy(self, model: keras.Model) -> list[str]:
        """Assigns the heads of the same names, sizes and settings to the model's.

        Returns:
            The names of the heads that are assigned.
        """
        heads = heads_of(model)
        if not heads and type(self.model) is type(model):
            return self._copy_all(model)
        copied = [
            name
            for name, head in heads.items()
            if name in self.arrays and head.fits(self.arrays[name])
        ]
        assign_heads(model, {name: self.arrays[name] for name in copied})
        return copied

    def _copy_all(self, model):
        """Copies what is beside the encoder as a whole: the model names no heads."""
        old, new = (weights_beside(x.encoder, x) for x in (self.model, model))
        if [w.shape for w in old] != [w.shape for w in new]:
            return []
        for source, weight in zip(old, new, strict=True):
            weight.assign(keras.ops.convert_to_numpy(source))
        return [self.objective]


def _preset_of(pretrained):
    """The folder of a preset; `None` of `"RUN@STEP"`, which is none."""
    run_dir, step = split_step(pretrained)
    return find_preset(run_dir) if step is None else None


@paths(pretrained=READ_MODEL)
def read_own_head(pretrained: str, name: str) -> dict[str, np.ndarray] | None:
    """The arrays of a head of a preset.

    Returns:
        The arrays; `None` for a preset without it and for `"RUN@STEP"`, which has no
        heads.
    """
    preset = _preset_of(pretrained)
    has_head = preset is not None and name in head_names(preset)
    return read_head(preset, name) if has_head else None


@paths(pretrained=READ_MODEL)
def own_head_names(pretrained: str) -> list[str]:
    """The names of a preset's heads."""
    return head_names(find_preset(pretrained))


@paths(pretrained=READ_MODEL)
def read_embedding_settings(pretrained: str) -> dict | None:
    """The settings of a preset's sentence embeddings; `None` where it has none."""
    preset = _preset_of(pretrained)
    task = None if preset is None else read_task(preset)
    if task is None or task["class_name"] != "SentenceEmbedding":
        return None
    return task["config"]


def read_pooler(
    pretrained: str, activation: str | None = None
) -> dict[str, np.ndarray] | None:
    """The pooler of a preset, to fine-tune with, if it is of the first position.

    Args:
        pretrained: a preset, a run or `"RUN@STEP"`.
        activation: the one that it must have; `None` for any.
    """
    pooler = read_own_head(pretrained, "pooler")
    if not pooler or pooler["pooling"] != "cls":
        return None
    return pooler if activation in (None, pooler["activation"].item()) else None


def assign_heads(
    model: keras.Model, arrays: Mapping[str, Mapping[str, np.ndarray]]
) -> None:
    """Assigns the heads of these names; others stay as they are."""
    heads = heads_of(model)
    for name, values in arrays.items():
        heads[name].assign(values)


@paths(pretrained=READ_MODEL)
def read_task_heads(
    pretrained: str, kind: type, **expected: Any
) -> dict[str, dict[str, np.ndarray]] | None:
    """The heads of a preset's task, to train on, and a printed line about them.

    Args:
        pretrained: a preset, a run or `"RUN@STEP"`.
        kind: the class of the task that is to be trained.
        **expected: arguments of it that its head depends on, as its configuration has
            them.

    Returns:
        The arrays of each head, where the preset is of such a task; else `None`, and
        the line says that the new one has new layers.
    """
    preset = _preset_of(pretrained)
    task = None if preset is None else read_task(preset)
    if preset is None or task is None or task["class_name"] not in _TASKS:
        return None
    name, config = task["class_name"], task["config"]
    if name == kind.__name__ and expected == {x: config.get(x) for x in expected}:
        print(f"the {name} of {pretrained} is trained on, with its heads")
        return read_heads(preset)
    labels = ", ".join(config.get("label_names") or ())
    what = f" of the labels {labels}" if labels else ""
    print(
        f"{pretrained} has a {name}{what}, whose last layer is not used: the one of "
        f"the new {kind.__name__} is new"
    )
    return None
