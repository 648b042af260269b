"""The papers' sweeps as data: what each one varies of the papers' configurations."""

import dataclasses
from collections.abc import Mapping

from tfeff.recipes.configurations import CONFIGURATIONS

GLUE = ("CoLA", "SST-2", "MRPC", "QQP", "STS-B", "MNLI", "QNLI", "RTE")
# Tasks of `tfeff answer`, with their files in the folder `squad`.
SPANS = {
    "squad1": ("train-v1.1.json", "dev-v1.1.json"),
    "squad2": ("train-v2.0.json", "dev-v2.0.json"),
}


@dataclasses.dataclass(frozen=True)
class Cell:
    """The settings of one system of a sweep that differ from those of all.

    Attributes:
        override: arguments of the encoder, in place of the preset's.
        pretrain: settings of `tfeff pretrain`.
        finetune: settings of `tfeff finetune` or `tfeff answer`.
    """

    override: Mapping = dataclasses.field(default_factory=dict)
    pretrain: Mapping = dataclasses.field(default_factory=dict)
    finetune: Mapping = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Systems that are compared, in the order of the paper.

    Attributes:
        source: the paper's figure or table.
        pretrain, finetune: settings that all systems share.
        by_task: further ones of fine-tuning, by the task.
        cells: the systems by their labels.
        tasks: what the paper fine-tunes on.
        curves: whether the picture shows losses over steps, not one for each label.
    """

    source: str
    pretrain: Mapping
    cells: Mapping[str, Cell]
    tasks: tuple[str, ...] = ()
    finetune: Mapping = dataclasses.field(default_factory=dict)
    by_task: Mapping[str, Mapping] = dataclasses.field(default_factory=dict)
    curves: bool = False


def _presets(**names: str) -> dict[str, Cell]:
    return {
        label.replace("_", " "): Cell(pretrain={"preset": preset})
        for label, preset in names.items()
    }


def _attention(name: str, **arguments) -> dict:
    return {"attention": {"name": name, **arguments}}


def _clipped(distance: int) -> dict:
    return _attention("relative", method="huang4", max_distance=distance)


def _of(name: str, **others) -> dict:
    """The settings of `tfeff configs NAME`, and others beside or in place of them.

    Rates of dropout and the precision are not among them: `--override` and the machine
    decide.
    """
    settings = CONFIGURATIONS[name].settings
    left_out = ("dropout", "attention_dropout", "dtype")
    return {k: v for k, v in settings.items() if k not in left_out} | others


def _pretraining(name: str, **others) -> dict:
    return _of(f"{name}_pretrain", eval_every=10_000, **others)


# Huang et al. do not give the steps, and the slides no recipe: BERT's.
_BERT = {"steps": 1_000_000, "learning_rate": 1e-4, "warmup_steps": 10_000}
_SHATTER = _pretraining("shatter_base")
# Section 4.3 has half of table 6's steps.
_BLOCKBERT = _pretraining("blockbert_n2", steps=1_200_000)
_BLOCKBERT_TASKS = {
    "tasks": ("squad1", "squad2"),
    "finetune": _of("blockbert_finetune_squad", sequence_length=512),
}
_HUANG = _pretraining("huang4", **_BERT)
# The rate, batches and epochs of section 4.2: section 4.3 gives none.
_HUANG_TASKS = {
    "tasks": ("squad1",),
    "finetune": _of(
        "huang_finetune_squad", learning_rates=(3e-5,), batch_sizes=(32,), epochs=(3,)
    ),
}
_CONVBERT = _pretraining("convbert_small")
_CONVBERT_TASKS = {
    "tasks": GLUE,
    "finetune": _of("convbert_finetune_glue"),
    "by_task": CONFIGURATIONS["convbert_finetune_glue"].by_task,
}
_MASKED_LM = {
    "objective": "masked_lm",
    "generator_ratio": 0.25,  # The default: masked_lm has no generator.
}
_SELF = _attention("self")
_BOTTLENECK = _attention("mixed", convolution="none")
_ONE_GROUP = {"feedforward": {"num_groups": 1}}
_ALBERT = _pretraining("albert_base", batch_size=256, **_BERT)
_ALBERT_TASKS = {
    "tasks": ("squad1", "squad2", "MNLI", "SST-2", "RACE"),
    "finetune": {"sequence_length": 512},
}
_SHARING = {
    "all-shared": "all",
    "shared-attention": "attention",
    "shared-FFN": "feedforward",
    "not-shared": "none",
}

SWEEPS = {
    "shatter_variants": Sweep(
        "Shatter, Figure 1",
        _SHATTER,
        {
            "No_Position": Cell(pretrain={"preset": "no_position_base"}),
            "Part_Mask": Cell(pretrain={"preset": "part_mask_base"}),
            "1H_Softmax": Cell(pretrain={"preset": "one_head_softmax_base"}),
            "1H_Sigmoid": Cell(pretrain={"preset": "one_head_sigmoid_base"}),
            "Part_Bias": Cell(pretrain={"preset": "part_bias_base"}),
            **_presets(Shatter="shatter_base", BERT="bert_base"),
        },
        curves=True,
    ),
    "shatter_base": Sweep(
        "Shatter, Figure 4",
        _SHATTER,
        {
            **_presets(BERT="bert_base", Shatter="shatter_base"),
            "BERT-RPE": Cell(pretrain={"preset": "bert_rpe_base"}),
            "BERT-RAB": Cell(pretrain={"preset": "bert_rab_base"}),
        },
        curves=True,
    ),
    "shatter_large": Sweep(
        "Shatter, Figure 5",
        _pretraining("shatter_large"),
        _presets(BERT="bert_large", Shatter="shatter_large"),
        curves=True,
    ),
    # The figure's points for 3 blocks are 12:0:0, 10:1:1 and 8:2:2 in the text.
    "blockbert_heads": Sweep(
        "BlockBERT, Figure 4",
        _BLOCKBERT,
        {
            heads: Cell(override=_attention("blockwise", head_blocks=heads))
            for heads in (
                *(f"{12 - shifted}:{shifted}" for shifted in range(7)),
                *("12:0:0", "10:1:1", "8:2:2", "6:3:3", "4:4:4"),
            )
        },
        **_BLOCKBERT_TASKS,
    ),
    "huang_clipping": Sweep(
        "Huang et al., Table 4",
        _HUANG,
        {
            **{
                f"k = {k}": Cell(
                    _attention("relative", method="huang4", max_distance=k)
                )
                for k in (2, 4, 8, 16, 32, 64, 128, 256, 512)
            },
            **{
                f"k = 256, windows of {length}": Cell(
                    _clipped(256),
                    finetune={"sequence_length": length},
                )
                for length in (576, 640, 704)
            },
        },
        **_HUANG_TASKS,
    ),
    "convbert_kernels": Sweep(
        "ConvBERT, Figure 5",
        _CONVBERT,
        {
            f"kernel of {size}": Cell(_attention("mixed", kernel_size=size))
            for size in (3, 5, 7, 9, 11, 13, 15)
        },
        **_CONVBERT_TASKS,
    ),
    "convbert_small": Sweep(
        "ConvBERT, Table 1, small",
        _CONVBERT,
        {
            "BERT": Cell(_SELF, _MASKED_LM),
            "ELECTRA": Cell(_SELF),
            "+BNK": Cell(_BOTTLENECK),
            "+BNK +SDConv": Cell(),
        },
        **_CONVBERT_TASKS,
    ),
    "convbert_medium_small": Sweep(
        "ConvBERT, Table 1, medium-small",
        _pretraining("convbert_medium_small"),
        {
            "ELECTRA": Cell({**_SELF, **_ONE_GROUP}),
            "+BNK": Cell({**_BOTTLENECK, **_ONE_GROUP}),
            "+BNK +GL": Cell(_BOTTLENECK),
            "+BNK +GL +Larger": Cell(
                {**_BOTTLENECK, "hidden_dim": 432, "intermediate_dim": 1728}
            ),
            "+BNK +GL +SDConv": Cell(),
        },
        **_CONVBERT_TASKS,
    ),
    "convbert_base": Sweep(
        "ConvBERT, Table 1, base",
        _pretraining("convbert_base"),
        {
            "BERT": Cell(_SELF, _MASKED_LM),
            "ELECTRA": Cell(_SELF),
            "+BNK": Cell(_BOTTLENECK),
            "+BNK +SDConv": Cell(),
        },
        **_CONVBERT_TASKS,
    ),
    "convbert_convolutions": Sweep(
        "ConvBERT, Table 2",
        _CONVBERT,
        {
            "ELECTRA": Cell(_SELF),
            "Conventional": Cell(_attention("mixed", convolution="separable")),
            "Dynamic": Cell(_attention("mixed", convolution="dynamic")),
            "Span-based Dynamic": Cell(),
        },
        **_CONVBERT_TASKS,
    ),
    "albert_widths": Sweep(
        "slides, Embedding parameterization experiments",
        _ALBERT,
        {
            f"{label}, E = {width}": Cell(
                {"sharing": _SHARING[label], "embedding_dim": width}
            )
            for label in ("not-shared", "all-shared")
            for width in (64, 128, 256, 768)
        },
        **_ALBERT_TASKS,
    ),
    "albert_sharing": Sweep(
        "slides, Parameter sharing experiments",
        _ALBERT,
        {
            f"{label}, E = {width}": Cell({"sharing": sharing, "embedding_dim": width})
            for width in (768, 128)
            for label, sharing in _SHARING.items()
        },
        **_ALBERT_TASKS,
    ),
    "albert_sentences": Sweep(
        "slides, SOP Experiments",
        _ALBERT,
        {
            "None": Cell(pretrain={"objective": "masked_lm"}),
            "NSP": Cell(pretrain={"objective": "next_sentence"}),
            "SOP": Cell(),
        },
        **_ALBERT_TASKS,
    ),
}
