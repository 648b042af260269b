"""Trains, scores and serves sentence embeddings of a pretrained encoder."""

import dataclasses
import functools
import json
import math
import os
from collections.abc import Callable, Sequence

import keras
import numpy as np

import tfeff
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.data_record import keep_data
from tfeff.recipes.embed_settings import OF_SCORING, EmbedSettings
from tfeff.recipes.heads import read_embedding_settings, read_own_head
from tfeff.recipes.long_texts import print_long
from tfeff.recipes.next_commands import print_finetune_next
from tfeff.recipes.run_exports import RunModel, same_weights, write_model
from tfeff.recipes.runs import (
    check_batch_sizes,
    metrics_line,
    open_run,
    pads_to_longest,
    recipe_running,
)
from tfeff.recipes.settings import changed, check_settings
from tfeff.recipes.starting import load_for_training, print_frozen
from tfeff.recipes.task_dataset import best_metric, find_dataset
from tfeff.recipes.task_scores import print_undefined
from tfeff.recipes.tuning import (
    Tuning,
    best_of,
    enable_lora,
    make_grid,
)
from tfeff.recipes.unknown_tokens import print_unknown
from tfeff.utils.files import write_text
from tfeff.utils.naming import named_as
from tfeff.utils.run_files import CELLS, METRICS, MODEL

# The head of a layerwise pooling, in presets.
_QUERY = "layerwise_pooler"


@recipe_running()
def embed(
    settings: EmbedSettings,
    examples: tfeff.data.SentenceExamples | None = None,
    dataset: tfeff.datasets.Dataset | None = None,
    callbacks: Sequence[keras.callbacks.Callback | Callable] = (),
) -> dict:
    """Trains with every rate, batch size and seed; exports the best model.

    Args:
        settings: the `EmbedSettings`, which say what is in the run directory.
        examples: what to train on, in place of a file `settings.examples`.
        dataset: a data set of rated pairs with the name `settings.task`; `None` for the
            one that is registered under it.
        callbacks: Keras callbacks beside those of the settings, or functions that make
            one for each training.

    Returns:
        Dict of `untrained`, the metrics before training, and those of all trainings, as
        `tfeff.training.Grid.run` gives them; `metrics.json` has them, too.

    Raises:
        TypeError: if `settings` are not `EmbedSettings`, or `examples` not
            `SentenceExamples`.
        ValueError: if a setting does not fit the examples, the encoder or the run
            directory.
        OSError: if a file cannot be read.
        Diverged: if no setting gave a model.

    Example:
    ```python
    import os
    import tfeff

    texts = ["It rains.", "Rain falls.", "A cat sat.", "The cat is sitting."]
    os.makedirs("glue/STS-B")
    with open("glue/STS-B/dev.tsv", "w") as file:
        file.write("sentence1\\tsentence2\\tscore\\n")
        file.write("It rains.\\tRain falls.\\t4.5\\nIt rains.\\tA cat sat.\\t0.5\\n")
    with open("texts.txt", "w") as file:
        file.write("\\n".join(texts))
    tokenizer = tfeff.data.train_tokenizer(texts * 9, vocabulary_size=24)
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=24, num_layers=1, max_sequence_length=16
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset")

    settings = tfeff.recipes.EmbedSettings(
        run_dir="run",
        pretrained="preset",
        examples="texts.txt",
        data="glue",
        batch_sizes=(2,),
        steps=2,
    )
    found = tfeff.recipes.embed(settings)
    assert "dev_spearman" in found["best"]["mean"]
    assert os.path.isdir("run/export/1")
    ```
    """
    check_settings(settings, EmbedSettings)
    own_callbacks = Callbacks(settings, callbacks)
    dataset = find_dataset(
        settings.task, tfeff.data.TextExamples, given=dataset, data=settings.data
    )
    if dataset.label_names is not None:
        raise ValueError(
            "`task` must be a data set of pairs with ratings, such as STS-B. "
            f"Received: task={settings.task!r}, whose labels are {dataset.label_names}"
        )
    metric = f"{settings.split}_{best_metric(settings, dataset)}"
    examples = given_examples(settings, examples, callbacks)
    pairs = read_pairs(settings, dataset)
    with open_run(settings) as run:
        if examples is None and os.path.isdir(run.path(CELLS)):
            raise ValueError(
                "`examples` must be given again for a run that has been trained with "
                f"some. Received: examples=None, run_dir={settings.run_dir!r}"
            )
        strategy = tfeff.training.make_strategy(settings.strategy, settings.tpu)
        encoder, tokenizer = load_for_training(settings)
        length = settings.sequence_length or encoder.max_sequence_length
        check_encoder(settings, examples, encoder, strategy)
        scored = Scored(dataset, settings.split, pairs, tokenizer, length)
        print_scored(settings, scored)
        # A new query of a layerwise pooling is random.
        keras.utils.set_random_seed(settings.seeds[0])
        model = make_model(settings, encoder)
        model.compile()
        if examples is None:
            keep_data(run, dataset, {"pairs": pairs}, trained="")
        else:
            keep_data(run, dataset, {"pairs": pairs, "examples": examples})
        untrained = scored.metrics(model)
        summary = {"untrained": untrained}
        print(f"before training: {metrics_line(untrained)}")
        if examples is not None:
            summary |= train(
                settings,
                examples,
                strategy,
                scored,
                metric,
                run,
                own_callbacks,
                untrained,
                # Texts are scored and served in rows of the full length.
                pad_to_longest=pads_to_longest(settings, encoder),
            )
            found = best_of(settings, summary, run)
        else:
            save = functools.partial(tfeff.training.save_checkpoint, model)
            found = RunModel(model, has_weights(run, model), save)
        exported = write_model(run, found, tokenizer, sequence_length=length)
        tfeff.training.write_metrics(summary, run.path(METRICS))
        run.finish()
        if examples is not None:
            best = summary["best"]
            print(
                f"best setting: {json.dumps(best['setting'])}, "
                f"{metrics_line(best['mean'])}"
            )
        print(
            f"the model: {run.shown(run.path(MODEL))}\n"
            f"text in, sentence_embeddings out: {run.shown(exported)}"
        )
        print_finetune_next(settings.run_dir)
        return summary


