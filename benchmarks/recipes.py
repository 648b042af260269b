"""The papers' recipes end to end, in small: pretrain, fine-tune, stack, distil, extend.

Every run is one of the `examples/` or a command of `tfeff`, in a folder of its own
under `--runs`. A run that has finished is not made again, and one that was stopped goes
on, so that the benchmark can be interrupted, and grown by more `--stages` or `--seeds`.
Writes metrics, curves and commands to `--results`.

    python benchmarks/recipes.py --runs=runs/recipes --seeds=0,1
"""

import dataclasses
import os
import shlex
from pathlib import Path

import environment
import machine
import runs
from absl import app, flags
from rows import append, read, seeds_cell
from runs import HELD_OUT

import tfeff

# Presets, made small by `SIZES`, with the settings in which the systems differ.
SYSTEMS = {
    "BERT": ("bert_base",),
    "Shatter": ("shatter_base",),
    "method 4": ("huang4_base",),
    "BlockBERT": (
        "blockbert_n2_base",
        '--override=attention={"name": "blockwise", "head_blocks": "6:2"}',
    ),
    "ConvBERT": ("convbert_base",),
    "ConvBERT, RTD": ("convbert_base", "--objective=replaced_token"),
}
SIZES = {
    "num_layers": 4,
    "hidden_dim": 256,
    "num_heads": 8,
    "intermediate_dim": 1024,
    "dropout": 0.0,  # Far less than one pass over the text: nothing to overfit.
}
GLUE = ("SST-2", "CoLA", "MRPC", "RTE", "STS-B")
STAGES = {
    "pretrain": "Pretraining: validation on the Penn Treebank sample",
    "glue": "GLUE, best on dev",
    "squad": "SQuAD, windows of 256 tokens after pretraining with 128",
    "extend": "SQuAD, windows of 128 tokens, as long as in pretraining",
    "stack": "Stacking 2 to 4 layers, at the cost of 4 from scratch",
    "distil": "Distilling 4 to 2 layers, against 2 from scratch",
}
EXTENDED = ("BERT", "Shatter", "method 4")

FLAGS = flags.FLAGS
flags.DEFINE_string(
    "data",
    os.environ.get("TFEFF_DATA", "../shared/data"),
    "Folder with text/, glue/ and squad/.",
)
flags.DEFINE_string("runs", None, "Folder of the runs.", required=True)
flags.DEFINE_string("results", "benchmarks/results", "Where the results go.")
flags.DEFINE_list("stages", list(STAGES), "What to run, in this order.")
flags.DEFINE_list("seeds", ["0", "1"], "One run of everything for each.")
flags.DEFINE_integer("steps", 300, "Steps of pretraining.", lower_bound=10)
flags.DEFINE_integer("glue_steps", 500, "Steps on a task of GLUE.", lower_bound=2)
flags.DEFINE_integer("squad_steps", 200, "Steps on SQuAD.", lower_bound=2)
FIELDS = ("stage", "system", "task", "seed", "metric", "value", "command")
CURVES = ("stage", "system", "seed", "step", "loss", "val_loss")


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of an example or a command.

    Attributes:
        stage, system, task, seed: what it shows.
        script: the example's file, or the command.
        arguments: its flags, without the run's folder.
        sources: the runs that it starts from.
    """

    stage: str
    system: str
    task: str
    seed: str
    script: str
    arguments: tuple[str, ...]
    sources: tuple["Job", ...] = ()

    @property
    def folder(self) -> str:
        name = "-".join((self.stage, self.system, self.task, self.seed))
        return os.path.join(FLAGS.runs, name.replace(" ", "_").replace(",", ""))

    @property
    def command(self) -> list[str]:
        is_file = self.script.endswith(".py")
        start = [f"examples/{self.script}"] if is_file else ["-m", "tfeff", self.script]
        return [*start, f"--run_dir={self.folder}", *self.arguments]


def main(_):
    """Runs what is missing, and reports after every run."""
    unknown = set(FLAGS.stages) - set(STAGES)
    if unknown:
        raise app.UsageError(
            f"--stages must be among {list(STAGES)}. Received: {unknown}"
        )
    if not (Path(FLAGS.data) / "text" / HELD_OUT).exists():
        raise app.UsageError(f"--data={FLAGS.data} holds no text/{HELD_OUT}")
    os.makedirs(FLAGS.runs, exist_ok=True)
    os.makedirs(FLAGS.results, exist_ok=True)
    path = os.path.join(FLAGS.results, "recipes.csv")
    for job in jobs():
        done = {tuple(row[name] for name in FIELDS[:4]) for row in read(path)}
        if (job.stage, job.system, job.task, job.seed) in done:
            continue
        for source in job.sources:
            run(source)  # The rows may be there where the folders are gone.
        run(job)
        append(path, FIELDS, metrics(job))
        append(path.replace(".csv", "_curves.csv"), CURVES, curve(job))
        report(path)


def run(job):
    """Runs the example to its end; its output goes to a file beside the folder."""
    runs.run(job.folder, job.command)


def metrics(job):
    """A row for each number in the run's `metrics.json`; no value where undefined."""
    return [
        {
            **{name: getattr(job, name) for name in FIELDS[:4]},
            "metric": name,
            "value": value,
            "command": shlex.join(["python", *job.command]),
        }
        for name, value in runs.metrics(job.folder).items()
    ]


