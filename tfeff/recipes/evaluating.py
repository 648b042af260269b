"""Evaluates a pretrained model on any text."""

import dataclasses
import inspect
import math
import os
import tempfile
from collections.abc import Callable, Iterable

import keras
import tensorflow as tf

import tfeff
from tfeff.data.cache.finishing import NoText
from tfeff.data.sampling import isin
from tfeff.encoders.own_calls import symbolic_outputs
from tfeff.recipes.corpora import OF_TEXT, corpus
from tfeff.recipes.data_record import crosses_documents
from tfeff.recipes.evaluate_settings import EvaluateSettings
from tfeff.recipes.heads import own_head_names
from tfeff.recipes.pretrain_settings import PretrainSettings
from tfeff.recipes.pretraining_model import objective, token_loss
from tfeff.recipes.runs import read_config, recipe_running, upgraded
from tfeff.recipes.settings import check_settings, of_command
from tfeff.recipes.stack_settings import StackSettings
from tfeff.storage.arguments import check_keeps_inputs, check_replaceable
from tfeff.tasks.encoder_limits import check_fits, check_length
from tfeff.tasks.pretrained import split_step
from tfeff.tasks.run_tokenizer import load_run_tokenizer
from tfeff.training.checkpoint_folder import run_checkpoint
from tfeff.training.scores import metrics_json
from tfeff.utils.naming import named_as
from tfeff.utils.run_files import CONFIG

# The objectives of presets, by the heads that they need.
_OF_PRESETS = ("masked_lm", "permutation_lm")


