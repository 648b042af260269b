"""The papers' settings by name, which `--config=NAME` fills in.

Each holds what its paper prints; what the paper leaves open stays at the recipe's
default. It imports no library, so that the command's help need not wait for TensorFlow.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from tfeff.datasets.aliases import ALIASES
from tfeff.utils.near_misses import near_miss

_SHATTER = "Tian et al., 2021, Shatter"
_HUANG = "Huang et al., 2020, Better relative position embeddings"
_BLOCKBERT = "Qiu et al., 2020, BlockBERT"
_CONVBERT = "Jiang et al., 2020, ConvBERT"
_ALBERT = "Lan et al., 2020, ALBERT"
_BERT = "Devlin et al., 2019, BERT"
# Settings that a pretrained encoder and its tokenizer determine.
_OF_PRETRAINED = ("preset", "override", "tokenizer_kind", "vocabulary_size")


@dataclasses.dataclass(frozen=True)
class Configuration:
    """Settings of a recipe as a paper prints them.

    Attributes:
        name: its name.
        recipe: the recipe that it is of, as the command calls it.
        source: the paper and its sections.
        settings: values by the names of settings. A `preset` among them cannot be
            replaced.
        by_task: for each task that it is for, further values; empty where the recipe
            has no tasks.
        continues: whether it goes on from a `pretrained` encoder, which must be given.
    """

    name: str
    recipe: str
    source: str
    settings: Mapping[str, object]
    by_task: Mapping[str, Mapping[str, object]] = dataclasses.field(
        default_factory=dict
    )
    continues: bool = False

    def fill(self, given: Mapping, task: object = None) -> dict:
        """These settings, with those that are given in their place.

        A `pretrained` encoder to pretrain on stands for the preset and its sizes, a
        `tokenizer` and a `cache_dir` for the tokenizer's kind.

        Args:
            given: settings by name. Arguments of encoders are added to the paper's.
            task: the task of the run.

        Raises:
            ValueError: if the task or a given preset is another one, or there is no
                encoder to go on from.
        """
        values: dict[str, Any] = dict(self.settings)
        if self.by_task:
            name = ALIASES.get(task, task) if isinstance(task, str) else ""
            if name not in self.by_task:
                raise ValueError(
                    f"`task` must be one of {list(self.by_task)} with the "
                    f"configuration {self.name!r}. Received: task={task!r}."
                    f"{near_miss(task, self.by_task)}"
                )
            values |= self.by_task[name]
        if self.continues and not given.get("pretrained"):
            raise ValueError(
                f"`pretrained` must be given with the configuration {self.name!r}. "
                f"Received: pretrained={given.get('pretrained')!r}"
            )
        preset = values.get("preset")
        if preset and given.get("pretrained"):
            values = {n: v for n, v in values.items() if n not in _OF_PRETRAINED}
        elif preset and given.get("preset", preset) != preset:
            raise ValueError(
                f"`preset` must be {preset!r} with the configuration {self.name!r}. "
                f"Received: preset={given['preset']!r}"
            )
        if given.get("tokenizer") or given.get("cache_dir"):
            values.pop("tokenizer_kind", None)
        for name, value in given.items():
            both = isinstance(value, Mapping) and isinstance(values.get(name), Mapping)
            values[name] = {**values[name], **value} if both else value
        return values


def known(name: str) -> Configuration | None:
    """The configuration of a name, `None` if there is none.

    Of pretraining, `_pretrain` may be left out. Encoders whose names begin with the
    same word are fine-tuned by the same settings, so these have the name of each of
    them, too: `blockbert_n2_finetune_squad` is `blockbert_finetune_squad`.
    """
    encoder, _, task = name.partition("_finetune_")
    if f"{encoder}_pretrain" in CONFIGURATIONS and task:
        name = f"{encoder.split('_')[0]}_finetune_{task}"
    return CONFIGURATIONS.get(name) or CONFIGURATIONS.get(f"{name}_pretrain")


def find(recipe: str, name: str) -> Configuration:
    """The configuration of a recipe with a name that is `known`.

    Raises:
        TypeError: if the name is no string.
        ValueError: if the recipe has none of this name.
    """
    if not isinstance(name, str):
        raise TypeError(f"`config` must be a name. Received: config={name!r}")
    found = known(name)
    if found is not None and found.recipe == recipe:
        return found
    own = [c.name for c in CONFIGURATIONS.values() if c.recipe == recipe]
    raise ValueError(
        "`config` must be one of those that `tfeff configs` lists for "
        f"`tfeff {recipe}`. Received: config={name!r}"
        f"{f', which is of `tfeff {found.recipe}`' if found else ''}."
        f"{near_miss(name, own)}"
    )


def _adam(epsilon):
    """Adam's settings; all papers that print the betas have these."""
    return {"beta_1": 0.9, "beta_2": 0.999, "epsilon": epsilon}


