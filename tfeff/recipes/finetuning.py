"""Fine-tunes an encoder to classify or rate texts, choose options, or label words."""

import dataclasses
import json
from collections.abc import Callable, Sequence

import keras

import tfeff
from tfeff.recipes.baselines import baseline_to_predict, make_baseline, scores_line
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.data_record import keep_data
from tfeff.recipes.drawing import check_plots, draw
from tfeff.recipes.finetune_settings import FinetuneSettings
from tfeff.recipes.heads import read_pooler, read_task_heads
from tfeff.recipes.long_texts import print_long
from tfeff.recipes.next_commands import print_report_next
from tfeff.recipes.predictions import (
    remove_predictions,
    write_predictions,
    write_scores,
)
from tfeff.recipes.run_exports import export_options, write_model
from tfeff.recipes.runs import (
    check_batch_sizes,
    open_run,
    pads_to_longest,
    recipe_running,
)
from tfeff.recipes.settings import check_settings
from tfeff.recipes.shared_examples import print_shared
from tfeff.recipes.starting import load_for_training, print_frozen
from tfeff.recipes.task_dataset import best_metric, find_dataset
from tfeff.recipes.task_model import head_arguments, make_model, task_class
from tfeff.recipes.task_part import TaskPart, rows_of
from tfeff.recipes.task_scores import (
    print_two_ratings,
    print_undefined,
    print_unlearnt,
)
from tfeff.recipes.tuning import (
    Tuning,
    best_of,
    enable_lora,
    make_grid,
)
from tfeff.recipes.unknown_tokens import print_unknown
from tfeff.recipes.unseen_segments import begin_as_first, check_segments
from tfeff.training.checkpoint_folder import run_checkpoint
from tfeff.utils.files import write_text
from tfeff.utils.naming import named_as
from tfeff.utils.run_files import METRICS, MODEL, PLOTS

SERVED = {
    "Classifier": ("label", "probabilities"),
    "Regressor": ("score",),
    "MultipleChoice": ("option", "probabilities"),
    "TokenClassifier": ("words", "labels", "entities"),
}