def curve(job):
    """A row for each validation of a pretraining run."""
    system = {name: getattr(job, name) for name in ("stage", "system", "seed")}
    return [{**system, **row} for row in runs.curve(job.folder)]


def jobs():
    """All runs, those of one seed before those of the next."""
    plans = {
        "pretrain": pretrain,
        "glue": glue,
        "squad": lambda seed: squad(seed, "squad", SYSTEMS, 256),
        "extend": lambda seed: squad(seed, "extend", EXTENDED, 128),
        "stack": stack,
        "distil": distil,
    }
    for seed in FLAGS.seeds:
        for stage in FLAGS.stages:
            yield from plans[stage](seed)


def pretrain(seed):
    """Every system on the same text for the same number of steps."""
    for system in SYSTEMS:
        yield pretraining("pretrain", system, seed)


def glue(seed):
    """Every system on five tasks."""
    for task in GLUE:
        for system in SYSTEMS:
            source = pretraining("pretrain", system, seed)
            yield classification("glue", task, source)


def squad(seed, stage, systems, length):
    """Span question answering in windows of `length` tokens, after 128."""
    files = Path(FLAGS.data, "squad")
    for system in systems:
        source = pretraining("pretrain", system, seed)
        yield Job(
            stage,
            system,
            "SQuAD",
            seed,
            "answer",
            (
                f"--pretrained={source.folder}",
                f"--train={files / 'train-v1.1.json'}",
                f"--dev={files / 'dev-v1.1.json'}",
                f"--sequence_length={length}",
                "--stride=64",
                f"--steps={FLAGS.squad_steps}",
                f"--eval_every={FLAGS.squad_steps}",
                f"--batch_sizes={8 * 256 // length}",  # As many tokens.
                "--learning_rates=3e-4",
                "--dropout=0.1",
                f"--seeds={seed}",
            ),
            (source,),
        )


def stack(seed):
    """2 layers doubled to 4, in as many layers times steps as 4 from scratch."""
    # 4/5 of the steps with 2 layers and 3/5 with 4 are the cost of all with 4.
    yield pretraining(
        "stack",
        "BERT, 2 to 4 layers",
        seed,
        "--num_layers=4",
        "--doublings=1",
        f"--switch_steps={FLAGS.steps * 4 // 5}",
        script="stack",
        steps=FLAGS.steps * 7 // 5,
        eval_every=FLAGS.steps // 5,
    )


def distil(seed):
    """A student of 2 layers against 2 layers from scratch, and both on SST-2."""
    scratch = pretraining("distil", "2 from scratch", seed, "--override=num_layers=2")
    yield scratch
    teacher = pretraining("pretrain", "BERT", seed)
    sizes = {**SIZES, "num_layers": 2}
    student = Job(
        "distil",
        "4 to 2",
        "general",
        seed,
        "distill",
        (
            "--stage=general",
            f"--teacher={teacher.folder}",
            "--student=bert_base",
            *(f"--override={name}={value}" for name, value in sizes.items()),
            f"--corpus={','.join(corpus())}",
            "--sequence_length=128",
            "--batch_size=16",
            f"--steps={FLAGS.steps}",
            f"--eval_every={FLAGS.steps // 2}",
            "--learning_rate=1e-3",
            f"--seed={seed}",
        ),
        (teacher,),
    )
    yield student
    for source in (scratch, student):
        yield classification("distil", "SST-2", source)


