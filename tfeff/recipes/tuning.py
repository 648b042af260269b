"""One training on a task: it ends with the weights that are best on its dev part."""

import os
from collections.abc import Callable

import keras
import tensorflow as tf

import tfeff
from tfeff.recipes.runs import examples_in_step, make_optimizer, metrics_line
from tfeff.recipes.settings import Settings


def train_cell(
    settings: Settings,
    strategy: tf.distribute.Strategy,
    folder: str,
    make_model: Callable[[], keras.Model],
    make_batches: Callable[[int, int], tf.data.Dataset],
    evaluate: Callable[[keras.Model], dict[str, float]],
    metric: str,
    *,
    num_examples: int,
    sequence_length: int,
    learning_rate: float,
    batch_size: int,
    seed: int,
) -> dict[str, float]:
    """Trains one model of a grid, saves it at its best, returns its metrics.

    Args:
        settings: of the recipe.
        strategy: where to train.
        folder: the cell's folder, for `dev_metrics.csv` and `model.keras`.
        make_model: makes the model, not compiled, in the strategy's scope.
        make_batches: called with the number of examples in a step, and a seed.
        evaluate: as for `tfeff.training.KeepBest`.
        metric: the name of the metric that tells the best.
        num_examples: how many there are to train on.
        sequence_length: tokens of an example.
        learning_rate, batch_size, seed: of the cell.
    """
    print(f"learning rate {learning_rate:g}, batch size {batch_size}, seed {seed}")
    keras.utils.set_random_seed(seed)
    in_step = examples_in_step(settings, batch_size, strategy)
    steps = settings.num_steps(num_examples, in_step)
    with strategy.scope():
        model = make_model()
        model.compile(
            make_optimizer(
                settings, learning_rate, steps, layer_decay=settings.layer_decay
            ),
            accumulation_steps=settings.accumulation_steps,
        )
        best = tfeff.training.KeepBest(
            evaluate, metric, settings.eval_every, folder, settings.patience
        )
        model.fit(
            make_batches(in_step, seed),
            steps_per_epoch=steps,
            shuffle=False,  # The data set does it.
            verbose=0,
            callbacks=[
                best,
                tfeff.training.TrainingProgress(
                    steps, steps, in_step * sequence_length
                ),
            ],
        )
    tfeff.training.save_checkpoint(model, os.path.join(folder, "model.keras"))
    report(best, steps)
    return best.best


def report(best: tfeff.training.KeepBest, steps: int) -> None:
    """Prints where the best weights are from, and why a training ended early."""
    print(f"  best at step {best.best_step:,} of {steps:,}: {metrics_line(best.best)}")
    if best.diverged_step is not None:
        print(f"  the training had diverged at step {best.diverged_step:,}")
    if best.stopped_step is not None:
        print(f"  nothing better came: the training ended at {best.stopped_step:,}")
