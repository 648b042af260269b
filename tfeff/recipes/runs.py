"""Run directories of recipes, and checks that several recipes share."""

import contextlib
import functools
import glob
import importlib.util
import math
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import keras
import tensorflow as tf
from absl import logging

import tfeff
from tfeff.datasets import registry
from tfeff.datasets.aliases import ALIASES
from tfeff.datasets.described import DESCRIPTION
from tfeff.recipes.naming import named_as
from tfeff.recipes.settings import Settings, fields_of
from tfeff.storage.arguments import READ_MODEL, paths
from tfeff.storage.place import Place
from tfeff.training.held_signals import HeldSignals
from tfeff.training.workers import several_workers
from tfeff.utils.backend import check_tensorflow
from tfeff.utils.checks import check_choice, closest, is_url, near_miss
from tfeff.utils.digests import FILE_NAME, check_digests, sha256
from tfeff.utils.files import atomic_file, scratch_folder
from tfeff.utils.json_files import read_object

MODEL = "model.keras"


@contextlib.contextmanager
def open_run(
    settings: Any, strategy: tf.distribute.Strategy | None = None
) -> Iterator[tfeff.training.RunDirectory]:
    """The run directory of settings, which is given back at the end of the block.

    Args:
        settings: they have `run_dir`.
        strategy: that of the training, if it may have several workers.
    """
    strategy = strategy or tf.distribute.get_strategy()
    with contextlib.ExitStack() as stack:
        # A signal between the two would leave the folder.
        with HeldSignals(), strategy.scope(), named_as(directory="run_dir"):
            run = tfeff.training.RunDirectory(
                settings.run_dir,
                settings.config(),
                functools.partial(upgraded, type(settings), settings.run_dir),
            )
            stack.enter_context(run)
        yield run


def upgraded(cls: type[Settings], folder: str, config: dict) -> dict:
    """The configuration of a run or a cache as this version writes it.

    Args:
        cls: its settings.
        folder: where it is.
        config: what its `config.json` holds.

    Raises:
        ValueError: if it has names that are no settings of the class, which names the
            argument `directory`; if a value is none that the setting can have, which
            names the file.
    """
    known = {field.name for field in fields_of(cls)}
    others = sorted(set(cls.renamed_config(config)) - known)
    lacking = [name for name in cls.always if name not in config]
    if others or lacking:
        difference = (
            f"{cls.__name__} has no {', '.join(others)}"
            if others
            else f"it has no {', '.join(lacking)}"
        )
        raise ValueError(
            "`directory` must be another folder, or one that this command has made. "
            f"Received: directory={folder!r}, whose config.json is of another command: "
            f"{difference}"
        )
    try:
        return cls.upgraded(config)
    except (TypeError, ValueError) as error:
        path = os.path.join(folder, "config.json")
        raise ValueError(f"{path} must hold {cls.__name__}: {error}") from error


@paths(run_dir=READ_MODEL)
def read_config(run_dir: str) -> dict:
    """The configuration of a run's directory.

    Raises:
        ValueError: if it is missing or damaged.
    """
    path = os.path.join(run_dir, "config.json")
    if not os.path.isfile(path):
        raise ValueError(
            "`run_dir` must be the folder of a run, which has a config.json. "
            f"Received: run_dir={run_dir!r}"
        )
    return read_object(path)


@contextlib.contextmanager
def recipe_running() -> Iterator[None]:
    """Silences TensorFlow's messages about exports, but for warnings.

    Raises:
        ValueError: on another backend: recipes use strategies and write SavedModels.
    """
    check_tensorflow("Recipes, which are the commands of tfeff that run models,")
    verbosity = logging.get_verbosity()
    logging.set_verbosity(logging.WARNING)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)


def find_dataset(
    task: str,
    *kinds: type,
    given: tfeff.datasets.Dataset | None = None,
    data: str | None = None,
) -> tfeff.datasets.Dataset:
    """The data set of a task; raises unless its examples are of one of the kinds.

    Args:
        task: its name.
        *kinds: classes of examples.
        given: the data set itself; `None` for the one that is registered, or that a
            file in `data` describes.
        data: the folder of the files; `None` where no description is looked for.
    """
    if given is not None and not isinstance(given, tfeff.datasets.Dataset):
        raise TypeError(f"`dataset` must be a `Dataset`. Received: dataset={given!r}")
    if given is not None and given.name != task:
        raise ValueError(
            "`task` must be the name of `dataset`. Received: "
            f"task={task!r}, a data set with the name {given.name!r}"
        )
    dataset = given or _named_dataset(task, kinds, data)
    if dataset.kind not in kinds:
        raise ValueError(
            f"`task` must be one of {tfeff.datasets.names(*kinds)} here. "
            f"Received: task={task!r}, a data set of `{dataset.kind.__name__}`"
        )
    return dataset


