"""Evaluates a pretraining run on any text."""

import dataclasses
import math
import os
import tempfile

import tensorflow as tf

import tfeff
from tfeff.recipes.corpora import corpus
from tfeff.recipes.evaluate_settings import EvaluateSettings
from tfeff.recipes.pretrain_settings import PretrainSettings
from tfeff.recipes.pretraining import objective, token_loss
from tfeff.recipes.runs import read_config, recipe_running
from tfeff.recipes.stack_settings import StackSettings
from tfeff.tasks.run_tokenizer import load_run_tokenizer
from tfeff.training.checkpoints import run_checkpoint
from tfeff.training.grid import metrics_json


@recipe_running()
def evaluate(settings: EvaluateSettings) -> dict[str, float]:
    """Evaluates a run of `pretrain` or `stack` on any text, and prints the metrics.

        perplexity = exp(-1/M Σ_m log P(x_m | masked text))
        pseudo_perplexity = exp(-1/N Σ_t log P(x_t | x without x_t))

    over the `M` tokens that the objective predicts, and over all `N` tokens, each
    masked out alone. Sequences are those of the run: no token sees beyond its
    own.

    Args:
        settings: see `EvaluateSettings`.

    Returns:
        Metrics by name: `step` of the checkpoint, `tokens`, `unigram_entropy`, the
        objective's own, `perplexity` where tokens are predicted, and
        `pseudo_perplexity` if it is wanted.

    Raises:
        ValueError: if the folder is not of such a run, has no such checkpoint, or a
            file is damaged; if the pseudo-perplexity is wanted of another objective
            than a masked language model.
        OSError: if a file of text cannot be read.

    Example:
    ```python
    import tfeff
    from tfeff.recipes import EvaluateSettings, PretrainSettings, evaluate, pretrain

    pretrain(
        PretrainSettings(
            run_dir="first", max_characters=500_000, vocabulary_size=300, steps=4
        )
    )
    with open("text.txt", "w") as file:
        file.write("Returns the sum of an array.")
    metrics = evaluate(EvaluateSettings(run_dir="first", corpus=("text.txt",)))
    assert metrics["perplexity"] > 1
    ```

    Reference:
        Salazar et al., "Masked language model scoring", ACL 2020, sections 2 and 2.3,
        for the pseudo-perplexity.
    """
    of_run = read_settings(settings.run_dir)
    path, step = run_checkpoint(settings.run_dir, settings.step)
    model = tfeff.training.load_checkpoint(path)
    if settings.pseudo_perplexity and not isinstance(model, tfeff.objectives.MaskedLM):
        raise ValueError(
            "`pseudo_perplexity` must be False but for masked language models. "
            f"Received: pseudo_perplexity=True, a run of {of_run.objective!r}"
        )
    tokenizer = load_run_tokenizer(settings.run_dir)
    with tempfile.TemporaryDirectory() as folder:
        cache = tfeff.data.build_cache(
            corpus(settings.corpus, settings),
            tokenizer,
            os.path.join(folder, "cache"),
            of_run.sequence_length,
            cross_documents=of_run.cross_documents,
        )

        def score(examples, rebatch=False):
            batches = cache.batches(
                examples,
                settings.batch_size,
                settings.seed,
                tokenizer=tokenizer,
                shuffle=False,
                repeat=False,
            )
            if rebatch:
                batches = batches.rebatch(settings.batch_size)
            return model.evaluate(batches, verbose=0, return_dict=True)

        metrics = {
            "step": step,
            "tokens": cache.num_tokens,
            "unigram_entropy": cache.unigram_entropy(),
            **score(objective(of_run).examples),
        }
        loss = token_loss(model, metrics)
        if loss is not None:
            metrics["perplexity"] = perplexity(loss)
        if settings.pseudo_perplexity:
            loss = score(EachToken(), rebatch=True)["loss"]
            metrics["pseudo_perplexity"] = perplexity(loss)
    print(metrics_json(metrics))
    if settings.output is not None:
        tfeff.training.write_metrics(metrics, settings.output)
    return metrics


@dataclasses.dataclass(frozen=True)
class EachToken(tfeff.data.Examples):
    """Each token of a text masked out alone, in a row of its own.

    A batch of B sequences gives as many rows as they have tokens, special ones left
    out.
    """

    def mapping(self, manifest, seed, tokenizer):
        length = manifest.sequence_length
        special = tf.constant(manifest.special_token_ids, tf.int32)

        def example(first_example, texts):
            is_text = tf.reduce_all(texts.token_ids[..., None] != special, axis=-1)
            found = tf.cast(tf.where(is_text), tf.int32)  # [N, 2]: sequence, position
            sequences, positions = found[:, 0], found[:, 1:]
            ids = tf.gather(texts.token_ids, sequences)
            inputs = {
                "token_ids": tf.where(
                    tf.range(length) == positions, manifest.mask_token_id, ids
                ),
                "segment_ids": tf.zeros_like(ids),
                "padding_mask": tf.gather(texts.padding_mask, sequences),
                "mask_positions": positions,
            }
            labels = tf.gather(ids, positions, batch_dims=1)
            return inputs, labels, tf.ones_like(labels, tf.float32)

        return example


def read_settings(run_dir: str) -> PretrainSettings:
    """The settings of a run of pretraining or stacking."""
    config = read_config(run_dir)
    if "objective" not in config:
        raise ValueError(
            "`run_dir` must be of `tfeff pretrain` or `tfeff stack`. Of another run "
            "metrics.json has the metrics of its development set, and `tfeff finetune "
            f"--predict_split` predicts other parts. Received: run_dir={run_dir!r}"
        )
    cls = StackSettings if "doublings" in config else PretrainSettings
    return cls.from_config(cls.upgraded(config), run_dir=run_dir)


def perplexity(loss: float) -> float:
    """exp(loss); infinite where that is beyond all numbers."""
    return math.exp(loss) if loss < 700 else math.inf
