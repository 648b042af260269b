"""Measurements of a pretrained model beside its loss on a text.

Both measurements predict the masked tokens of the text that judges, `final.jsonl`.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from evidence.cells import Context


class Subject(NamedTuple):
    """A model, batches of examples, and the ids that are no tokens of a text."""

    model: Any
    batches: Any
    special_ids: tuple[int, ...]


def loss_by_position(run_dir: str, context: Context) -> dict[str, float]:
    """The loss of masked tokens by their position, in sequences of several lengths.

    `loss@1024[128:256]` is that of positions 128 to 255 of sequences of 1024 tokens.
    """
    found = {}
    for length in (context.scale.length, *context.scale.long_lengths):
        sums, counts = np.zeros(length), np.zeros(length)
        with pretrained(run_dir, context, length, 1, cross_documents=True) as subject:
            for inputs, labels, weights in subject.batches:
                places = np.asarray(inputs["mask_positions"])
                losses = losses_of(subject.model, inputs, labels)
                np.add.at(sums, places, losses * np.asarray(weights))
                np.add.at(counts, places, weights)
        found[f"loss@{length}"] = sums.sum() / counts.sum()
        start, end = 0, context.scale.length
        while start < length:
            total = counts[start:end].sum()
            if total:
                loss = sums[start:end].sum() / total
                found[f"loss@{length}[{start}:{end}]"] = loss
            start, end = end, 2 * end
    return found


def use_of_order(run_dir: str, context: Context) -> float:
    """By how many nats the loss rises where the tokens around change places.

    A model that predicts by which tokens there are, wherever they are, has 0.
    """
    generator = np.random.default_rng(0)
    rise = count = 0.0
    length, batch_size = context.scale.length, context.scale.batch_size
    with pretrained(run_dir, context, length, batch_size) as subject:
        for inputs, labels, weights in subject.batches:
            inputs = {name: np.asarray(value) for name, value in inputs.items()}
            weights = np.asarray(weights)
            moved = shuffled(inputs, weights, subject.special_ids, generator)
            before = losses_of(subject.model, inputs, labels)
            after = losses_of(subject.model, moved, labels)
            rise += float(np.sum((after - before) * weights))
            count += float(np.sum(weights))
    return rise / count


def shuffled(
    inputs: dict[str, np.ndarray],
    weights: np.ndarray,
    special_ids: tuple[int, ...],
    generator: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Inputs whose tokens have changed places, but for special and predicted ones.

    Args:
        inputs: of a masked language model, with `token_ids` [B, T] and
            `mask_positions` [B, M].
        weights: [B, M], 0 where a position is none.
        special_ids: those of padding, `[CLS]`, `[SEP]` and `[MASK]`.
        generator: draws the new places.
    """
    ids = inputs["token_ids"].copy()
    stays = np.isin(ids, special_ids)
    for row, places, used in zip(stays, inputs["mask_positions"], weights > 0):
        row[places[used]] = True
    for row, fixed in zip(ids, stays):
        row[~fixed] = generator.permutation(row[~fixed])
    return {**inputs, "token_ids": ids}


def losses_of(model: Any, inputs: Any, labels: Any) -> np.ndarray:
    """The loss of each predicted token, [B, M] float64."""
    logits = np.asarray(model.predict_on_batch(inputs), "float64")
    chosen = np.take_along_axis(logits, np.asarray(labels)[..., None], -1)[..., 0]
    return logsumexp(logits, axis=-1) - chosen


@contextlib.contextmanager
def pretrained(
    run_dir: str,
    context: Context,
    length: int,
    batch_size: int,
    cross_documents: bool = False,
) -> Iterator[Subject]:
    """A run's model with the text that judges, in sequences of a length."""
    import tfeff
    from tfeff.recipes import PretrainSettings
    from tfeff.recipes.pretraining import settle
    from tfeff.recipes.pretraining_model import make_model, objective

    settings = settle(
        PretrainSettings(run_dir="none", pretrained=run_dir, sequence_length=length)
    )
    model = make_model(settings)
    _, tokenizer = tfeff.tasks.load_pretrained(run_dir)
    with tempfile.TemporaryDirectory() as folder:
        cache = tfeff.data.build_cache(
            tfeff.data.json_lines([context.text("final.jsonl")]),
            tokenizer,
            os.path.join(folder, "cache"),
            length,
            cross_documents=cross_documents,
        )
        batches = cache.batches(
            objective(settings).examples,
            batch_size,
            shuffle=False,
            repeat=False,
            tokenizer=tokenizer,
        )
        yield Subject(model, batches, tuple(tokenizer.special_token_ids))