def _named_dataset(task, kinds, data):
    """The data set that is registered as `task`, or described in `data`."""
    is_own = data is not None and _is_described(task, data)
    if task in registry.OWN and is_own:
        raise ValueError(
            f"`task` must be another name than that of a data set of tfeff, which "
            f"{data}/{task}/{DESCRIPTION} cannot change. Received: task={task!r}"
        )
    if task in (*tfeff.datasets.names(), *ALIASES):
        return tfeff.datasets.get(task)
    if is_own:
        with named_as(name="task", folder="data"):
            return tfeff.datasets.described_dataset(task, data)
    fitting = [*_described(data, kinds), *tfeff.datasets.names(*kinds)]
    near = closest(task, fitting)
    fitting.sort(key=lambda name: name != near)  # What is closest is first.
    own, advice = "", near_miss(task, fitting)
    if data is not None:
        own = f", or be described by {data}/{task}/{DESCRIPTION}"
        if not is_url(data) and os.path.isfile(os.path.join(data, DESCRIPTION)):
            above = os.path.dirname(os.path.abspath(data))
            advice = f" `data` must be the folder above, {above}."
        elif not is_url(data) and not os.path.isdir(data):
            advice += f" There is no folder {data}."
    raise ValueError(
        f"`task` must be one of {fitting}{own}. Received: task={task!r}.{advice}"
    )


def _described(data, kinds):
    """The names of the data sets that are described in a folder of this machine."""
    if data is None or is_url(data):
        return []
    names = []
    for path in sorted(glob.glob(os.path.join(glob.escape(data), "*", DESCRIPTION))):
        name = os.path.basename(os.path.dirname(path))
        with contextlib.suppress(TypeError, ValueError):  # Another one is wanted.
            if tfeff.datasets.described_dataset(name, data).kind in kinds:
                names.append(name)
    return names


def _is_described(task, data):
    if is_url(data):
        return Place("data", data).info(f"{task}/{DESCRIPTION}") is not None
    return os.path.isfile(os.path.join(data, task, DESCRIPTION))


def best_metric(settings: Any, dataset: tfeff.datasets.Dataset) -> str:
    """The name of the data set's metric that tells the best."""
    if settings.metric is None:
        return dataset.metric_names[0]
    return check_choice("metric", settings.metric, dataset.metric_names)


def examples_in_step(
    settings: Any, batch_size: int, strategy: tf.distribute.Strategy
) -> int:
    """The number of examples in a step: those of all batches of an update.

    Raises:
        ValueError: if they are more than a tensor can hold; if several batches
            cannot be divided among the replicas, or a batch among the replicas of
            several workers, each of which reads its own rows.
    """
    replicas = strategy.num_replicas_in_sync
    with strategy.scope():
        in_parts = several_workers() or settings.accumulation_steps > 1
    if in_parts and batch_size % replicas:
        raise ValueError(
            "The batch size must be a multiple of the number of replicas with "
            "`accumulation_steps`, and with several workers. Received: batches of "
            f"{batch_size}, {replicas} replicas, "
            f"accumulation_steps={settings.accumulation_steps}"
        )
    in_step = batch_size * settings.accumulation_steps
    if in_step * (settings.sequence_length or 1) > tf.int32.max:
        raise ValueError(
            f"`accumulation_steps` must make steps of at most {tf.int32.max:,} tokens. "
            f"Received: accumulation_steps={settings.accumulation_steps}, batches of "
            f"{batch_size}, sequence_length={settings.sequence_length}"
        )
    return in_step


def make_optimizer(settings: Any, learning_rate: float, steps: int, **others):
    """AdamW that warms up for a share of the steps and decays within them."""
    return tfeff.training.adamw(
        learning_rate,
        math.floor(settings.warmup * steps),
        steps,
        **{"weight_decay": settings.weight_decay, **others},
    )


def export_options(
    examples: tfeff.data.TextExamples
    | tfeff.data.ChoiceExamples
    | tfeff.data.TokenExamples,
) -> dict:
    """The options of `save_for_serving` that follow from the examples of a task."""
    if not isinstance(examples, tfeff.data.TextExamples):
        return {}
    options: dict[str, Any] = {"pairs": examples.second is not None}
    if examples.label_names is not None:
        options["label_names"] = examples.label_names
    return options


def has_model(run: tfeff.training.RunDirectory, path: str) -> bool:
    """Whether an earlier start has kept the model of a file as the run's."""
    kept = run.path(MODEL)
    return os.path.exists(kept) and sha256(kept) == sha256(path)