@recipe_running()
def finetune(
    settings: FinetuneSettings,
    dataset: tfeff.datasets.Dataset | None = None,
    callbacks: Sequence[keras.callbacks.Callback | Callable] = (),
) -> dict:
    """Trains with every rate, batch size and seed; exports the best model.

    Args:
        settings: the `FinetuneSettings`, which say what is in the run directory.
        dataset: a data set of texts, options or words with the name `settings.task`;
            `None` for the one that is registered under it, or that is described in
            `settings.data`.
        callbacks: Keras callbacks beside those of the settings, or functions that make
            one for each training.

    Returns:
        The metrics of all, as `tfeff.training.Grid.run` gives them, and the `baseline`;
        `metrics.json` has them, too.

    Raises:
        TypeError: if `settings` are not `FinetuneSettings`.
        ValueError: if a setting does not fit the data set, the encoder or the run
            directory.
        OSError: if a file cannot be read.
        Diverged: if no setting gave a model.

    Example:
    ```python
    import os
    import tfeff

    films = ["great fun\\t1", "far too long\\t0"]
    os.makedirs("glue/SST-2")
    for split in ("train", "dev"):
        with open(f"glue/SST-2/{split}.tsv", "w") as file:
            file.write("\\n".join(["sentence\\tlabel", *films]))
    tokenizer = tfeff.data.train_tokenizer(films * 9, vocabulary_size=18)
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=18, num_layers=1, max_sequence_length=16
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset")

    settings = tfeff.recipes.FinetuneSettings(
        run_dir="run", task="SST-2", data="glue", pretrained="preset", steps=2
    )
    found = tfeff.recipes.finetune(settings)
    assert "dev_accuracy" in found["best"]["mean"]
    assert os.path.isdir("run/export/1")
    ```
    """
    check_settings(settings, FinetuneSettings)
    own_callbacks = Callbacks(settings, callbacks)
    check_plots(settings.plots)
    if settings.pad_to_longest and settings.strategy == "tpu":
        raise ValueError(
            "`pad_to_longest` must be left out on a TPU, which needs batches of one "
            "shape. Received: pad_to_longest=True, strategy='tpu'"
        )
    dataset = find_dataset(
        settings.task,
        tfeff.data.TextExamples,
        tfeff.data.ChoiceExamples,
        tfeff.data.TokenExamples,
        given=dataset,
        data=settings.data,
    )
    with open_run(settings) as run:
        strategy = tfeff.training.make_strategy(settings.strategy, settings.tpu)
        check_batch_sizes(settings, strategy)
        with named_as(step="pretrained_steps", run_dir="pretrained"):
            for step in settings.pretrained_steps:
                run_checkpoint(settings.pretrained, step)
        encoder, tokenizer = load_for_training(settings, *settings.pretrained_steps[:1])
        print_frozen(encoder)
        enable_lora(settings, encoder)
        task = make_task(settings, dataset, encoder, tokenizer)
        head = head_arguments(settings, dataset, task.train.examples)
        initial_heads = pretrained_heads(settings, dataset, head)
        if set(initial_heads) == {"pooler"}:
            print(f"the pooler begins as that of {settings.pretrained}")
        steps = settings.pretrained_steps
        grid = make_grid(
            run,
            settings,
            task.metric,
            **({"pretrained_step": steps} if steps else {}),
            learning_rate=settings.learning_rates,
            batch_size=settings.batch_sizes,
        )
        read_parts = {"train": task.train, **task.dev}
        keep_data(run, dataset, {n: part.examples for n, part in read_parts.items()})
        tuning = make_tuning(
            settings, task, head, initial_heads, strategy, own_callbacks
        )
        best = grid.run(tuning.train)["best"]
        grid.summary["baseline"] = task.baseline
        table = grid.table({task.baseline["name"]: task.baseline["metrics"]})
        title = f"{dataset.name}, mean ± deviation over seeds"
        write_text(run.path("summary.md"), f"{title}\n\n{table}")
        print(table, end="")

        found = best_of(settings, grid.summary, run)
        model = found.model
        if not found.is_kept:
            remove_predictions(run)
        if settings.predict_split:
            predict_part(task, model, settings.predict_split, run)
        if settings.plots:
            part = task.dev[dataset.dev_splits[0]]
            batches = part.encoder_batches(8, shuffle=False, repeat=False)
            draw(model.encoder, batches, run)
        exported = write_model(
            run,
            found,
            tokenizer,
            sequence_length=task.sequence_length,
            **export_options(task.train.examples),
        )
        tfeff.training.write_metrics(grid.summary, run.path(METRICS))
        if settings.plots and steps:
            tfeff.plots.score_curves(
                {dataset.name: run.path(METRICS)},
                run.path(PLOTS, "score_curve.png"),
            )
        run.finish()
        print(
            f"best setting: {json.dumps(best['setting'])}, "
            f"{scores_line(best['mean'], task.baseline)}\n"
            f"the best model: {run.shown(run.path(MODEL))}\n"
            f"text in, {', '.join(SERVED[type(model).__name__])} out: "
            f"{run.shown(exported)}"
        )
        print_report_next(settings.run_dir)
        return grid.summary


@dataclasses.dataclass(frozen=True)
class TaskData:
    """A data set as the encoder reads it.

    Attributes:
        dataset: the `Dataset`.
        sequence_length: tokens of a row.
        train: what to train on.
        dev: the parts to choose the best by, by name.
        to_predict: what to predict in the end, or `None`.
        predicted_baseline: as `baseline`, of what to predict; `None` without labels.
        metric: the metric that tells the best, as `evaluate` names it.
        copies_segments: whether segments that the pretraining never showed, and the
            examples have, begin as the first one.
        baseline: what the labels of `train` alone predict, as of `make_baseline`.
    """

    dataset: tfeff.datasets.Dataset
    sequence_length: int
    train: TaskPart
    dev: dict[str, TaskPart]
    to_predict: TaskPart | None
    predicted_baseline: dict | None
    metric: str
    copies_segments: bool
    baseline: dict