def _pretraining():
    """The configurations of `tfeff pretrain`, named after presets or models."""
    found = []

    def add(name, preset, source, continues=False, **settings):
        settings = {"preset": preset, **settings}
        name = f"{name}_pretrain"
        found.append(
            Configuration(name, "pretrain", source, settings, continues=continues)
        )

    shatter = {
        "objective": "masked_lm",
        "mask_rate": 0.15,
        "vocabulary_size": 32_000,
        "learning_rate": 1e-4,
        "warmup_steps": 10_000,
        "weight_decay": 0.01,
    }
    source = f"{_SHATTER}, table 1 and sections 5 and A.2"
    gpu = {"sequence_length": 256, "batch_size": 128, "steps": 1_600_000}
    base = {"sequence_length": 512, "batch_size": 256, "steps": 1_000_000}
    large = base | {"batch_size": 1024}
    for model in ("shatter", "bert"):
        add(f"{model}_gpu", f"{model}_base", source, **shatter, **gpu)
        add(f"{model}_large", f"{model}_large", source, **shatter, **large)
    for model in (
        *("shatter", "bert", "bert_rpe", "bert_rab", "no_position", "part_mask"),
        *("one_head_softmax", "one_head_sigmoid", "part_bias"),
    ):
        add(f"{model}_base", f"{model}_base", source, **shatter, **base)
    permuted = shatter | base | {"objective": "permutation_lm"}
    del permuted["mask_rate"]  # It is a setting of masked language modelling.
    add("xlnet_base", "xlnet_base", source, **permuted)

    source = f"{_HUANG}, section 4"
    for model in ("huang_absolute", "shaw", "huang1", "huang2", "huang3", "huang4"):
        add(
            model,
            f"{model}_base",
            source,
            objective="masked_lm",
            masking="whole_word",
            tokenizer_kind="wordpiece",
            vocabulary_size=30_000,
            sequence_length=512,
            batch_size=160,
            learning_rate=1e-4,
        )

    for name, preset, heads in (
        ("roberta_1seq", "bert_base", None),
        ("blockbert_n2", "blockbert_n2_base", "9:3"),
        ("blockbert_n3", "blockbert_n3_base", "8:2:2"),
        ("sparsebert", "sparsebert_base", None),
    ):
        for length, batch_size, end in ((512, 256, ""), (1024, 128, "_1024")):
            blocks = {"name": "blockwise", "head_blocks": heads}
            settings = {
                "objective": "masked_lm",
                "tokenizer_kind": "wordpiece",
                "vocabulary_size": 30_522,
                "sequence_length": length,
                "cross_documents": False,
                "batch_size": batch_size,
                "steps": 2_400_000,
                "learning_rate": 2.5e-4,
                "warmup_steps": 10_000,
                "weight_decay": 0.01,
                "global_clipnorm": 1.0,
                "dropout": 0.1,
                "attention_dropout": 0.1,
                "dtype": "mixed_float16",
                **_adam(1e-8),
            }
            if heads and length == 1024:
                settings["override"] = {"attention": blocks}
            source = f"{_BLOCKBERT}, tables 2 and 6, sections 2.3 and 4.1"
            add(name + end, preset, source, **settings)

    for size, batch_size, rate, ratio in (
        ("small", 128, 3e-4, 1 / 4),
        ("medium_small", 128, 5e-4, 1 / 4),
        ("base", 256, 2e-4, 1 / 3),
    ):
        source = f"{_CONVBERT}, sections 4.1 and 6.2, table 5; no bias correction"
        settings = {
            "objective": "replaced_token",
            "generator_ratio": ratio,
            "tokenizer_kind": "wordpiece",  # As ELECTRA.
            "vocabulary_size": 30_522,
            "batch_size": batch_size,
            "learning_rate": rate,
            "warmup_steps": 10_000,
            "dropout": 0.1,
            "bias_correction": False,
            **_adam(1e-6),
        }
        preset = f"convbert_{size}"
        short = {"sequence_length": 128, "steps": 1_000_000}
        add(preset, preset, source, **settings, **short)
        # "for the 10% more updates before fine-tuning it for task with longer context"
        longer = {"sequence_length": 512, "steps": 100_000}
        add(f"{preset}_512", preset, source, continues=True, **settings, **longer)

    for size in ("base", "large", "xlarge", "xxlarge"):
        add(
            f"albert_{size}",
            f"albert_{size}",
            f"{_ALBERT}, sections 3.1 and 4.1, but for LAMB with its rate and batches",
            objective="sentence_order",
            masking="ngram",
            vocabulary_size=30_000,
            sequence_length=512,
            dropout=0.0,
        )
    return found


