"""The cells of the campaign, in the order in which they are run.

A cell is a training, or a measurement, of a system with a seed. Seed 0 of everything
comes before seed 1, and of each seed the systems of `SYSTEMS` come in their order, so
that whatever has run when the time is over is a picture of all stages.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from evidence.systems import (
    BERT,
    BLOCK_2,
    BLOCK_3,
    ELECTRA,
    METHOD_4,
    SCRATCH,
    SHATTER,
    SPARSE,
    SYSTEMS,
    TIMED,
    TWO_LAYERS,
    Scale,
    settings_of,
)

# The first of the systems of each paper: they are first in all stages.
CORE = tuple(SYSTEMS)[:14]
STAGES = ("timing", "pilot", "pretraining", "transfer", "questions", "cheaper", "long")
# What is fine-tuned on GLUE, and by what window lengths questions are answered.
TRANSFERRED = (
    *(BERT, SCRATCH, SHATTER, ELECTRA, "ConvBERT, RTD", "BERT-RPE", "BERT-RAB"),
    *("Part_Mask", "1H_Sigmoid", "Part_Bias", METHOD_4, "Method 3"),
    *("ALBERT, all shared", "ALBERT, shared attention", "ALBERT, shared FFN"),
    *("+BNK, RTD", "Separable, RTD", "Dynamic, RTD"),
)
EXTENDED = (BERT, SHATTER, METHOD_4)
ANSWERED = (*EXTENDED, "Shaw", "Method 1", "Method 2", "Method 3")
ANSWERED += (BLOCK_2, BLOCK_3, SPARSE, SCRATCH)
LONG = (SHATTER, METHOD_4, BLOCK_2, BERT)
DISTILLED_TASKS = ("CoLA", "MRPC", "SST-2")
# Weights of TinyBERT's losses that are 0, in its Table 6. Without the layers of the
# Transformer both of their losses are.
DISTILLED = {
    "TinyBERT": (),
    "No Trm": ("hidden_weight", "attention_weight"),
    "No Pred": ("prediction_weight",),
    "No Attn": ("attention_weight",),
    "No Hidn": ("hidden_weight",),
    "No Embd": ("embedding_weight",),
    "No GD": (),
}
# The share of the steps of an equally dear stacked run after which its depth doubles.
STACKED = {"Stacking, half": 1 / 2, "Stacking, quarter": 1 / 4}
RTD = "BERT, RTD, equal cost"
CONV_RTD = "ConvBERT, RTD, equal cost"
CHEAP_RPE = "BERT-RPE, equal cost"
Settings = Mapping[str, Any]


class Cheaper(NamedTuple):
    """A system with as many steps as cost what another's whole pretraining does."""

    system: str
    other: str
    tasks: bool  # Whether it is fine-tuned, too.


# A schedule of its own, where a curve that is read earlier would say too little: the
# rate would not have decayed.
CHEAPER = {
    RTD: Cheaper(ELECTRA, BERT, True),
    CONV_RTD: Cheaper("ConvBERT, RTD", BERT, True),
    CHEAP_RPE: Cheaper("BERT-RPE", SHATTER, False),
}


class Context:
    """The dependencies of a cell's settings: results of other cells, and folders.

    Attributes:
        scale: the sizes.
        texts: the folder of the texts.
        folder: from the name of a cell to the folder of its run.
        metric: from a cell's name and a metric's to its value.
    """

    def __init__(
        self,
        scale: Scale,
        texts: str,
        folder: Callable[[str], str],
        metric: Callable[[str, str], float],
    ):
        self.scale, self.texts = scale, texts
        self.folder, self.metric = folder, metric

    def text(self, name: str) -> str:
        return f"{self.texts}/{name}"

    def rate(self, system: str) -> float:
        """The peak rate that the system's pilots chose: the lowest loss, or rate."""
        losses = {
            rate: self.metric(f"pilot/{system}/{rate:g}/0", "loss")
            for rate in self.scale.rates
        }
        return min(losses, key=lambda rate: (losses[rate], rate))

    def cost(self, system: str) -> float:
        """The time of a system's step over that of BERT's."""
        return 1.0 if system == BERT else self.metric(f"timing/{system}/0", "cost")

    def pretraining(
        self, system: str, seed: int, steps: int, rate: float, validation: str
    ) -> Settings:
        """Settings of `tfeff pretrain`."""
        return {
            **settings_of(system, self.scale),
            "corpus": (self.text("train.jsonl"),),
            "validation": (self.text(validation),),
            "tokenizer": self.text("tokenizer.spm"),
            "learning_rate": rate,
            "steps": steps,
            "eval_every": self.scale.eval_every,
            "warmup_steps": steps // 10,
            "seed": seed,
            "keep_checkpoints": 1,
        }


