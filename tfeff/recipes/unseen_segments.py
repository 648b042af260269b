"""Segments that a pretraining never showed, of encoders to fine-tune on pairs."""

import os

import keras

import tfeff
from tfeff.recipes.runs import read_config
from tfeff.storage.arguments import READ_MODEL, paths
from tfeff.tasks.pretrained import split_step

# Their texts are all of segment 0.
ONE_SEGMENT = ("masked_lm", "replaced_token", "permutation_lm")


@paths(pretrained=READ_MODEL)
def has_unseen_segments(pretrained: str) -> bool:
    """Whether an encoder comes from a run that showed it segment 0 alone.

    So does a general distillation, unless the student began with the teacher's layers.

    Of a preset nobody knows, and a run that went on from another encoder may have been
    shown more before: of both it is False.
    """
    run_dir, _ = split_step(pretrained)
    if not os.path.isfile(os.path.join(run_dir, "config.json")):
        return False
    config = read_config(run_dir)
    if config.get("stage") == "general":
        return not config.get("copy_layers")
    return config.get("objective") in ONE_SEGMENT and not config.get("pretrained")


def begin_as_first(encoder: tfeff.encoders.Encoder) -> bool:
    """Makes the embeddings of all segments that of segment 0.

    Returns:
        Whether there were others.
    """
    if encoder.num_segments < 2:
        return False
    table = encoder.embedding.segment_embedding.embeddings
    first = keras.ops.convert_to_tensor(table)[:1]
    table.assign(keras.ops.repeat(first, encoder.num_segments, axis=0))
    return True