def _finetuning():
    """The configurations of `tfeff finetune` and `tfeff answer`."""
    accuracy, f1, spearman = ({"metric": m} for m in ("accuracy", "f1", "spearman"))
    matthews = {"metric": "matthews_correlation"}
    # No clipping: section 5.2 names Adam, a batch size and rates, and nothing else.
    shatter = {
        "batch_sizes": (16,),
        "learning_rates": (1e-5,),
        "global_clipnorm": None,
        "eval_every": 1000,
    }
    low = {"learning_rates": (5e-6,)}
    convbert = {
        "batch_sizes": (32,),
        "learning_rates": (5e-5, 1e-4, 2e-4, 3e-4),
        "weight_decay": (0.01, 0.1),
        "warmup": 0.1,
        "layer_decay": 0.8,
        "dropout": 0.1,
        "bias_correction": False,
        **_adam(1e-6),
    }
    blockbert = {
        "batch_sizes": (16, 32),
        "learning_rates": (5e-6, 1e-5, 2e-5, 3e-5, 5e-5),
        "epochs": (4,),
        "sequence_length": None,
        "stride": 128,
    }
    halves = {"dev_split": "dev_half", "predict_split": "test_half"}
    squad1, squad2 = "SQuAD1.1", "SQuAD2.0"
    mrqa = ("SearchQA", "TriviaQA", "NewsQA", "NaturalQuestions", "HotpotQA")
    return [
        Configuration(
            "shatter_finetune_glue",
            "finetune",
            f"{_SHATTER}, sections 3.4 and 5.2, table 2",
            {"pooling": "layerwise", **shatter},
            {
                "CoLA": low | accuracy,
                "SST-2": low | accuracy,
                "MRPC": f1,
                "QQP": f1,
                "STS-B": spearman,
                "MNLI": accuracy,
                "QNLI": accuracy,
                "RTE": accuracy,
            },
        ),
        Configuration(
            "shatter_finetune_superglue",
            "finetune",
            f"{_SHATTER}, sections 3.4 and 5.2, tables 4 and 5",
            {"pooling": "layerwise", **shatter},
            {"BoolQ": accuracy, "MultiRC": accuracy},
        ),
        Configuration(
            "shatter_finetune_squad",
            "answer",
            f"{_SHATTER}, section 5.2, table 3",
            {**shatter, "sequence_length": None},  # As pretrained: "256-l", "512-l".
            {squad1: {}},
        ),
        Configuration(
            "bert_finetune_conll",
            "finetune",
            f"{_BERT}, sections 5.3 and A.3",
            {
                "batch_sizes": (16, 32),
                "learning_rates": (5e-5, 3e-5, 2e-5),
                "epochs": (2.0, 3.0, 4.0),
                "dropout": 0.1,
            },
            {"CoNLL-2003": f1},
        ),
        Configuration(
            "huang_finetune_glue",
            "finetune",
            f"{_HUANG}, section 4.2",
            {"batch_sizes": (32,), "learning_rates": (3e-5,), "epochs": (3.0,)},
            {"MNLI": accuracy, "QQP": f1, "SST-2": accuracy, "MRPC": f1},
        ),
        Configuration(
            "huang_finetune_squad",
            "answer",
            f"{_HUANG}, section 4.3, table 4",
            {"sequence_length": 512},
            {squad1: {}},
        ),
        Configuration(
            "huang_large_finetune_squad",
            "answer",
            f"{_HUANG}, section 4.4, table 5",
            {
                "swap_positions": "huang4",
                "sequence_length": 512,
                "learning_rates": (5e-5,),
                "epochs": (3,),
            },
            {squad1: {}},
        ),
        Configuration(
            "blockbert_finetune_squad",
            "answer",
            f"{_BLOCKBERT}, sections 4.2 and A.4",
            blockbert,
            {squad1: {}, squad2: {}},
        ),
        Configuration(
            "blockbert_finetune_mrqa",
            "answer",
            f"{_BLOCKBERT}, sections 4.2 and A.4",
            blockbert | halves,
            dict.fromkeys(mrqa, {}),
        ),
        Configuration(
            "convbert_finetune_glue",
            "finetune",
            f"{_CONVBERT}, sections 4.2 and 6.3, table 6; MRPC's metric as ELECTRA",
            {**convbert, "epochs": (3.0, 10.0)},
            {
                "CoLA": matthews,
                "SST-2": accuracy,
                "MRPC": accuracy,
                "QQP": accuracy,
                "STS-B": spearman,
                "MNLI": accuracy,
                "QNLI": accuracy,
                "RTE": accuracy,
            },
        ),
        Configuration(
            "convbert_finetune_squad",
            "answer",
            f"{_CONVBERT}, sections 6.2 and 6.3, table 6",
            {**convbert, "epochs": (3, 10), "sequence_length": 512},
            {squad1: {}, squad2: {}},
        ),
    ]


CONFIGURATIONS = {c.name: c for c in (*_pretraining(), *_finetuning())}