@dataclasses.dataclass(frozen=True)
class Cell:
    """A cell.

    Attributes:
        stage, system, task, seed: what it is.
        recipe: of `tfeff.recipes`, or `timing` or `positions`.
        settings: from the context to the settings of the recipe.
        needs: the names of the cells that it starts from.
        tokens: about how many tokens BERT would read in the same time, for `--list`.
        priority: what comes first within a stage.
        tier: 0 for what tells most, which all stages have before the rest.
    """

    stage: str
    system: str
    task: str
    seed: int
    recipe: str
    settings: Callable[[Context], Settings]
    needs: tuple[str, ...] = ()
    tokens: float = 0.0
    priority: float = 0.0
    tier: int = 0

    @property
    def name(self) -> str:
        parts = (self.stage, self.system, self.task, str(self.seed))
        return "/".join(part for part in parts if part)


def make_cells(scale: Scale) -> list[Cell]:
    """All cells, each after those that it needs."""
    cells = [
        *timing(scale),
        *pilots(scale),
        *pretraining(scale),
        *transfer(scale),
        *questions(scale),
        *cheaper(scale),
        *long(scale),
    ]
    order = {stage: index for index, stage in enumerate(STAGES)}

    def key(cell):
        if cell.stage == "timing":
            return (-1, 0, 0, 0, 0)
        # A system's pilots come just before its first pretraining.
        first = order["pretraining"] if cell.stage == "pilot" else order[cell.stage]
        return (cell.seed, cell.tier, first, cell.priority, cell.stage != "pilot")

    return sorted(cells, key=key)


def timing(scale: Scale) -> Iterator[Cell]:
    """The time of each system's step, in turns with BERT's: it runs alone."""
    tokens = 2 * scale.timed_steps * scale.timed_rounds * scale.batch_size
    for system in TIMED:
        yield Cell(
            *("timing", system, "", 0, "timing"),
            lambda context, system=system: settings_of(system, context.scale),
            tokens=tokens * scale.length,
        )


def pilots(scale: Scale) -> Iterator[Cell]:
    """Three peak rates a system, on a share of the steps and other documents."""
    for index, system in enumerate(SYSTEMS):
        late = SYSTEMS[system].late
        steps = scale.steps_of(scale.late_pilot_share if late else scale.pilot_share)
        for rate in scale.rates:
            yield Cell(
                *("pilot", system, f"{rate:g}", 0, "pretrain"),
                lambda context, system=system, steps=steps, rate=rate: (
                    context.pretraining(system, 0, steps, rate, "pilot.jsonl")
                ),
                tokens=_tokens(scale, steps, system),
                priority=index,
                tier=int(system not in CORE),
            )


def pretraining(scale: Scale) -> Iterator[Cell]:
    """Every system on the same text for the same number of steps."""
    for index, name in enumerate(SYSTEMS):
        for seed in range(_seeds(scale, name)):
            yield Cell(
                *("pretraining", name, "", seed, "pretrain"),
                lambda context, name=name, seed=seed: context.pretraining(
                    name, seed, context.scale.steps, context.rate(name), "final.jsonl"
                ),
                _pilots_of(name, scale),
                _tokens(scale, scale.steps, name),
                index,
                int(name not in CORE),
            )


def transfer(scale: Scale) -> Iterator[Cell]:
    """GLUE's tasks, each seed from the pretraining of that seed."""
    for index, system in enumerate(TRANSFERRED):
        for task in scale.tasks:
            for seed in range(_seeds(scale, system)):
                yield _task(scale, "transfer", system, task, seed, index)


def questions(scale: Scale) -> Iterator[Cell]:
    """Questions: gaps in passages first, then real ones."""
    for index, system in enumerate(ANSWERED if scale.lengths else ()):
        # All at the middle length, which those that are compared by length have, too.
        middle = scale.lengths[min(1, len(scale.lengths) - 1)]
        for length in scale.lengths if system in EXTENDED else (middle,):
            for seed in range(_seeds(scale, system)):
                source = None if system == SCRATCH else pretrained(system, seed)
                own = (system, length, seed)
                cloze = _answers("cloze", scale.cloze_epochs, *own, source, index)
                yield cloze
                yield _answers("squad", scale.question_epochs, *own, cloze.name, index)


