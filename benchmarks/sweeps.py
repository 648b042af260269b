r"""The papers' sweeps, a system and a seed at a time, at the papers' size or smaller.

`sweep_table.py` has them: head assignments, kernel sizes, widths, clipping distances
and others. Each cell of a sweep, a system with a seed, is pretrained by
`tfeff pretrain` in a folder of its own under `--runs`, and with `--tasks` fine-tuned by
`tfeff finetune` or `tfeff answer`. Its rows are added to `sweeps.csv` and
`sweeps_curves.csv` in `--results` when it is done, and a cell that has them is not run
again; one that was killed goes on. All cells are built, with one layer, before the
first runs: values that do not fit each other are told at once.

    python benchmarks/sweeps.py --list
    python benchmarks/sweeps.py --sweeps=blockbert_heads --seeds=0 --only=10:2 \
        --runs=runs/sweeps --corpus='corpus/*.txt' --validation=ptb.txt --tasks=all

Without the papers' machines, every sweep in small, on the text in `--data`:

    python benchmarks/sweeps.py --sweeps=blockbert_heads --runs=runs/sweeps \
        --width=192 --layers=4 --steps=400 --override=dropout=0 \
        --pretrain=sequence_length=128 --pretrain=batch_size=8 \
        --pretrain=learning_rate=1e-3 --pretrain=vocabulary_size=4000

`--width` scales the widths of all cells alike; the numbers of heads stay.
"""

import dataclasses
import hashlib
import json
import os
import shlex
from pathlib import Path

import environment
import runs
from absl import app, flags
from rows import append, read, record
from steps import in_own_process
from sweep_report import CURVES, FIELDS, report
from sweep_table import SPANS, SWEEPS

from tfeff.recipes.answer_settings import AnswerSettings
from tfeff.recipes.fields import fields_of, parse_argument
from tfeff.recipes.finetune_settings import FinetuneSettings

PROGRAMS = {"answer": AnswerSettings, "finetune": FinetuneSettings}
WIDTHS = ("hidden_dim", "intermediate_dim", "embedding_dim")

FLAGS = flags.FLAGS
flags.DEFINE_list("sweeps", None, f"Which ones: {', '.join(SWEEPS)}.")
flags.DEFINE_multi_string("only", None, "The labels of the cells to run; default all.")
flags.DEFINE_list("seeds", ["0", "1"], "One run of each cell a seed.")
flags.DEFINE_list("tasks", [], "What to fine-tune on, of the sweep's tasks, or all.")
flags.DEFINE_boolean("list", False, "Print the cells, and whether they are done.")
flags.DEFINE_integer("width", None, "Hidden size of the sweep's preset.", lower_bound=1)
flags.DEFINE_integer("layers", None, "Layers of every encoder.", lower_bound=1)
flags.DEFINE_integer("steps", None, "Steps of pretraining.", lower_bound=2)
flags.DEFINE_multi_string("override", [], "NAME=VALUE of encoders, such as dropout=0.")
flags.DEFINE_multi_string("pretrain", [], "NAME=VALUE of `tfeff pretrain`.")
flags.DEFINE_multi_string("finetune", [], "NAME=VALUE of `finetune` and `answer`.")
flags.DEFINE_list("corpus", None, "Text to train on; default: that in --data.")
flags.DEFINE_list("validation", None, "Text to validate by; default: that in --data.")
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with text/, glue/, squad/ and race/.",
)
flags.DEFINE_string("runs", None, "Folder of the runs.")
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")


@dataclasses.dataclass(frozen=True)
class Job:
    """A cell: a system of a sweep with a seed.

    Attributes:
        sweep, label, seed: what it is.
        size: layers, width, steps and batches in words, and what else flags give.
        settings: of its pretraining; `override` has arguments of the encoder.
        finetune: settings of its fine-tuning.
        tasks: what it is fine-tuned on.
    """

    sweep: str
    label: str
    seed: str
    size: str
    settings: dict
    finetune: dict
    tasks: tuple[str, ...]

    def key(self, task: str) -> dict[str, str]:
        """The values of its rows in the columns before the metric."""
        names = ("sweep", "label", "seed", "size")
        return {**{name: getattr(self, name) for name in names}, "task": task}

    def missing(self, done: list[dict]) -> list[str]:
        """The tasks, pretraining as the first, that have no rows."""
        return [
            task
            for task in ("pretraining", *self.tasks)
            if not any(self.key(task).items() <= row.items() for row in done)
        ]