def evaluate(settings: EvaluateSettings) -> dict[str, float]:
    """Evaluates a run of `pretrain` or `stack`, or a preset, and prints the metrics.

        perplexity = exp(-1/M Σ_m log P(x_m | masked text))
        pseudo_perplexity = exp(-1/N Σ_t log P(x_t | x without x_t))
        pseudo_perplexity_per_word = exp(-1/W Σ_t log P(x_t | x without x_t))
        unigram_perplexity = exp(unigram_entropy) = exp(-1/N Σ_t log (n(x_t) / N))

    with `M` tokens that the objective predicts, `N` tokens in all, each of which is
    predicted alone for the pseudo-perplexity, `W` words between spaces, and `n(x)`, how
    often `x` is in the text. Sequences are those of the run: no token sees beyond
    its own. Of replaced-token detection it is the generator that predicts tokens; of
    permutation language modelling the token that is last in the order.

    Args:
        settings: see `EvaluateSettings`.

    Returns:
        Metrics by name: `step` of a run's checkpoint, `tokens`, `words`,
        `unigram_entropy`, `unigram_perplexity`, the objective's own, `perplexity` where
        tokens are predicted, and both pseudo-perplexities if they are wanted.

    Raises:
        TypeError: if `settings` are not `EvaluateSettings`.
        ValueError: if the folder is not of such a run or preset, has no such
            checkpoint, or a file is damaged; if the corpus holds no text; if `output`
            is a file that is read, or belongs to the folder that is; if the
            pseudo-perplexity is wanted of a model that predicts no tokens.
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
    metrics = _evaluate(settings)
    print(metrics_json(metrics))
    return metrics


@recipe_running()
def _evaluate(settings):
    check_settings(settings, EvaluateSettings)
    if settings.output is not None:
        check_replaceable("output", settings.output)
    documents = corpus(settings.corpus, settings)
    if settings.output is not None:
        files = [part.file for part in documents.parts]
        inputs = (settings.run_dir, settings.pretrained, *files)
        check_keeps_inputs("output", settings.output, filter(None, inputs))
    model, tokenizer, step, examples, cut = _subject(settings)
    if settings.pseudo_perplexity and _token_logits(model) is None:
        raise ValueError(
            "`pseudo_perplexity` must be False for a model that predicts no tokens. "
            f"Received: pseudo_perplexity=True, a `{type(model).__name__}` without "
            "masked language modelling"
        )
    with tempfile.TemporaryDirectory() as folder:
        cache = _cache(documents, tokenizer, folder, cut, settings)

        def batches(examples):
            return cache.batches(
                examples,
                settings.batch_size,
                settings.seed,
                tokenizer=tokenizer,
                shuffle=False,
                repeat=False,
            )

        entropy = cache.unigram_entropy()
        metrics = {
            **({} if step is None else {"step": step}),
            "tokens": cache.num_tokens,
            "words": sum(len(document.split()) for document in documents),
            "unigram_entropy": entropy,
            "unigram_perplexity": perplexity(entropy),
            **model.evaluate(batches(examples), verbose=0, return_dict=True),
        }
        loss = token_loss(model, metrics)
        if loss is not None:
            metrics["perplexity"] = perplexity(loss)
        if settings.pseudo_perplexity:
            is_permuted = isinstance(model, tfeff.objectives.PermutationLM)
            total, count = _sum_of_losses(
                _token_logits(model),
                batches(EachToken(is_permuted)).rebatch(settings.batch_size),
            )
            metrics["pseudo_perplexity"] = perplexity(total / count)
            metrics["pseudo_perplexity_per_word"] = perplexity(total / metrics["words"])
    if settings.output is not None:
        tfeff.training.write_metrics(metrics, settings.output)
    return metrics


def _subject(settings):
    """Model, tokenizer, step or None, examples, arguments of the cache."""
    given = [n for n in ("run_dir", "pretrained") if getattr(settings, n) is not None]
    if len(given) != 1:
        raise ValueError(
            "One of `run_dir` and `pretrained` must be given. Received: "
            f"run_dir={settings.run_dir!r}, pretrained={settings.pretrained!r}"
        )
    others = {"run_dir": ("sequence_length",), "pretrained": ("step",)}[given[0]]
    for name in others:
        if getattr(settings, name) is not None:
            raise ValueError(
                f"`{name}` must be left out with `{given[0]}`. Received: "
                f"{name}={getattr(settings, name)!r}"
            )
    if settings.pretrained is not None:
        with named_as(path="pretrained"):
            run_dir, at_step = split_step(settings.pretrained)
        if at_step is not None:
            advice = _as_preset(run_dir)
            if _is_of_an_objective(run_dir):
                advice = f". Give `run_dir={run_dir!r}` and `step={at_step}`"
            raise ValueError(
                "`pretrained` must be a preset, and no step of a run. Received: "
                f"pretrained={settings.pretrained!r}{advice}"
            )
        return _subject_of_preset(settings)
    of_run = read_settings(settings.run_dir)
    path, step = run_checkpoint(settings.run_dir, settings.step)
    model = tfeff.training.load_checkpoint(path)
    chosen = objective(of_run)
    _check_as_configured(model, chosen, of_run)
    with named_as(path="run_dir"):
        tokenizer = load_run_tokenizer(settings.run_dir)
    cut = of_run.sequence_length, crosses_documents(settings.run_dir, of_run)
    return model, tokenizer, step, chosen.examples, cut


def _check_as_configured(model, chosen, of_run):
    """Raises where a run's settings, which may be edited, are not of its model."""
    made = getattr(chosen.make_model, "func", chosen.make_model)  # Of a `partial`.
    if inspect.isclass(made) and not isinstance(model, made):
        raise ValueError(
            f"`run_dir` must have a checkpoint of a {made.__name__}, the model of "
            f"objective={chosen.name!r} in its {CONFIG}. Received: "
            f"run_dir={of_run.run_dir!r}, with a {type(model).__name__}"
        )
    check_fits("run_dir", of_run.run_dir, model.encoder, of_run.sequence_length)


def _is_of_an_objective(run_dir):
    """Whether a folder is of a run that `read_settings` reads."""
    try:
        return _settings_class(read_config(run_dir)) is not None
    except ValueError:
        return False


def _as_preset(run_dir):
    """Advice: a run of another kind whose preset can be evaluated."""
    try:
        has_head = not set(_OF_PRESETS).isdisjoint(own_head_names(run_dir))
    except ValueError:
        return ""
    return f". `pretrained={run_dir!r}` is the end of this run" if has_head else ""