def pretraining(
    stage, system, seed, *arguments, script="pretrain", steps=None, eval_every=None
):
    """The run that pretrains a system."""
    preset, *settings = SYSTEMS.get(system, SYSTEMS["BERT"])
    steps = steps or FLAGS.steps
    return Job(
        stage,
        system,
        "text",
        seed,
        script,
        (
            f"--preset={preset}",
            *(f"--override={name}={value}" for name, value in SIZES.items()),
            "--override=embedding_dim=256",
            *settings,
            *arguments,
            f"--corpus={','.join(corpus())}",
            f"--validation={Path(FLAGS.data, 'text', HELD_OUT)}",
            "--vocabulary_size=4000",
            "--sequence_length=128",
            "--batch_size=16",
            "--learning_rate=1e-3",
            f"--seed={seed}",
            f"--steps={steps}",
            f"--eval_every={eval_every or steps // 2}",
            f"--warmup_steps={steps // 10}",
        ),
    )


def classification(stage, task, source):
    """The run that fine-tunes what another one pretrained on a task of GLUE."""
    return Job(
        stage,
        source.system,
        task,
        source.seed,
        "finetune",
        (
            f"--pretrained={source.folder}",
            f"--task={task}",
            f"--data={Path(FLAGS.data, 'glue')}",
            "--sequence_length=64",
            f"--steps={FLAGS.glue_steps}",
            f"--eval_every={FLAGS.glue_steps // 2}",
            "--batch_sizes=16",
            "--learning_rates=3e-4",
            "--dropout=0.1",
            f"--seeds={source.seed}",
        ),
        (source,),
    )


def corpus():
    """The files of text to train on."""
    return runs.texts(FLAGS.data)[0]


def report(path):
    """Writes the Markdown tables and the learning curves from the CSV files."""
    rows = read(path)
    lines = [
        "# Recipes\n",
        f"4 layers, width {SIZES['hidden_dim']}, {SIZES['num_heads']} heads or parts, "
        f"feed-forward {SIZES['intermediate_dim']}; the same text and tokenizer (4000 "
        "pieces) for all. Mean over the seeds, and each seed's value in brackets. "
        "Commands, with all settings, are in [recipes.csv](recipes.csv).\n",
        machine.description(),
    ]
    for stage in STAGES:
        found = [row for row in rows if row["stage"] == stage]
        if found:
            lines += [f"## {STAGES[stage]}\n", *table(found), ""]
    lines.append("![learning curves](recipes.png)")
    with open(path.replace(".csv", ".md"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    draw(path.replace(".csv", ".png"))


def table(rows):
    """Lines of a table: a system a row, a metric of a task a column."""
    columns = list(dict.fromkeys((row["task"], row["metric"]) for row in rows))
    several = len({task for task, _ in columns}) > 1
    names = [f"{task} {metric}" if several else metric for task, metric in columns]
    lines = [f"| system | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for system in dict.fromkeys(row["system"] for row in rows):
        cells = []
        for column in columns:
            values = [
                row["value"]
                for row in rows
                if (row["system"], row["task"], row["metric"]) == (system, *column)
            ]
            cells.append(seeds_cell(values))
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return lines


def draw(path):
    """Draws the validation losses of masked language modelling."""
    files = {}
    for seed in FLAGS.seeds:
        for job in (*pretrain(seed), *stack(seed), next(distil(seed))):
            metrics = Path(job.folder, "metrics.csv")
            if "replaced_token" not in "".join(job.arguments) and metrics.exists():
                files.setdefault(job.system, []).append(metrics)
    tfeff.plots.learning_curves(files, path, validation_only=True)


if __name__ == "__main__":
    environment.ensure()  # The examples inherit it.
    app.run(main)