def cheaper(scale: Scale) -> Iterator[Cell]:
    """The cells of what saves time: stacking, replaced tokens, smaller students."""
    for seed in range(scale.seeds):
        for label, share in STACKED.items():
            yield Cell(
                *("cheaper", label, "", seed, "stack"),
                lambda context, share=share, seed=seed: _stacked(context, share, seed),
                (*_pilots_of(BERT, scale), f"timing/{TWO_LAYERS}/0"),
                _tokens(scale, scale.steps, BERT),
            )
        for label, (system, other, has_tasks) in CHEAPER.items():
            yield Cell(
                *("cheaper", label, "", seed, "pretrain"),
                lambda context, system=system, other=other, seed=seed: (
                    context.pretraining(
                        *(system, seed),
                        context.scale.steps_of(
                            context.cost(other) / context.cost(system)
                        ),
                        *(context.rate(system), "final.jsonl"),
                    )
                ),
                (
                    *_pilots_of(system, scale),
                    *(f"timing/{name}/0" for name in (system, other)),
                ),
                _tokens(scale, scale.steps, other),
                1,
            )
            for task in scale.tasks if has_tasks else ():
                source = f"cheaper/{label}/{seed}"
                yield _task(scale, "cheaper", label, task, seed, 2, source)
        if scale.tasks:
            yield from _distilled(scale, seed)


def long(scale: Scale) -> Iterator[Cell]:
    """Longer sequences than in pretraining: loss by position, and trained on."""
    for index, system in enumerate(LONG if scale.long_lengths else ()):
        for seed in range(min(2, _seeds(scale, system))):
            source = pretrained(system, seed)
            for length in (scale.length, *scale.long_lengths):
                yield Cell(
                    *("long", system, str(length), seed),
                    "positions" if length == scale.length else "pretrain",
                    lambda context, length=length, source=source, seed=seed: _continued(
                        context, length, source, seed
                    ),
                    (source,),
                    # Attention to many positions is dear.
                    0 if length == scale.length else 2 * scale.long_tokens,
                    index,
                )


def pretrained(system: str, seed: int) -> str:
    """The name of the cell of pretraining that a later stage's seed starts from."""
    return f"pretraining/{system}/{seed}"


def predicts_masks(system: str) -> bool:
    """Whether the loss of a system is that of masked tokens."""
    system = whole_system(system)
    return system not in SYSTEMS or "objective" not in SYSTEMS[system].settings


def whole_system(system: str) -> str:
    """A system, of one with other steps that with the usual ones."""
    return CHEAPER[system].system if system in CHEAPER else system


def _seeds(scale, system):
    """How many seeds a stage has that starts from a system's pretraining."""
    return scale.seeds if system == SCRATCH else min(SYSTEMS[system].seeds, scale.seeds)


def _pilots_of(system, scale):
    return tuple(f"pilot/{system}/{rate:g}/0" for rate in scale.rates)


def _tokens(scale, steps, system):
    return steps * scale.batch_size * scale.length * SYSTEMS[system].cost


def _task(scale, stage, system, task, seed, priority, source=None):
    """A task of GLUE: the rate is chosen on a tenth of its training part."""
    if source is None and system != SCRATCH:
        source = pretrained(system, seed)

    def settings(context):
        short = task == "SST-2"
        return {
            "task": task,
            "data": context.text("choose"),
            "sequence_length": context.scale.length,
            "learning_rates": context.scale.tuning_rates,
            "epochs": (
                context.scale.short_epochs if short else context.scale.tuning_epochs,
            ),
            "eval_every": 1000 if short else 200,
            "dropout": 0.1,
            "seeds": (seed,),
            "pretrained": context.folder(source) if source else SCRATCH,
        }

    examples = {"SST-2": 67_000, "CoLA": 25_000, "STS-B": 17_000}.get(task, 11_000)
    tokens = examples * (16 if task in ("SST-2", "CoLA") else 60)
    return Cell(
        *(stage, system, task, seed, "finetune", settings),
        (source,) if source else (),
        # A short sequence costs more than its tokens.
        1.5 * tokens * len(scale.tuning_rates),
        priority,
        int(stage == "transfer" and priority >= 7),
    )


def _answers(kind, epochs, system, length, seed, source, priority):
    """A training to answer questions of a kind, in windows of a length."""

    def settings(context):
        return {
            "pretrained": context.folder(source) if source else SCRATCH,
            "train": context.text(f"{kind}-train.json"),
            "dev": context.text(f"{kind}-choose.json"),
            "predict_split": "dev" if kind == "squad" else None,
            "test": context.text("squad-judge.json") if kind == "squad" else None,
            "sequence_length": length,
            "stride": length // 2,
            "batch_sizes": (16,),
            "epochs": (epochs,),
            "eval_every": 200,
            "learning_rates": (5e-4,),
            "dropout": 0.1,
            "seeds": (seed,),
        }

    windows = (12_000 if kind == "cloze" else 1000) * max(1, 384 / length)
    return Cell(
        *("questions", system, f"{kind}-{length}", seed, "answer", settings),
        (source,) if source else (),
        windows * length * epochs,
        priority,
        int(system not in EXTENDED),
    )