def write_model(
    run: tfeff.training.RunDirectory,
    model: keras.Model,
    tokenizer,
    *,
    is_kept: bool,
    save: Callable[[str], object],
    **options: Any,
) -> str:
    """Writes the run's `model.keras`, its `preset/` and its export, all of one model.

    Those of another model, such as of cells that were deleted since, are replaced: the
    preset by a new one, the export by the next version.

    Args:
        run: the run directory.
        model, tokenizer: what to keep.
        is_kept: whether the run's `model.keras` is there, and of this model.
        save: called with a path, writes the model's file.
        **options: those of `tfeff.export.save_version`.

    Returns:
        Where the export is.
    """

    def write_preset(path):
        tfeff.tasks.save_pretrained(model, tokenizer, path)

    if not is_kept and os.path.exists(run.path(MODEL)):
        make_anew(run.path("preset"), write_preset)
        exported = export_anew(run, model, tokenizer, **options)
        # Last: the next start of one that is killed before has to do it all again.
        save(run.path(MODEL))
        return exported
    if not is_kept:
        save(run.path(MODEL))
    make_once(run.path("preset"), write_preset)
    return export_once(run, model, tokenizer, **options)


def make_anew(path: str, write: Callable[[str], object]) -> None:
    """Calls `write` to make a folder in place of the one of an earlier start."""
    with scratch_folder(path) as scratch:
        new = os.path.join(scratch, "new")
        write(new)
        if os.path.exists(path):
            os.rename(path, os.path.join(scratch, "old"))
        os.rename(new, path)


def make_once(path: str, write: Callable[[str], object]) -> None:
    """Calls `write(path)` to make a folder; checks the one of an earlier start."""
    if os.path.exists(path):
        check_made(path)
    else:
        write(path)


def check_made(path: str) -> None:
    """Checks a folder of an earlier start, if it has digests: the first had none."""
    if os.path.exists(os.path.join(path, FILE_NAME)):
        check_digests(path)


def export_once(
    run: tfeff.training.RunDirectory, model: keras.Model, tokenizer, **options
) -> str:
    """Exports to `export/1`, or checks what an earlier start has exported.

    Args:
        run: the run directory.
        model, tokenizer, **options: as of `tfeff.export.save_version`.

    Returns:
        Where the export is.
    """
    if not tfeff.export.versions(run.path("export")):
        return tfeff.export.save_version(
            model, tokenizer, run.path("export"), **options
        )
    check_made(newest_export(run))
    return newest_export(run)


def export_anew(
    run: tfeff.training.RunDirectory, model: keras.Model, tokenizer, **options
) -> str:
    """Exports the next version; arguments and what is returned as of `export_once`.

    An export of before there were versions is replaced.
    """
    folder = run.path("export")
    if tfeff.export.versions(folder) != [folder]:
        return tfeff.export.save_version(model, tokenizer, folder, **options)
    make_anew(
        folder,
        lambda path: tfeff.export.save_for_serving(model, tokenizer, path, **options),
    )
    return folder


def newest_export(run: tfeff.training.RunDirectory) -> str:
    """The newest version of a run's export, or `export` where it has no versions.

    So it was before there were versions; somebody may have deleted them, too.
    """
    folder = run.path("export")
    return [folder, *tfeff.export.versions(folder)][-1]


def print_finetune_next(pretrained: str) -> None:
    """Prints the command that fine-tunes an encoder, as an example."""
    print_next(
        "fine-tune it, such as on SST-2 of GLUE in the folder glue",
        *("finetune", f"--pretrained={pretrained}", "--task=SST-2", "--data=glue"),
        f"--run_dir={pretrained.rstrip('/')}-sst2",
    )


def print_next(purpose: str, *command: str) -> None:
    """Prints what to do next, and the command of tfeff that does it."""
    print(f"next, {purpose}:\n  {shlex.join(['tfeff', *command])}")


def copy(source: str, path: str) -> None:
    """Copies a file, whole or not at all."""
    with atomic_file(path) as new:
        shutil.copyfile(source, new)


def check_plots(plots: bool) -> None:
    """Raises where pictures are wanted and cannot be drawn."""
    if plots and not importlib.util.find_spec("matplotlib"):
        raise ValueError(
            "`plots` must be False without matplotlib: pip install 'tfeff[plots]'. "
            "Received: plots=True"
        )


def draw(encoder, batches, run: tfeff.training.RunDirectory, plots: bool) -> None:
    """Draws the encoder on some batches of a data set, if that is wanted."""
    if plots:
        tfeff.plots.draw_all(encoder, batches.take(8), run.path("plots"))


def check_finite(model: keras.Model) -> None:
    """Raises where a training left weights that are not finite."""
    if not tfeff.training.is_finite(model):
        raise tfeff.training.Diverged(
            "The training has diverged: no setting gave a model. Lower rates may do; a "
            "new `run_dir` is needed."
        )


def metrics_line(metrics: dict[str, float]) -> str:
    """Metrics in a line."""
    return ", ".join(f"{name} {value:.4f}" for name, value in metrics.items())