def make_task(settings, dataset, encoder, tokenizer):
    """Reads the parts of the data set."""
    if settings.pad_to_longest and encoder.length_dependent:
        raise ValueError(
            "`pad_to_longest` must be left out: of this encoder more padding changes "
            "the outputs. Received: pad_to_longest=True"
        )
    words = dataset.kind is tfeff.data.TokenExamples
    for name, default in {"pooling": "cls", "pooler_activation": None}.items():
        value = getattr(settings, name)
        if words and value != default:
            raise ValueError(
                f"`{name}` must be left out for words, each of which has a vector of "
                f"its own. Received: {name}={value!r}, task={dataset.name!r}"
            )
    metric = best_metric(settings, dataset)
    pad_to_longest = settings.pad_to_longest
    if pad_to_longest is None:
        pad_to_longest = pads_to_longest(settings, encoder)
    length = settings.sequence_length or encoder.max_sequence_length
    train = read(dataset, "train", settings.data, settings.skip_malformed)
    copied = check_segments(settings, train, encoder, tokenizer)
    if settings.train_examples is not None:
        with named_as(count="train_examples"):
            train = train.sample(settings.train_examples)
    dev = {
        split: read(dataset, split, settings.data, settings.skip_malformed)
        for split in dataset.dev_splits
    }
    to_predict = predicted_baseline = None
    if settings.predict_split:
        to_predict = read(dataset, settings.predict_split, settings.data)
        predicted_baseline = baseline_to_predict(
            dataset, train, settings.predict_split, to_predict
        )

    def part(examples):
        rows = rows_of(examples, tokenizer, length)
        return TaskPart(dataset, examples, rows, pad_to_longest)

    task = TaskData(
        dataset=dataset,
        sequence_length=length,
        train=part(train),
        dev={split: part(examples) for split, examples in dev.items()},
        to_predict=None if to_predict is None else part(to_predict),
        predicted_baseline=predicted_baseline,
        metric=f"{dataset.dev_splits[0]}_{metric}",
        copies_segments=copied,
        baseline=make_baseline(
            dataset, train, {f"{split}_": part for split, part in dev.items()}
        ),
    )
    print(
        f"{dataset.name}: {len(train):,} examples to train on, "
        f"{', '.join(f'{len(e):,} of {s}' for s, e in dev.items())}"
    )
    shown = {"train": train, **dev}
    if to_predict is not None:
        shown.setdefault(settings.predict_split, to_predict)
    print_shared(shown)
    print_two_ratings(dataset, train)
    print_unlearnt(train, dev)
    split = dataset.dev_splits[0]
    print_undefined(dataset, metric, split, dev[split])
    parts = {"examples to train on": task.train}
    parts |= {f"of {split}": part for split, part in task.dev.items()}
    if task.to_predict is not None:
        parts["to predict"] = task.to_predict
    rows = {name: part.rows for name, part in parts.items()}
    print_long(rows)
    print_unknown({name: part.token_ids for name, part in rows.items()}, tokenizer)
    return task


def read(dataset, split, folder, skip_malformed=False):
    """The examples of a part of the data set."""
    options = {"skip_malformed": True} if skip_malformed else {}
    with named_as(split="predict_split", folder="data"):
        examples = dataset.read(split, folder, **options)
    if examples.skipped:
        print(f"{len(examples.skipped):,} lines left out, first {examples.skipped[0]}")
    return examples


def make_tuning(settings, task, head, initial_heads, strategy, callbacks):
    """How the cells are trained, from these arguments and arrays of heads."""

    def model(seed, pretrained_step):
        encoder = load_encoder(settings, task.copies_segments, pretrained_step, seed)
        kind = task_class(task.dataset)
        return make_model(kind, encoder, settings.head_dropout, head, initial_heads)

    def evaluate(model):
        return {
            f"{split}_{name}": value
            for split, part in task.dev.items()
            for name, value in part.score(model).items()
        }

    return Tuning(
        settings=settings,
        strategy=strategy,
        callbacks=callbacks,
        metric=task.metric,
        baseline=task.baseline,
        num_examples=len(task.train.rows),
        sequence_length=task.sequence_length,
        make_model=model,
        make_batches=task.train.batches,
        evaluate=evaluate,
    )


def load_encoder(settings, copies_segments, step, seed):
    """The encoder to fine-tune, whose segments may all begin as the first one."""
    encoder, _ = load_for_training(settings, step, seed)
    if copies_segments:
        begin_as_first(encoder)
    return encoder


def pretrained_heads(settings, dataset, head):
    """The arrays of the heads to begin with: of a task like this, or of a pooler."""
    if settings.pretrained_steps:
        return {}
    heads = read_task_heads(settings.pretrained, task_class(dataset), **head)
    if heads is None and head.get("pooling") == "cls":
        pooler = read_pooler(settings.pretrained, head.get("pooler_activation"))
        heads = None if pooler is None else {"pooler": pooler}
    return heads or {}


def predict_part(task, model, split, run):
    """Writes predictions of a part, and their metrics where it has labels."""
    part = task.to_predict
    examples, found = part.examples, part.predictions(model)
    for path in write_predictions(run, task.dataset, split, examples, found):
        print(f"predictions: {run.shown(path)}")
    if task.predicted_baseline:
        scores = part.scores(found)
        write_scores(run, split, examples, scores, task.predicted_baseline)
