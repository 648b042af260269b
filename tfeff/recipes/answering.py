"""Fine-tunes a pretrained encoder to answer questions from passages."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Sequence

import keras

import tfeff
from tfeff.data.finetuning.span_features import SpanFeatures
from tfeff.datasets.squad import check_different_ids, withhold
from tfeff.recipes.answer_scores import (
    asked,
    check_answered,
    score_answers,
    score_served,
    texts,
)
from tfeff.recipes.answer_settings import AnswerSettings
from tfeff.recipes.baselines import baseline_to_predict, make_baseline, score
from tfeff.recipes.callbacks import Callbacks
from tfeff.recipes.data_record import keep_data
from tfeff.recipes.drawing import check_plots, draw
from tfeff.recipes.heads import assign_heads, read_task_heads
from tfeff.recipes.next_commands import print_report_next
from tfeff.recipes.predictions import (
    remove_predictions,
    replace_predictions,
    write_predictions,
    write_scores,
)
from tfeff.recipes.run_exports import (
    check_made,
    has_export,
    has_model,
    make_once,
    newest_export,
    write_model,
)
from tfeff.recipes.runs import check_batch_sizes, open_run, recipe_running
from tfeff.recipes.settings import check_settings
from tfeff.recipes.shared_examples import print_shared
from tfeff.recipes.starting import load_for_training, print_frozen
from tfeff.recipes.task_dataset import best_metric, find_dataset
from tfeff.recipes.tuning import (
    Tuning,
    best_model,
    best_of,
    enable_lora,
    make_grid,
)
from tfeff.recipes.unknown_tokens import print_unknown
from tfeff.training.run_seal import deleted_files
from tfeff.utils.json_files import read_object
from tfeff.utils.naming import named_as
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import METRICS, MODEL, PREDICTIONS, PRESET


@recipe_running()
def answer(
    settings: AnswerSettings,
    dataset: tfeff.datasets.Dataset | None = None,
    callbacks: Sequence[keras.callbacks.Callback | Callable] = (),
) -> dict:
    """Trains with every rate, batch size and seed; exports the best model.

    Args:
        settings: the `AnswerSettings`, which say what is in the run directory.
        dataset: a data set of questions with the name `settings.task`, such as of
            `tfeff.datasets.span_dataset`; `None` for the one that is registered.
        callbacks: Keras callbacks beside those of the settings, or functions that make
            one for each training.

    Returns:
        What `metrics.json` holds: the task, the part that the best model was chosen by
        as `"dev_split"`, the official metrics of that model by name, those of the
        commonest answer as `"baseline"`, and as `"grid"` those of all, as
        `tfeff.training.Grid.run` gives them.

    Raises:
        TypeError: if `settings` are not `AnswerSettings`.
        ValueError: if a setting does not fit the data set, the encoder or the run
            directory.
        OSError: if a file cannot be read.
        Diverged: if no setting gave a model.

    Example:
    ```python
    import json
    import tfeff

    passage = "Ada wrote the first program. Bob read it."
    questions = [("Who wrote it?", "Ada", 0), ("Who read it?", "Bob", 29)]
    asked = [
        {"id": text, "question": text, "answers": [{"text": a, "answer_start": i}]}
        for text, a, i in questions
    ]
    content = {"data": [{"paragraphs": [{"context": passage, "qas": asked}]}]}
    with open("questions.json", "w") as file:
        json.dump(content, file)
    texts = [passage, *(text for text, _, _ in questions)]
    tokenizer = tfeff.data.train_tokenizer(texts * 9, vocabulary_size=29)
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=29, num_layers=1, max_sequence_length=64
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer, "preset")

    settings = tfeff.recipes.AnswerSettings(
        run_dir="run",
        train="questions.json",
        dev="questions.json",
        pretrained="preset",
        sequence_length=64,
        stride=16,
        steps=2,
    )
    metrics = tfeff.recipes.answer(settings)
    assert {"f1", "exact_match"} <= metrics.keys()
    ```
    """
    check_settings(settings, AnswerSettings)
    own_callbacks = Callbacks(settings, callbacks)
    check_plots(settings.plots)
    if settings.test and not settings.predict_split:
        raise ValueError(
            "`test` must be left out without `predict_split`, which says what of it to "
            f"predict. Received: test={settings.test!r}"
        )
    dataset = find_dataset(settings.task, tfeff.data.SpanExamples, given=dataset)
    metric = best_metric(settings, dataset)
    predicted = settings.predict_split or ""
    is_new = predicted.startswith("test") and predicted not in dataset.splits
    if is_new and not settings.test:
        raise ValueError(
            f"`predict_split` must be one of {list(dataset.splits)}, or have its "
            f"questions in `test`. Received: predict_split={predicted!r}, test=None"
        )
    with open_run(settings) as run:
        strategy = tfeff.training.make_strategy(settings.strategy)
        check_batch_sizes(settings, strategy)
        with named_as(path="pretrained", step="pretrained"):
            encoder, tokenizer = tfeff.tasks.load_pretrained(settings.pretrained)
        print_frozen(encoder)
        enable_lora(settings, encoder)
        length: int = settings.sequence_length or encoder.max_sequence_length
        settings = dataclasses.replace(settings, sequence_length=length)
        task = make_task(settings, dataset, metric, encoder, tokenizer)
        grid = make_grid(
            run,
            settings,
            metric,
            batch_size=settings.batch_sizes,
            learning_rate=settings.learning_rates,
        )
        initial_heads = read_task_heads(settings.pretrained, tfeff.tasks.SpanQA) or {}
        read_parts = {"train": task.train, "dev": task.dev}
        keep_data(run, dataset, {n: asked(part) for n, part in read_parts.items()})
        tuning = make_tuning(settings, task, initial_heads, strategy, own_callbacks)
        summary = grid.run(tuning.train)
        print(grid.table({task.baseline["name"]: task.baseline["metrics"]}))
        model_path = best_model(summary)
        # Predictions are files of the folder itself, by names of the data set.
        lost = [x for x in deleted_files(run.directory) if not os.path.dirname(x)]
        is_finished = is_there(run.path(METRICS)) and has_export(run) and not lost
        if is_finished and has_model(run, model_path):
            check_made(newest_export(run))
        else:
            write_best(settings, run, task, tokenizer, summary)
        # It may have been deleted.
        make_once(
            run.path(PRESET),
            lambda path: tfeff.tasks.save_pretrained(
                tfeff.training.load_checkpoint(model_path), tokenizer, path
            ),
        )
        if settings.plots:
            model = tfeff.training.load_checkpoint(run.path(MODEL), compile=False)
            batches = task.dev.dataset(8, shuffle=False, repeat=False)
            draw(model.encoder, batches, run)
        path = run.path(METRICS)
        # The cells may be others than those of an earlier start.
        metrics = {**read_object(path), "grid": summary}
        tfeff.training.write_metrics(metrics, path)
        metrics = read_object(path)
        if task.to_predict is not None:
            predict_part(settings, run, task, metrics)
        run.finish()
        for name in dataset.metric_names:
            print(f"{name}: {score(metrics, name, task.baseline)}")
        if is_there(path := run.path("predictions.json")):
            print(f"predictions: {run.shown(path)}")
        print(f"question and passage in, answer out: {run.shown(newest_export(run))}")
        print_report_next(settings.run_dir)
        return metrics


@dataclasses.dataclass(frozen=True)
class QuestionData:
    """A data set as the encoder reads it, in windows of tokens.

    Attributes:
        dataset: the `Dataset`.
        dev_split: the name of the part to choose the best by.
        train: what to train on.
        dev: the part to choose the best by.
        to_predict: what to predict in the end, or `None`.
        predicted_baseline: as `baseline`, of what to predict; `None` without answers.
        metric: the metric that tells the best.
        baseline: what the answers of `train` alone predict, as of `make_baseline`.
    """

    dataset: tfeff.datasets.Dataset
    dev_split: str
    train: SpanFeatures
    dev: SpanFeatures
    to_predict: SpanFeatures | None
    predicted_baseline: dict | None
    metric: str
    baseline: dict


def make_task(settings, dataset, metric, encoder, tokenizer):
    """Reads the parts of the data set."""
    length = settings.sequence_length

    def windows(split, of_split, given, count=None, is_predicted=False):
        with named_as(split=of_split):
            questions = read(settings, dataset, split, given, is_predicted)[:count]
        return tfeff.data.make_span_features(
            questions, tokenizer, length, settings.stride
        )

    dev_split = settings.dev_split or dataset.dev_splits[0]
    if "train" not in dataset.splits:
        raise ValueError(
            "`task` must be a data set with a part to train on, 'train'. Received: "
            f"task={settings.task!r}, with {list(dataset.splits)}"
        )
    train = windows("train", "split", "train", settings.train_examples)
    dev = windows(dev_split, "dev_split", "dev", settings.dev_examples)
    to_predict = predicted_baseline = None
    if split := settings.predict_split:
        given = "test" if settings.test else "train" if split == "train" else "dev"
        to_predict = windows(split, "predict_split", given, is_predicted=True)
    print(
        f"{len(train.questions):,} questions in {len(train):,} windows to train "
        f"on; {len(dev.questions):,} in {len(dev):,} to choose the best by"
    )
    parts = {"train": train, "dev" if dev_split == "train" else dev_split: dev}
    if settings.test:
        parts["test"] = to_predict
    elif to_predict is not None:
        parts.setdefault(settings.predict_split, to_predict)
    print_shared({name: asked(part) for name, part in parts.items()})
    ids = {name: x.token_ids[x.padding_mask > 0] for name, x in parts.items()}
    print_unknown(ids, tokenizer)
    if length > encoder.max_sequence_length:
        print(
            f"length extension: pretrained on {encoder.max_sequence_length} tokens, "
            f"fine-tuned on {length}"
        )
    with named_as(examples="dev"):
        baseline = make_baseline(dataset, asked(train), {"": asked(dev)})
    if to_predict is not None:
        predicted_baseline = baseline_to_predict(
            dataset, asked(train), settings.predict_split, asked(to_predict)
        )
    return QuestionData(
        dataset=dataset,
        dev_split=dev_split,
        train=train,
        dev=dev,
        to_predict=to_predict,
        predicted_baseline=predicted_baseline,
        metric=metric,
        baseline=baseline,
    )


def read(settings, dataset, split, given, is_predicted):
    """The questions of a part of the file `given`."""
    options = {"skip_mismatched": True} if settings.skip_mismatched else {}
    path = getattr(settings, given)
    with named_as(folder=given):
        found = dataset.read(split, path, **options)
    questions, count = found.questions, len(found.skipped)
    if is_predicted:
        # Where an answer stands matters to training: submissions have all questions.
        questions += found.mismatched
        count -= len(found.mismatched)
        check_different_ids(path, questions)
    if not questions:
        raise ValueError(
            f"`{given}` must hold questions with answers at their offsets. Received: "
            f"{path}, all of whose questions are left out. {''.join(found.skipped[:1])}"
        )
    if not is_predicted:
        check_answered(given, path, questions)
    if count > 0:
        print(f"{path}: {count} questions left out. {found.skipped[0]}")
    return questions


def make_tuning(settings, task, initial_heads, strategy, callbacks):
    """How the cells are trained, from these arrays of heads."""
    longest = settings.max_answer_tokens
    return Tuning(
        settings=settings,
        strategy=strategy,
        callbacks=callbacks,
        metric=task.metric,
        baseline=task.baseline,
        num_examples=len(task.train),
        sequence_length=settings.sequence_length,
        make_model=lambda seed, _: make_model(settings, seed, initial_heads),
        make_batches=task.train.dataset,
        evaluate=lambda model: score_answers(model, task.dataset, task.dev, longest)[0],
    )


def make_model(settings, seed, initial_heads):
    """The pretrained encoder, long enough, with a head for answers."""
    encoder, _ = load_for_training(settings, seed=seed)
    model = tfeff.tasks.SpanQA(encoder)
    assign_heads(model, initial_heads)
    return model


def write_best(settings, run, task, tokenizer, summary):
    """Predictions, model and export of the best cell; the metrics last."""
    # They may be of a start that was stopped here, or of cells that were deleted since.
    with contextlib.suppress(FileNotFoundError):
        os.remove(run.path(METRICS))
    found = best_of(settings, summary, run)
    if not found.is_kept:
        remove_predictions(run)
    longest = settings.max_answer_tokens
    metrics, answers, served = score_served(
        found.model, task.dataset, task.dev, longest
    )
    replace_predictions(
        task.dataset, task.dev_split, asked(task.dev), answers, run.directory
    )
    write_model(
        run,
        found,
        tokenizer,
        sequence_length=settings.sequence_length,
        stride=settings.stride,
        max_answer_tokens=longest,
        no_answer_threshold=served,
    )
    tfeff.training.write_metrics(
        {
            "task": settings.task,
            "dev_split": task.dev_split,
            **metrics,
            "baseline": task.baseline,
            "grid": summary,
        },
        run.path(METRICS),
    )


def predict_part(settings, run, task, metrics):
    """Writes a part's answers as the benchmark wants them, and metrics if it has any.

    What SQuAD 2.0 leaves without an answer is decided by the threshold of `metrics`,
    those of the development set.
    """
    split = settings.predict_split
    model = tfeff.training.load_checkpoint(run.path(MODEL))
    answers = model.answers(
        task.to_predict, max_answer_tokens=settings.max_answer_tokens
    )
    threshold = metrics.get("no_answer_threshold")
    if threshold is not None:
        answers = withhold(answers, threshold)
    questions = asked(task.to_predict)
    write_predictions(run, task.dataset, split, questions, answers)
    if task.predicted_baseline:
        scores = task.dataset.metrics(questions, texts(answers))
        write_scores(run, split, questions, scores, task.predicted_baseline)
    print(f"predictions of {split}: {run.shown(run.path(PREDICTIONS, split))}")