def _subject_of_preset(settings):
    with named_as(path="pretrained"):
        names = own_head_names(settings.pretrained)
    name = next((name for name in _OF_PRESETS if name in names), None)
    if name is None:
        raise ValueError(
            f"`pretrained` must be a preset with a head of {' or '.join(_OF_PRESETS)}, "
            "as `tfeff convert` writes it of published checkpoints that have one, and "
            "`tfeff.tasks.save_pretrained` of an objective; for a run of `tfeff "
            f"pretrain` give `run_dir`. Received: pretrained={settings.pretrained!r}, "
            f"with {f'the heads {names}' if names else 'no heads'}"
        )
    with named_as(path="pretrained"):
        model, tokenizer = tfeff.tasks.load_objective(settings.pretrained, name)
    longest = model.encoder.max_sequence_length
    length = check_length(model.encoder, settings.sequence_length or longest)
    return model, tokenizer, None, tfeff.objectives.get(name).examples, (length, False)


def _cache(documents, tokenizer, folder, cut, settings):
    length, cross_documents = cut
    with named_as(documents="corpus", **OF_TEXT):
        try:
            return tfeff.data.build_cache(
                documents,
                tokenizer,
                os.path.join(folder, "cache"),
                length,
                cross_documents=cross_documents,
            )
        except NoText as error:
            raise ValueError(f"{error}: {', '.join(settings.corpus)}") from error


def _token_logits(model):
    """The part of a model that gives the logits of tokens; `None` if it has none."""
    output = symbolic_outputs(model)
    if isinstance(output, dict):
        output = output.get("masked_lm")
    return None if output is None else keras.Model(model.input, output)


def _sum_of_losses(model: Callable, batches: Iterable) -> tuple[float, float]:
    """The sum of `-log P(x)` over the predicted tokens, and their number."""

    @tf.function(reduce_retracing=True)
    def losses(inputs, labels, weights):
        logits = tf.cast(model(inputs, training=False), tf.float32)
        values = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        return tf.reduce_sum(values * weights)

    total = count = 0.0
    for inputs, labels, weights in batches:
        total += float(losses(inputs, labels, weights))
        count += float(tf.reduce_sum(weights))
    return total, count


@dataclasses.dataclass(frozen=True)
class EachToken(tfeff.data.Examples):
    """Each token of a text predicted from all others, in a row of its own.

    A batch of B sequences gives as many rows as they have tokens, special ones left
    out.

    Args:
        is_permuted: whether the token is the only target of an order, as in
            permutation language modelling, and not masked.
    """

    is_permuted: bool = False

    def mapping(self, manifest, seed, tokenizer):
        length = manifest.sequence_length

        def example(first_example, texts):
            is_text = ~isin(texts.token_ids, manifest.special_token_ids)
            found = tf.cast(tf.where(is_text), tf.int32)  # [N, 2]: sequence, position
            sequences, positions = found[:, 0], found[:, 1:]
            ids = tf.gather(texts.token_ids, sequences)
            is_target = tf.range(length) == positions
            inputs = {
                "token_ids": tf.where(is_target, manifest.mask_token_id, ids),
                "segment_ids": tf.zeros_like(ids),
                "padding_mask": tf.gather(texts.padding_mask, sequences),
                "mask_positions": positions,
            }
            if self.is_permuted:
                ranks = tf.where(is_target, 0, -1)
                inputs |= {"token_ids": ids, "ranks": ranks}
            labels = tf.gather(ids, positions, batch_dims=1)
            return inputs, labels, tf.ones_like(labels, tf.float32)

        return example


def read_settings(run_dir: str) -> PretrainSettings:
    """The settings of a run of pretraining or stacking."""
    config = read_config(run_dir)
    cls = _settings_class(config)
    if cls is None:
        raise ValueError(
            "`run_dir` must be of `tfeff pretrain` or `tfeff stack`. Of another run "
            "metrics.json has the metrics of its development set, and `tfeff finetune "
            f"--predict_split` predicts other parts. Received: run_dir={run_dir!r}, "
            f"whose {CONFIG} is {of_command(config)}{_as_preset(run_dir)}"
        )
    with named_as(directory="run_dir"):
        config = upgraded(cls, run_dir, config)
    return cls.from_config(config, run_dir=run_dir)


def _settings_class(config):
    """The class of a run's settings; `None` of another command's."""
    classes = (PretrainSettings, StackSettings)
    return next((x for x in classes if x.command == config.get("command")), None)


def perplexity(loss: float) -> float:
    """exp(loss); infinite where that is beyond all numbers."""
    return math.inf if loss >= 700 else math.exp(loss)