def main(_):
    """Runs what is missing, and reports after each cell."""
    jobs = list(make_jobs())
    results = os.path.join(FLAGS.results, "sweeps.csv")
    if FLAGS.list:
        done = read(results)
        for job in jobs:
            state = ", ".join(job.missing(done)) or "done"
            print(f"{job.sweep} | {job.label} | seed {job.seed} | {job.size} | {state}")
        return
    if FLAGS.sweeps is None or FLAGS.runs is None:
        raise app.UsageError("--sweeps and --runs must be given, or --list")
    train, validation = text()
    for task in {task for job in jobs for task in job.tasks}:
        for path in data_of(task)[1].values():
            if not Path(path).exists():
                raise app.UsageError(f"--data={FLAGS.data} holds no {path} for {task}")
    settings = {f"{job.sweep}, {job.label}": job.settings for job in jobs}
    if refused := in_own_process(refusals, settings):
        raise app.UsageError("\n".join(refused))
    os.makedirs(FLAGS.runs, exist_ok=True)
    os.makedirs(FLAGS.results, exist_ok=True)
    for job in jobs:
        for task in job.missing(read(results)):
            run(job, task, train, validation, results)
            report(results)


def make_jobs():
    """All cells that the flags ask for, those of one seed before those of the next."""
    unknown = set(FLAGS.sweeps or ()) - set(SWEEPS)
    if unknown:
        raise app.UsageError(
            f"--sweeps must be among {list(SWEEPS)}. Received: {sorted(unknown)}"
        )
    chosen = {name: SWEEPS[name] for name in FLAGS.sweeps or SWEEPS}
    labels = {label for sweep in chosen.values() for label in sweep.cells}
    if unknown := set(FLAGS.only or ()) - labels:
        raise app.UsageError(
            f"--only must be among {sorted(labels)}. Received: {sorted(unknown)}"
        )
    known = {task for sweep in chosen.values() for task in sweep.tasks}
    if unknown := set(FLAGS.tasks) - known - {"all"}:
        raise app.UsageError(
            f"--tasks must be among {sorted(known)} or all. Received: {sorted(unknown)}"
        )
    for seed in FLAGS.seeds:
        for name, sweep in chosen.items():
            for label, cell in sweep.cells.items():
                if not FLAGS.only or label in FLAGS.only:
                    yield make_job(name, sweep, label, cell, seed)


def make_job(name, sweep, label, cell, seed) -> Job:
    """The cell of a sweep at the size that the flags ask for."""
    from tfeff.encoders import presets

    settings = {**sweep.pretrain, **cell.pretrain}
    length = settings["sequence_length"]
    if FLAGS.steps:
        settings["steps"] = FLAGS.steps
        for setting in ("warmup_steps", "eval_every"):  # The recipe chooses others.
            del settings[setting]
    settings |= arguments("pretrain")
    if "tokenizer" in settings:
        settings.pop("tokenizer_kind", None)
    config = presets()[settings["preset"]]["config"]
    override = {**cell.override}
    if FLAGS.width:
        for width in WIDTHS:
            value = override.get(width, config.get(width))
            if value is not None:
                value *= FLAGS.width
                base = config["hidden_dim"]
                override[width] = quotient(f"{name}, {label}: --width", value, base)
    if FLAGS.layers:
        override["num_layers"] = FLAGS.layers
    override |= arguments("override")
    finetune = {**sweep.finetune, **arguments("finetune"), **cell.finetune}
    for given in (cell.finetune, sweep.finetune):
        if "sequence_length" in given:
            finetune["sequence_length"] = quotient(
                f"{name}, {label}: the windows' length",
                given["sequence_length"] * settings["sequence_length"],
                length,
            )
            break
    tasks = sweep.tasks if "all" in FLAGS.tasks else FLAGS.tasks
    size = {**config, **override}
    return Job(
        name,
        label,
        seed,
        f"{size['num_layers']} layers of width {size['hidden_dim']}, "
        f"{settings['steps']} steps of {settings['batch_size']} × "
        f"{settings['sequence_length']} tokens{others()}",
        {**settings, "override": override, "seed": int(seed)},
        finetune,
        tuple(task for task in sweep.tasks if task in tasks),
    )


def others() -> str:
    """The flags that are given beside the size, as text."""
    given = {*FLAGS.pretrain, *FLAGS.override, *FLAGS.finetune}
    return "".join(
        f", {text}"
        for text in sorted(given)
        if not text.startswith(("sequence_length=", "batch_size="))
    )


