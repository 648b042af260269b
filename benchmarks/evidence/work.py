"""The work of a cell in a process of its own: its recipe, then its measurements."""

import contextlib
import csv
import itertools
import json
import math
import os
import shutil
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import runs

from evidence import measuring
from evidence.cells import Cell, Context, predicts_masks
from evidence.systems import BERT, SCRATCH, settings_of

# What a text of validation gives, of all that `tfeff evaluate` measures.
JUDGED = ("final", "held_out", "ptb")


def perform(cell: Cell, context: Context, folder: str) -> dict[str, Any]:
    """Does a cell's work, or the rest of it.

    Args:
        cell: the cell.
        context: what it depends on.
        folder: where its run is, and remains.

    Returns:
        Dict with `metrics`, numbers by name; `curve`, a list of rows with `step`,
        `loss` and `val_loss`; and `tokens`, how many it has read in training.
    """
    from tfeff.training import Diverged

    settings = dict(cell.settings(context))
    curve: list[dict[str, float]] = []
    tokens = 0
    if cell.recipe == "timing":
        return {"metrics": time_step(settings, context), "curve": [], "tokens": 0}
    if settings.get("pretrained") == SCRATCH:
        settings["pretrained"] = f"{folder}-scratch"
        make_scratch(settings["pretrained"], context, cell.seed)
    if cell.recipe != "positions":
        try:
            run(cell.recipe, settings, folder)
        except Diverged:
            if cell.stage != "pilot":
                raise
            # A rate at which a system diverges is not chosen.
            return {"metrics": {"loss": math.inf}, "curve": [], "tokens": 0}
    if cell.recipe in ("pretrain", "stack"):
        metrics = judge_text(cell, context, folder)
        if cell.stage != "pilot" and predicts_masks(cell.system):
            metrics["order"] = measuring.use_of_order(folder, context)
        curve = read_curve(folder)
        size = settings["batch_size"] * settings["sequence_length"]
        tokens = settings["steps"] * size
    elif cell.recipe == "finetune":
        metrics = tuned(folder) | judge_task(settings, context, folder)
    elif cell.recipe == "answer":
        metrics = answered(folder)
    elif cell.recipe == "distill":
        metrics = numbers(read_json(folder, "metrics.json"))
        if settings["stage"] == "task":
            metrics |= judge_task(settings, context, folder)
    else:
        metrics = {}
    if cell.stage == "long":
        source = settings["pretrained"] if cell.recipe == "positions" else folder
        metrics |= numbers(measuring.loss_by_position(source, context))
    return {"metrics": metrics, "curve": curve, "tokens": tokens}


def command(cell: Cell, context: Context, folder: str) -> list[str]:
    """The command of `tfeff` that does a cell's recipe, as words."""
    if cell.recipe in ("timing", "positions"):
        return []
    settings = {"run_dir": folder, **cell.settings(context)}
    return ["tfeff", cell.recipe, *runs.flags_of(settings)]


def run(recipe: str, settings: Mapping[str, Any], folder: str) -> None:
    """Calls a recipe of `tfeff.recipes`, which goes on where it was stopped."""
    from tfeff import recipes

    getattr(recipes, recipe)(recipe_settings(recipe, settings, folder))


def recipe_settings(recipe: str, settings: Mapping[str, Any], folder: str):
    """The settings of a recipe, checked one by one, for a run in a folder."""
    from tfeff import recipes

    return getattr(recipes, f"{recipe.title()}Settings")(run_dir=folder, **settings)


def make_scratch(folder: str, context: Context, seed: int) -> None:
    """Writes a preset of BERT's encoder with random weights, if it is not there."""
    import keras

    import tfeff

    if os.path.isdir(folder):
        return
    settings = settings_of(BERT, context.scale)
    keras.utils.set_random_seed(seed)
    encoder = tfeff.encoders.build(
        settings["preset"],
        **settings["override"],
        vocabulary_size=settings["vocabulary_size"],
        max_sequence_length=settings["sequence_length"],
    )
    tokenizer = tfeff.data.load_tokenizer(context.text("tokenizer.spm"))
    tfeff.tasks.save_pretrained(encoder, tokenizer, folder)


def judge_text(cell: Cell, context: Context, folder: str) -> dict[str, float]:
    """Metrics of texts: `loss` of what judges, and the parts of it by their names."""
    from tfeff.recipes import EvaluateSettings, evaluate

    found: dict[str, float] = {}
    for name in ("pilot",) if cell.stage == "pilot" else JUDGED:
        prefix = "" if name in ("pilot", "final") else f"{name}_"
        settings = EvaluateSettings(
            run_dir=folder, corpus=(context.text(f"{name}.jsonl"),)
        )
        own = {k: v for k, v in evaluate(settings).items() if k != "step"}
        found |= {f"{prefix}{metric}": value for metric, value in own.items()}
    return numbers(found)


def read_curve(folder: str) -> list[dict[str, float]]:
    """Step, loss and validation loss of each validation."""
    with open(Path(folder, "metrics.csv"), encoding="utf-8", newline="") as file:
        return [
            {
                "step": int(row["step"]),
                "loss": float(row["loss"]),
                "val_loss": float(row["val_loss"]),
            }
            for row in csv.DictReader(file)
        ]