def given_examples(settings, examples, callbacks):
    """The examples to train on, given once or not at all, and sampled."""
    if examples is None and settings.examples is None:
        given = sorted(changed(settings).difference(OF_SCORING))
        if given or callbacks:
            raise ValueError(
                "`examples` must be given with settings of training: without them "
                "nothing is trained. Received: examples=None and "
                f"{', '.join(given) or 'callbacks'}"
            )
    if examples is not None and settings.examples is not None:
        raise ValueError(
            "`examples` must be given once, as a file of the settings or as an object. "
            f"Received: settings.examples={settings.examples!r} and "
            f"examples={examples!r:.80}"
        )
    kind = tfeff.data.SentenceExamples
    if examples is not None and not isinstance(examples, kind):
        raise TypeError(
            f"`examples` must be `{kind.__name__}`. Received: examples={examples!r:.80}"
        )
    if settings.examples is not None:
        with named_as(path="examples"):
            examples = tfeff.datasets.read_sentences(settings.examples)
    if examples is not None and settings.train_examples is not None:
        with named_as(count="train_examples"):
            examples = examples.sample(settings.train_examples)
    return examples


def has_weights(run, model):
    """Whether an earlier start has kept a model with these weights as the run's."""
    path = run.path(MODEL)
    if not os.path.exists(path):
        return False
    return same_weights(tfeff.training.load_checkpoint(path, compile=False), model)


def read_pairs(settings, dataset):
    """The rated pairs to score by."""
    with named_as(folder="data"):
        pairs = dataset.read(settings.split, settings.data)
    if pairs.second is None or pairs.labels is None:
        raise ValueError(
            "`task` must be a data set of pairs, and `split` one with ratings. "
            f"Received: task={settings.task!r}, split={settings.split!r}"
        )
    for number, texts in zip(pairs.ids, zip(pairs.first, pairs.second, strict=True)):
        if not all(text.strip() for text in texts):
            raise ValueError(
                "`task` must be a data set of pairs without an empty text. Received: "
                f"task={settings.task!r}, whose example {str(number)!r} of "
                f"{settings.split!r} is {texts!r:.80}"
            )
    return pairs


def check_encoder(settings, examples, encoder, strategy):
    """Raises where the encoder cannot be trained on examples, or scored without."""
    if examples is not None:
        check_batch_sizes(settings, strategy)
        print_frozen(encoder)
        check_contrast(settings, examples, encoder)
        enable_lora(settings, encoder)
    elif settings.pooling == "layerwise" and not _query(settings):
        raise ValueError(
            "`pooling` must be another than 'layerwise' without `examples` where "
            "`pretrained` has no layerwise pooling, which would be random. "
            f"Received: pooling='layerwise', pretrained={settings.pretrained!r}"
        )