def arguments(flag: str) -> dict:
    """The values by name of a flag of NAME=VALUE; lists of JSON become tuples."""
    values = dict(parse_argument(flag, text) for text in getattr(FLAGS, flag))
    known = {field.name for cls in PROGRAMS.values() for field in fields_of(cls)}
    if flag == "finetune" and (unknown := set(values) - known):
        raise app.UsageError(
            f"--finetune must be settings of {' or '.join(PROGRAMS)}. "
            f"Received: {sorted(unknown)}"
        )
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


def quotient(what: str, value: int, divisor: int) -> int:
    """`value / divisor`; raises unless it is a whole number."""
    if value % divisor:
        raise app.UsageError(
            f"{what} must give whole numbers. Received: {value / divisor:g}"
        )
    return value // divisor


def text() -> tuple[list[str], list[str]]:
    """Names of the texts to train on and to validate by."""
    if bool(FLAGS.corpus) != bool(FLAGS.validation):
        raise app.UsageError("--corpus and --validation must be given together")
    if FLAGS.corpus:
        return FLAGS.corpus, FLAGS.validation
    train, validation = runs.texts(FLAGS.data)
    if not Path(validation).exists():
        raise app.UsageError(f"--data={FLAGS.data} holds no text/{runs.HELD_OUT}")
    return train, [validation]


def refusals(cells: dict[str, dict]) -> list[str]:
    """The faults of the settings of cells, by building each with one layer."""
    from tfeff.recipes import PretrainSettings
    from tfeff.recipes.pretraining import settle
    from tfeff.recipes.pretraining_model import make_model

    errors = []
    for name, settings in cells.items():
        override = {**settings["override"], "num_layers": 1, "vocabulary_size": 64}
        try:
            whole = settle(PretrainSettings(run_dir="none", **settings))
            make_model(dataclasses.replace(whole, override=override))
        except (TypeError, ValueError) as error:
            errors.append(f"{name}: {error}")
    return errors


def run(job: Job, task: str, train, validation, path: str) -> None:
    """Runs a cell's pretraining, or one of its tasks, and keeps its rows."""
    folder, command = pretraining(job, train, validation)
    # The rows may be there where the folders are gone.
    runs.run(folder, command)
    if task == "pretraining":
        curve = [{**job.key(task), **row} for row in runs.curve(folder)]
        for row in curve:
            del row["task"]
        append(path.replace(".csv", "_curves.csv"), CURVES, curve)
    else:
        folder, command = finetuning(job, task, folder)
        runs.run(folder, command)
    record(
        path,
        FIELDS,
        [
            {
                **job.key(task),
                "metric": metric,
                "value": value,
                "command": shlex.join(["python", *command]),
            }
            for metric, value in runs.metrics(folder).items()
        ],
    )


def pretraining(job: Job, train, validation) -> tuple[str, list[str]]:
    """The folder of a cell's pretraining, and the command.

    Cells with the same settings have the same folder.
    """
    settings = {**job.settings, "corpus": train, "validation": validation}
    folder = os.path.join(FLAGS.runs, f"{job.sweep}-{digest(settings)}")
    return folder, command_of("pretrain", folder, settings)


def finetuning(job: Job, task: str, pretrained: str) -> tuple[str, list[str]]:
    """The folder of a cell's fine-tuning on a task, and the command."""
    program, sources = data_of(task)
    own = SWEEPS[job.sweep].by_task.get(task, {})
    settings = {**own, **job.finetune, **sources, "pretrained": pretrained}
    settings["seeds"] = (int(job.seed),)
    names = {field.name for field in fields_of(PROGRAMS[program])}
    settings = {name: value for name, value in settings.items() if name in names}
    folder = f"{pretrained}-{task}-{digest(settings)}"
    return folder, command_of(program, folder, {"task": task, **settings})


def data_of(task: str) -> tuple[str, dict[str, str]]:
    """The command that fine-tunes on a task, and the settings that name its data."""
    if task in SPANS:
        files = zip(("train", "dev"), SPANS[task])
        return "answer", {
            part: os.path.join(FLAGS.data, "squad", file) for part, file in files
        }
    folder = "race" if task == "RACE" else "glue"
    return "finetune", {"data": os.path.join(FLAGS.data, folder)}


def digest(settings: dict) -> str:
    """Eight hexadecimal digits of settings."""
    text = json.dumps(settings, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:8]


def command_of(program: str, folder: str, settings: dict) -> list[str]:
    """The command of `tfeff` with settings as flags, for Python."""
    settings = {"run_dir": os.path.abspath(folder), **settings}
    return ["-m", "tfeff", program, *runs.flags_of(settings)]


if __name__ == "__main__":
    environment.ensure()  # The runs inherit it.
    app.run(main)