def tuned(folder: str) -> dict[str, float]:
    """The rate that was chosen, and what it was chosen by."""
    found = read_json(folder, "metrics.json")
    best = numbers(found["best"]["mean"])
    baseline = numbers(found["baseline"]["metrics"])
    return {
        "learning_rate": found["best"]["setting"]["learning_rate"],
        **{f"chosen_by_{name}": value for name, value in best.items()},
        **{f"chosen_by_baseline_{name}": value for name, value in baseline.items()},
    }


def judge_task(
    settings: Mapping[str, Any], context: Context, folder: str
) -> dict[str, float]:
    """Metrics of the published development part, which chose nothing."""
    import tfeff
    from tfeff.recipes.baselines import make_baseline
    from tfeff.recipes.task_part import TaskPart

    dataset = tfeff.datasets.get(settings["task"])
    judge = dataset.read("dev", context.text("judge"))
    train = dataset.read("train", context.text("choose"))
    model = tfeff.training.load_checkpoint(os.path.join(folder, "model.keras"))
    _, tokenizer = tfeff.tasks.load_pretrained(folder)
    rows = tfeff.data.text_features(judge, tokenizer, settings["sequence_length"])
    pad_to_longest = not model.encoder.length_dependent
    part = TaskPart(dataset, judge, rows, pad_to_longest)
    scores = dataset.metrics(judge, part.predictions(model))
    baseline = make_baseline(dataset, train, {"": judge})["metrics"]
    # A correlation that is undefined, as that of constant predictions, counts as 0.
    first = dataset.metric_names[0]
    return {
        "score": numbers(scores).get(first, 0.0),
        "baseline": numbers(baseline).get(first, 0.0),
        **numbers(scores),
    }


def answered(folder: str) -> dict[str, float]:
    """Metrics of the questions that chose the best, and of those that judge."""
    found = read_json(folder, "metrics.json")
    metrics = {f"chosen_by_{k}": v for k, v in numbers(found).items()}
    judged = Path(folder, "predictions", "dev", "metrics.json")
    if judged.exists():
        scores = json.loads(judged.read_text(encoding="utf-8"))
        metrics |= numbers(scores)
        metrics["baseline"] = numbers(scores["baseline"]["metrics"])["f1"]
    return metrics


def time_step(settings: Mapping[str, Any], context: Context) -> dict[str, float]:
    """Seconds of a step, and its cost: the median of its time over BERT's.

    Both take as many steps in turns, so that what else runs meets both.
    """
    own = stepper(settings, context)
    bert = stepper(settings_of(BERT, context.scale), context)
    pairs = []
    for _ in range(context.scale.timed_rounds):
        times = []
        for step in (own, bert):
            start = time.perf_counter()
            for _ in range(context.scale.timed_steps):
                step()
            times.append((time.perf_counter() - start) / context.scale.timed_steps)
        pairs.append(times)
    ratios = [mine / other for mine, other in pairs]
    seconds = statistics.median(mine for mine, _ in pairs)
    low, _, high = statistics.quantiles(ratios, n=4)
    tokens = settings["batch_size"] * settings["sequence_length"]
    return {
        "cost": statistics.median(ratios),
        "cost_low": low,
        "cost_high": high,
        "step_seconds": seconds,
        "tokens_a_second": tokens / seconds,
    }


def stepper(settings: Mapping[str, Any], context: Context):
    """A function that takes a step of pretraining with batches of the text."""
    import tempfile

    import tfeff
    from tfeff.recipes import PretrainSettings
    from tfeff.recipes.pretraining import settle
    from tfeff.recipes.pretraining_model import make_model, objective

    whole = settle(PretrainSettings(run_dir="none", **settings))
    tokenizer = tfeff.data.load_tokenizer(context.text("tokenizer.spm"))
    with tempfile.TemporaryDirectory() as folder:
        cache = tfeff.data.build_cache(
            tfeff.data.json_lines([context.text("pilot.jsonl")]),
            tokenizer,
            os.path.join(folder, "cache"),
            whole.sequence_length,
        )
        batches = list(
            cache.batches(
                objective(whole).examples, whole.batch_size, tokenizer=tokenizer
            ).take(4)
        )
    model = make_model(whole)
    endless = itertools.cycle(batches)

    def step():
        inputs, labels, weights = next(endless)
        model.train_on_batch(inputs, labels, weights)

    for _ in batches:  # The first compiles.
        step()
    return step


def clean(folder: str, is_needed: bool) -> None:
    """Removes what nobody reads again: a campaign has hundreds of runs.

    Settings and metrics stay, and the models from which other cells start.
    """
    names = ["cache", "tensorboard", "export", "cells"]
    # The first names files that are gone.
    models = ("checkpoints", "model.keras", "preset")
    names += ["SHA256SUMS", *(() if is_needed else models)]
    for path in [os.path.join(folder, name) for name in names]:
        shutil.rmtree(path, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            os.remove(path)


def read_json(folder: str, name: str) -> dict:
    """A file of a run."""
    return json.loads(Path(folder, name).read_text(encoding="utf-8"))


def numbers(found: Mapping[str, Any]) -> dict[str, float]:
    """The finite numbers among values, as Python's own."""
    return {
        name: value if isinstance(value, int) else float(value)
        for name, value in found.items()
        if hasattr(value, "__float__")
        and not isinstance(value, bool)
        and math.isfinite(value)
    }
