"""The heads of a run of pretraining, for another run that starts from it."""

import os

import keras

from tfeff.encoders.preset_files import read_head
from tfeff.objectives import MaskedLM
from tfeff.recipes.runs import read_config
from tfeff.tasks.masked_lm import load_masked_lm
from tfeff.tasks.pretrained import find_preset, split_step
from tfeff.training.checkpoints import (
    checkpoint_steps,
    load_checkpoint,
    run_checkpoint,
)


def copy_heads(pretrained: str, objective: str, model: keras.Model) -> bool:
    """Copies all weights of a run's model but those of its encoder.

    Args:
        pretrained: a preset, a run or `"RUN@STEP"`. A preset has at most the head of a
            masked language model.
        objective: the name of the objective of `model`.
        model: the model, whose heads are assigned: all that is not `model.encoder`,
            such as a generator.

    Returns:
        Whether there are heads of the same objective, sizes and settings; else nothing
        is assigned.
    """
    trained = _trained(pretrained, objective)
    if type(trained) is not type(model):
        return False
    old, new = _outside(trained), _outside(model)
    if [w.shape for w in old] != [w.shape for w in new]:
        return False
    if isinstance(model, MaskedLM) and trained.head_settings != model.head_settings:
        return False
    for source, weight in zip(old, new, strict=True):
        weight.assign(keras.ops.convert_to_numpy(source))
    return True


def _trained(pretrained, objective):
    """The model of the objective that the encoder was trained in; `None` without."""
    run_dir, step = split_step(pretrained)
    has_model = checkpoint_steps(os.path.join(run_dir, "checkpoints"))
    is_run = os.path.isfile(os.path.join(run_dir, "config.json"))
    if has_model and is_run and read_config(run_dir).get("objective") == objective:
        return load_checkpoint(run_checkpoint(run_dir, step)[0], compile=False)
    if objective != "masked_lm" or step is not None:
        return None
    if read_head(find_preset(run_dir)) is None:
        return None
    return load_masked_lm(run_dir)[0]


def _outside(model):
    """The weights of a model that are not its encoder's."""
    inside = {id(weight) for weight in model.encoder.weights}
    return [weight for weight in model.weights if id(weight) not in inside]
