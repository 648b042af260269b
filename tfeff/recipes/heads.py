"""The heads of a run of pretraining, for another run that starts from it."""

import os

import keras

from tfeff.recipes.runs import read_config
from tfeff.tasks.pretrained import split_step
from tfeff.training.checkpoints import (
    checkpoint_steps,
    load_checkpoint,
    run_checkpoint,
)


def copy_heads(pretrained: str, objective: str, model: keras.Model) -> bool:
    """Copies all weights of a run's model but those of its encoder.

    Args:
        pretrained: a preset, a run or `"RUN@STEP"`. A preset has no heads.
        objective: the name of the objective of `model`.
        model: the model, whose heads are assigned: all that is not `model.encoder`,
            such as a generator.

    Returns:
        Whether the run has a checkpoint of the same objective and sizes; else nothing
        is assigned.
    """
    run_dir, step = split_step(pretrained)
    has_model = checkpoint_steps(os.path.join(run_dir, "checkpoints"))
    is_run = os.path.isfile(os.path.join(run_dir, "config.json"))
    if not (
        has_model and is_run and read_config(run_dir).get("objective") == objective
    ):
        return False
    path, _ = run_checkpoint(run_dir, step)
    trained = load_checkpoint(path, compile=False)
    old, new = _outside(trained), _outside(model)
    same = [w.shape for w in old] == [w.shape for w in new]
    if type(trained) is not type(model) or not same:
        return False
    for source, weight in zip(old, new, strict=True):
        weight.assign(keras.ops.convert_to_numpy(source))
    return True


def _outside(model):
    """The weights of a model that are not its encoder's."""
    inside = {id(weight) for weight in model.encoder.weights}
    return [weight for weight in model.weights if id(weight) not in inside]