def _stacked(context, share, seed):
    """As dear as all layers from scratch, by the measured time of half of them."""
    half = context.cost(TWO_LAYERS)
    steps = context.scale.steps_of(1 / (share * half + 1 - share))
    every = context.scale.eval_every
    switch = max(1, round(share * steps / every)) * every
    settings = context.pretraining(BERT, seed, steps, context.rate(BERT), "final.jsonl")
    override = dict(settings["override"])
    return {
        **settings,
        "num_layers": override.pop("num_layers"),
        "override": override,
        "doublings": 1,
        "switch_steps": (switch,),
    }


def _distilled(scale, seed):
    """TinyBERT's losses one by one, from all layers to half of them."""
    teacher = pretrained(BERT, seed)
    steps = scale.steps_of(scale.distil_share)
    for label, without in DISTILLED.items():
        general = f"cheaper/{label}/general/{seed}"
        # Without losses of the general stage that is the stage with all of them.
        left = tuple(name for name in without if name != "prediction_weight")
        if label in ("No Pred", "No GD"):
            general = f"cheaper/TinyBERT/general/{seed}"
        else:

            def settings(context, left=left):
                return {
                    "stage": "general",
                    "teacher": context.folder(teacher),
                    **_student(context),
                    "corpus": (context.text("train.jsonl"),),
                    "sequence_length": context.scale.length,
                    "batch_size": context.scale.batch_size,
                    "steps": steps,
                    "eval_every": context.scale.eval_every,
                    "learning_rate": 1e-3,
                    "seed": seed,
                    **dict.fromkeys(left, 0.0),
                }

            yield Cell(
                *("cheaper", label, "general", seed, "distill", settings),
                (teacher,),
                1.2 * _tokens(scale, steps, BERT),
                3,
                1,
            )
        for task in DISTILLED_TASKS:
            if task in scale.tasks:
                yield _distilled_task(scale, label, task, seed, general, without, left)


def _distilled_task(scale, label, task, seed, general, without, left):
    teacher = f"transfer/{BERT}/{task}/{seed}"

    def settings(context):
        found = {
            "stage": "task",
            "task": task,
            "data": context.text("choose"),
            "teacher": context.folder(teacher),
            "student": context.folder(general),
            "sequence_length": context.scale.length,
            "batch_size": 16,
            "steps": context.scale.steps_of(0.2),
            "prediction_steps": context.scale.steps_of(0.1),
            "prediction_rate": 3e-4,
            "eval_every": context.scale.eval_every,
            "seed": seed,
            **dict.fromkeys(left, 0.0),
        }
        if label == "No GD":
            found |= _student(context)
        if "prediction_weight" in without:  # The head learns from labels.
            found |= {"prediction_weight": 0.0, "label_weight": 1.0}
        return found

    needs = (teacher,) if label == "No GD" else (teacher, general)
    return Cell(
        *("cheaper", label, task, seed, "distill", settings),
        needs,
        _tokens(scale, scale.steps_of(0.3), BERT) / 2,
        4,
        1,
    )


def _student(context):
    """A student by its name, which has the teacher's vocabulary."""
    settings = settings_of(TWO_LAYERS, context.scale)
    return {"student": settings["preset"], "override": settings["override"]}


def _continued(context, length, source, seed):
    """Pretraining that goes on with longer sequences, or what is only measured."""
    settings = {
        "pretrained": context.folder(source),
        "sequence_length": length,
        "cross_documents": True,
    }
    if length == context.scale.length:
        return settings
    batch_size = max(1, context.scale.batch_size * context.scale.length // length)
    every = context.scale.eval_every
    steps = max(1, context.scale.long_tokens // (batch_size * length * every)) * every
    return settings | {
        "corpus": (context.text("train.jsonl"),),
        "validation": (context.text("final.jsonl"),),
        "batch_size": batch_size,
        "learning_rate": 3e-4,
        "steps": steps,
        "eval_every": every,
        "warmup_steps": steps // 10,
        "seed": seed,
        "keep_checkpoints": 1,
    }


def with_needs(names: Iterable[str], cells: Mapping[str, Cell]) -> set[str]:
    """The names of cells, and of all that they need."""
    found: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += cells[name].needs
    return found
