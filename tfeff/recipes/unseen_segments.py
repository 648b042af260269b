"""Segments that a pretraining never showed, of encoders to fine-tune on pairs."""

import os
from typing import Any

import keras

import tfeff
from tfeff.data.finetuning.packing import num_segments
from tfeff.recipes.finetune_settings import FinetuneSettings
from tfeff.recipes.runs import read_config
from tfeff.storage.arguments import READ_MODEL, paths
from tfeff.tasks.pretrained import split_step
from tfeff.utils.run_files import CONFIG


def check_segments(
    settings: FinetuneSettings,
    examples: Any,
    encoder: tfeff.encoders.Encoder,
    tokenizer: Any,
) -> bool:
    """Whether all segments begin as segment 0, where second texts show others.

    Args:
        settings: of the recipe.
        examples: those to train on.
        encoder, tokenizer: what was pretrained.

    Raises:
        ValueError: if segments are to be compared and there are no two; if adapters are
            to be saved beside segments that are not those of the pretraining.
    """
    one = num_segments(tokenizer) == 1
    if settings.pooling == "segments" and (one or not _has_second(examples)):
        missing = "whose tokenizer has one segment" if one else "single texts"
        raise ValueError(
            "`pooling` must be another one without second texts in a segment of their "
            f"own. Received: pooling='segments', task={settings.task!r}, {missing}"
        )
    is_copied = settings.new_segments == "copied"
    if not (is_copied and shows_new(settings.pretrained, examples, encoder, tokenizer)):
        return False
    if settings.save_lora:
        raise ValueError(
            "`new_segments` must be 'kept' with `save_lora` for pairs of texts where "
            "the pretraining showed one segment: adapters are loaded beside the "
            "encoder as it was pretrained. "
            f"Received: new_segments={settings.new_segments!r}"
        )
    return True


def shows_new(
    pretrained: str, examples: Any, encoder: tfeff.encoders.Encoder, tokenizer: Any
) -> bool:
    """Whether examples show segments that the encoder's pretraining never did.

    Args:
        pretrained: the preset, the run or `"RUN@STEP"` of the encoder.
        examples: those to train on.
        encoder, tokenizer: the pretrained ones.
    """
    has_others = num_segments(tokenizer) > 1 and encoder.num_segments > 1
    return has_others and _has_second(examples) and has_unseen_segments(pretrained)


def _has_second(examples):
    """Whether there are second texts: those of pairs, or the passages of options.

    Passages of questions with spans do not count: `tfeff answer` keeps their segment.
    """
    is_of_options = isinstance(examples, tfeff.data.ChoiceExamples)
    return is_of_options or getattr(examples, "second", None) is not None


@paths(pretrained=READ_MODEL)
def has_unseen_segments(pretrained: str) -> bool:
    """Whether an encoder comes from a run that showed it segment 0 alone.

    A general distillation shows no others, unless the student began with the teacher's
    layers. It is False of a preset, whose pretraining is not known, of a run that began
    with another encoder, which may have been shown others before, and of an objective
    that is not registered here or does not say how many segments it shows.
    """
    run_dir, _ = split_step(pretrained)
    if not os.path.isfile(os.path.join(run_dir, CONFIG)):
        return False
    config = read_config(run_dir)
    if config.get("stage") == "general":
        return not config.get("copy_layers")
    objective = config.get("objective")
    if config.get("pretrained") or objective not in tfeff.objectives.names():
        return False
    return tfeff.objectives.get(objective).num_segments == 1


def begin_as_first(encoder: tfeff.encoders.Encoder) -> None:
    """Makes the embeddings of all segments that of segment 0."""
    table = encoder.embedding.segment_embedding.embeddings
    first = keras.ops.convert_to_tensor(table)[:1]
    table.assign(keras.ops.repeat(first, encoder.num_segments, axis=0))
