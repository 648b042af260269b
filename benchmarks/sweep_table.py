"""The papers' sweeps as data: what each one varies, and the size of all else."""

import dataclasses
from collections.abc import Mapping

GLUE = ("CoLA", "SST-2", "MRPC", "QQP", "STS-B", "MNLI", "QNLI", "RTE")
# Tasks of `tfeff answer`, with their files in the folder `squad`.
SPANS = {
    "squad1": ("train-v1.1.json", "dev-v1.1.json"),
    "squad2": ("train-v2.0.json", "dev-v2.0.json"),
}


@dataclasses.dataclass(frozen=True)
class Cell:
    """What one system of a sweep has in place of what all have.

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
        cells: the systems by their labels.
        tasks: what the paper fine-tunes on.
        curves: whether the picture shows losses over steps, not one for each label.
    """

    source: str
    pretrain: Mapping
    cells: Mapping[str, Cell]
    tasks: tuple[str, ...] = ()
    finetune: Mapping = dataclasses.field(default_factory=dict)
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


_TEN_THOUSAND = {"warmup_steps": 10_000, "eval_every": 10_000}
# Shatter, table 1 and section A.2.
_SHATTER = {
    **_TEN_THOUSAND,
    "vocabulary_size": 32_000,
    "sequence_length": 512,
    "batch_size": 256,
    "steps": 1_000_000,
    "learning_rate": 1e-4,
}
# BlockBERT, sections 4.1 and 4.3 and table 6.
_BLOCKBERT = {
    **_TEN_THOUSAND,
    "preset": "blockbert_n2_base",
    "tokenizer_kind": "wordpiece",
    "vocabulary_size": 30_522,
    "sequence_length": 512,
    "batch_size": 256,
    "steps": 1_200_000,
    "learning_rate": 2.5e-4,
}
_BLOCKBERT_TASKS = {
    "tasks": ("squad1", "squad2"),
    "finetune": {
        "learning_rates": (5e-6, 1e-5, 2e-5, 3e-5, 5e-5),
        "batch_sizes": (16, 32),
        "epochs": 4,
        "sequence_length": 512,
        "stride": 128,
    },
}
# Huang et al., section 4, which does not give the steps: BERT's.
_HUANG = {
    **_TEN_THOUSAND,
    "preset": "huang4_base",
    "tokenizer_kind": "wordpiece",
    "vocabulary_size": 30_000,
    "masking": "whole_word",
    "sequence_length": 512,
    "batch_size": 160,
    "steps": 1_000_000,
    "learning_rate": 1e-4,
}
_HUANG_TASKS = {
    "tasks": ("squad1",),
    "finetune": {
        "learning_rates": (3e-5,),
        "batch_sizes": (32,),
        "epochs": 3,
        "sequence_length": 512,
    },
}
# ConvBERT, sections 4.2 and 6.2; the small model's.
_CONVBERT = {
    **_TEN_THOUSAND,
    "preset": "convbert_small",
    "objective": "replaced_token",
    "bias_correction": False,
    "tokenizer_kind": "wordpiece",
    "vocabulary_size": 30_522,
    "sequence_length": 128,
    "batch_size": 128,
    "steps": 1_000_000,
    "learning_rate": 3e-4,
}
_CONVBERT_TASKS = {
    "tasks": GLUE,
    "finetune": {
        "learning_rates": (5e-5, 1e-4, 2e-4, 3e-4),
        "batch_sizes": (32,),
        "epochs": 10,
        "layer_decay": 0.8,
        "warmup": 0.1,
    },
}
_MEDIUM_SMALL = {"preset": "convbert_medium_small", "learning_rate": 5e-4}
_BASE = {
    "preset": "convbert_base",
    "learning_rate": 2e-4,
    "batch_size": 256,
    "generator_ratio": 1 / 3,
}
_MASKED_LM = {
    "objective": "masked_lm",
    "generator_ratio": 0.25,  # The default: masked_lm has no generator.
}
_SELF = _attention("self")
_BOTTLENECK = _attention("mixed", convolution="none")
_ONE_GROUP = {"feedforward": {"num_groups": 1}}
# The slides give no recipe: BERT's, with ALBERT's n-grams and order of sentences.
_ALBERT = {
    **_TEN_THOUSAND,
    "preset": "albert_base",
    "objective": "sentence_order",
    "masking": "ngram",
    "vocabulary_size": 30_000,
    "sequence_length": 512,
    "batch_size": 256,
    "steps": 1_000_000,
    "learning_rate": 1e-4,
}
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
        {**_SHATTER, "batch_size": 1024},
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
        {**_CONVBERT, **_MEDIUM_SMALL},
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
        {**_CONVBERT, **_BASE},
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
