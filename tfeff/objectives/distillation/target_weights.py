"""The weight of each example, position and target in the mean of a term."""

from collections.abc import Mapping

import keras
from keras import ops

from tfeff.objectives.distillation.losses import output_shapes
from tfeff.training.target_weights import (
    check_weights,
    target_weights,
    weights_of_examples,
)


def position_counts(padding_mask, terms, reduction: str) -> dict:
    """Number of positions behind each sequence's sum, by term.

    Sums are divided by it, and it is the sequence's weight in the mean over sequences.
    With the reduction `"sum_squares"` it is 1 for every sequence that is not empty,
    except in the mean of cosines.

    Args:
        padding_mask: tensor `[B, T]`, or `[B, C, T]` of questions with options.
        terms: names of terms that compare positions.
        reduction: as in `tfeff.objectives.Distillation`.

    Returns:
        Dict of float32 tensors `[B]` or `[B, C]`.
    """
    tokens = ops.sum(ops.cast(ops.not_equal(padding_mask, 0), "float32"), axis=-1)
    counts = dict.fromkeys(terms, ops.cast(tokens > 0, "float32"))
    own = {"cosine": tokens}
    if reduction == "mean":
        own |= {"embedding": tokens, "hidden": tokens, "attention": tokens**2}
    return counts | {name: own[name] for name in terms if name in own}


def example_weights(sample_weight, inputs):
    """The weight of each example, `[B]`: 1, or what the batch gives for all of it.

    Weights of tokens, `[B, M]`, are no weights of examples; those of several outputs
    are averaged.
    """
    padding_mask = inputs["padding_mask"]
    targets = inputs.get("mask_positions", padding_mask)
    examples = ops.any(padding_mask != 0, axis=tuple(range(1, len(padding_mask.shape))))
    examples = ops.cast(examples, "float32")
    if isinstance(sample_weight, Mapping):
        given = [weights_of_examples(w, targets) for w in sample_weight.values()]
        parts = [ops.cast(weight, "float32") for weight in given if weight is not None]
        sample_weight = sum(parts) / len(parts) if parts else None
    weights = weights_of_examples(sample_weight, targets)
    return examples if weights is None else examples * ops.cast(weights, "float32")


def check_outputs(student: keras.Model) -> None:
    """Raises unless `prediction_weights` has weights for the student's outputs."""
    shapes = output_shapes(student.output)
    ranks = {len(shape) for shape in shapes.values()}
    known = {1, 2} if None in shapes else {2}
    if None in shapes and _token_targets(student.input) is not None:
        known.add(3)
    if not ranks <= known:
        raise TypeError(
            "`student` must have logits [B, C], ratings [B], a dict of logits [B, T], "
            "logits [B, M, V] at `mask_positions`, or logits [B, T, C] of tokens, "
            "unless `prediction` and `label` are False. "
            f"Received: student={student!r:.80}"
        )


def prediction_weights(sample_weight, inputs, model: keras.Model):
    """The weight of each target of the student's predictions.

    Args:
        sample_weight: as a batch has it: `None`, `[B]` or `[B, 1]`, `[B, M]` for masked
            tokens, `[B, T]` for tokens, or a dict of weights of examples for several
            outputs. The weight of padding is 0 but where weights of tokens tell
            another.
        inputs: the model's inputs.
        model: the student.

    Returns:
        Tensor of the shape that `prediction_divergence` gives.

    Raises:
        ValueError: if the weights have another shape, or are not of all outputs.
    """
    shapes = output_shapes(model.output)
    examples = example_weights(None, inputs)
    if None not in shapes:
        check_weights(sample_weight, shapes)
        given = sample_weight if isinstance(sample_weight, Mapping) else {}
        given = given or dict.fromkeys(shapes, sample_weight)
        columns = [_weighted(examples, given[name]) for name in shapes]
        return ops.stack(columns, axis=-1)
    if len(shapes[None]) < 3:
        return _weighted(examples, sample_weight)
    targets = _token_targets(inputs)
    weights = ops.cast(target_weights(sample_weight, targets), "float32")
    of_examples = weights_of_examples(sample_weight, targets) is not None
    if "mask_positions" not in inputs and (sample_weight is None or of_examples):
        weights = weights * ops.cast(ops.not_equal(targets, 0), "float32")
    return weights


def _token_targets(inputs):
    """A tensor with an entry for each target of logits of tokens, `[B, M]` or `[B, T]`.

    `None` of inputs whose rows are options, `[B, C, T]`.
    """
    targets = inputs.get("mask_positions", inputs["padding_mask"])
    return targets if len(targets.shape) == 2 else None


def _weighted(examples, sample_weight):
    if sample_weight is None:
        return examples
    weights = ops.cast(sample_weight, "float32")
    if len(weights.shape) != 1 and tuple(weights.shape[1:]) != (1,):
        raise ValueError(
            "`sample_weight` must have one weight for each example, [B]. "
            f"Received: shape {tuple(weights.shape)}"
        )
    return examples * ops.reshape(weights, (-1,))