def print_scored(settings, scored):
    """Prints what is lost of the texts to score by, and of the preset's settings."""
    pairs, tokenizer, length = scored.pairs, scored.tokenizer, scored.sequence_length
    texts = tfeff.data.TextExamples(tuple({*pairs.first, *pairs.second}))
    rows = tfeff.data.text_features(texts, tokenizer, length)
    print_long({f"texts of {scored.split}": rows})
    print_unknown({f"texts of {scored.split}": rows.token_ids}, tokenizer)
    own = read_embedding_settings(settings.pretrained) or {}
    used = {"pooling": settings.pooling, "sequence_length": length}
    for name, value in used.items():
        if own.get(name) not in (None, value):
            print(
                f"{name}: {value}; the embeddings of {settings.pretrained} are "
                f"those of --{name}={own[name]}"
            )


def check_contrast(settings, examples, encoder):
    """Raises where a text has nothing to be contrasted with."""
    size = len(examples.rows[0])
    if size < 3 and len(set(examples.rows)) < 2:
        raise ValueError(
            "`examples` must hold two different texts or pairs at least: the other "
            "texts of the batch are what each is contrasted with. Received: "
            f"{len(examples)} times {examples.rows[0]!r:.80}"
        )
    for batch_size in settings.batch_sizes:
        if batch_size < 2 and size < 3:
            raise ValueError(
                "`batch_sizes` must be at least 2 without hard negatives: the other "
                "texts of the batch are what each is contrasted with. "
                f"Received: batch_sizes={list(settings.batch_sizes)}"
            )
    if size == 1 and not (encoder.dropout or encoder.attention_dropout):
        raise ValueError(
            "`dropout` must be above 0 for texts alone, whose partners are themselves "
            "under another dropout mask; 0.1 is usual. Received: "
            f"dropout={settings.dropout}, an encoder pretrained with {encoder.dropout}"
        )


@dataclasses.dataclass(frozen=True)
class Scored:
    """Rated pairs, and how their texts are read."""

    dataset: tfeff.datasets.Dataset
    split: str
    pairs: tfeff.data.TextExamples
    tokenizer: object
    sequence_length: int

    def metrics(self, model):
        """The metrics of the pairs' cosines; undefined where the model diverged."""
        names = self.dataset.metric_names
        scores = dict.fromkeys(names, math.nan)
        first, second = (
            model.embed(texts, self.tokenizer, self.sequence_length, normalize=True)
            for texts in (self.pairs.first, self.pairs.second)
        )
        cosines = np.sum(first * second, axis=1)
        if np.isfinite(cosines).all():
            scores = self.dataset.metrics(self.pairs, cosines)
        return {f"{self.split}_{name}": value for name, value in scores.items()}


def make_model(settings, encoder):
    """The model around an encoder, with the trained query that its preset has.

    Its vectors have length 1 where those of the preset have: the cosines are the same.
    """
    own = read_embedding_settings(settings.pretrained) or {}
    model = tfeff.tasks.SentenceEmbedding(
        encoder,
        settings.pooling,
        settings.temperature,
        sequence_length=settings.sequence_length,
        normalize=own.get("normalize", False),
    )
    if query := _query(settings):
        model.heads()[_QUERY].assign(query)
    return model


def _query(settings):
    """The arrays of a layerwise pooling that the pretrained preset has."""
    is_read = settings.pooling == "layerwise"
    return read_own_head(settings.pretrained, _QUERY) if is_read else None


def train(
    settings,
    examples,
    strategy,
    scored,
    metric,
    run,
    callbacks,
    untrained,
    pad_to_longest,
):
    """Trains every cell of the grid."""
    rows = tfeff.data.sentence_features(
        examples, scored.tokenizer, scored.sequence_length
    )
    size = len(examples.rows[0])
    texts = f"{size} text{'s' * (size > 1)} each"
    print(f"{len(examples):,} examples of {texts} to train on")
    print_long({"examples to train on": rows})
    print_unknown({"examples to train on": rows.token_ids}, scored.tokenizer)
    name = best_metric(settings, scored.dataset)
    print_undefined(scored.dataset, name, scored.split, scored.pairs)
    grid = make_grid(
        run,
        settings,
        metric,
        learning_rate=settings.learning_rates,
        batch_size=settings.batch_sizes,
    )
    tuning = Tuning(
        settings=settings,
        strategy=strategy,
        callbacks=callbacks,
        metric=metric,
        baseline={"name": "before training", "metrics": untrained},
        num_examples=len(examples),
        sequence_length=rows.num_texts * scored.sequence_length,
        make_model=lambda seed, _: make_model(
            settings, load_for_training(settings, seed=seed)[0]
        ),
        make_batches=lambda in_step, seed: rows.dataset(
            in_step, seed, pad_to_longest=pad_to_longest
        ),
        evaluate=scored.metrics,
    )
    summary = grid.run(tuning.train)
    title = f"{scored.dataset.name}, mean ± deviation over seeds"
    write_text(run.path("summary.md"), f"{title}\n\n{grid.table()}")
    print(grid.table(), end="")
    return summary
