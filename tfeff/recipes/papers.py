"""What each paper prints of its pretraining and fine-tuning, as configurations.

What a paper leaves open stays at the recipe's default. No library is imported, so that
the command's help need not wait for TensorFlow.
"""

from collections.abc import Iterator
from typing import Any

from tfeff.recipes.configuration import Configuration
from tfeff.utils.citations import ALBERT, BERT, BLOCKBERT, CONVBERT, HUANG, SHATTER

_ACCURACY, _F1, _MATTHEWS, _SPEARMAN = (
    {"metric": name} for name in ("accuracy", "f1", "matthews_correlation", "spearman")
)
_SQUAD1, _SQUAD2 = "SQuAD1.1", "SQuAD2.0"
_MRQA = ("SearchQA", "TriviaQA", "NewsQA", "NaturalQuestions", "HotpotQA")


def _pretraining(name, preset, source, continues=False, **settings):
    """A configuration of `tfeff pretrain`, named after a preset or a model."""
    settings = {"preset": preset, **settings}
    name = f"{name}_pretrain"
    return Configuration(name, "pretrain", source, settings, continues=continues)


def _adam(epsilon):
    """Adam's settings; all papers that print the betas have these."""
    return {"beta_1": 0.9, "beta_2": 0.999, "epsilon": epsilon}


def shatter() -> Iterator[Configuration]:
    """Tian et al., "Shatter", and the systems that it compares with."""
    pretrained = {
        "objective": "masked_lm",
        "mask_rate": 0.15,
        "vocabulary_size": 32_000,
        "learning_rate": 1e-4,
        "warmup_steps": 10_000,
        "weight_decay": 0.01,
    }
    source = f"{SHATTER}, table 1 and sections 5 and A.2"
    gpu = {"sequence_length": 256, "batch_size": 128, "steps": 1_600_000}
    base = {"sequence_length": 512, "batch_size": 256, "steps": 1_000_000}
    large = base | {"batch_size": 1024}
    for model in ("shatter", "bert"):
        yield _pretraining(f"{model}_gpu", f"{model}_base", source, **pretrained, **gpu)
        yield _pretraining(
            f"{model}_large", f"{model}_large", source, **pretrained, **large
        )
    for model in (
        *("shatter", "bert", "bert_rpe", "bert_rab", "no_position", "part_mask"),
        *("one_head_softmax", "one_head_sigmoid", "part_bias"),
    ):
        yield _pretraining(
            f"{model}_base", f"{model}_base", source, **pretrained, **base
        )
    permuted = pretrained | base | {"objective": "permutation_lm"}
    del permuted["mask_rate"]  # It is a setting of masked language modelling.
    yield _pretraining("xlnet_base", "xlnet_base", source, **permuted)
    # No clipping: section 5.2 names Adam, a batch size and rates, and nothing else.
    tuned: dict[str, Any] = {
        "batch_sizes": (16,),
        "learning_rates": (1e-5,),
        "global_clipnorm": None,
        "eval_every": 1000,
    }
    low: dict[str, Any] = {"learning_rates": (5e-6,)}
    yield Configuration(
        "shatter_finetune_glue",
        "finetune",
        f"{SHATTER}, sections 3.4 and 5.2, table 2",
        {"pooling": "layerwise", **tuned},
        {
            "CoLA": low | _ACCURACY,
            "SST-2": low | _ACCURACY,
            "MRPC": _F1,
            "QQP": _F1,
            "STS-B": _SPEARMAN,
            "MNLI": _ACCURACY,
            "QNLI": _ACCURACY,
            "RTE": _ACCURACY,
        },
    )
    yield Configuration(
        "shatter_finetune_superglue",
        "finetune",
        f"{SHATTER}, sections 3.4 and 5.2, tables 4 and 5",
        {"pooling": "layerwise", **tuned},
        {"BoolQ": _ACCURACY, "MultiRC": _ACCURACY},
    )
    yield Configuration(
        "shatter_finetune_squad",
        "answer",
        f"{SHATTER}, section 5.2, table 3",
        {**tuned, "sequence_length": None},  # As pretrained: "256-l", "512-l".
        {_SQUAD1: {}},
    )


def bert() -> Iterator[Configuration]:
    """Devlin et al., "BERT"."""
    yield Configuration(
        "bert_finetune_conll",
        "finetune",
        f"{BERT}, sections 5.3 and A.3",
        {
            "batch_sizes": (16, 32),
            "learning_rates": (5e-5, 3e-5, 2e-5),
            "epochs": (2.0, 3.0, 4.0),
            "dropout": 0.1,
        },
        {"CoNLL-2003": _F1},
    )


def huang() -> Iterator[Configuration]:
    """Huang et al., on relative positions."""
    source = f"{HUANG}, section 4"
    for model in ("huang_absolute", "shaw", "huang1", "huang2", "huang3", "huang4"):
        yield _pretraining(
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
    yield Configuration(
        "huang_finetune_glue",
        "finetune",
        f"{HUANG}, section 4.2",
        {"batch_sizes": (32,), "learning_rates": (3e-5,), "epochs": (3.0,)},
        {"MNLI": _ACCURACY, "QQP": _F1, "SST-2": _ACCURACY, "MRPC": _F1},
    )
    yield Configuration(
        "huang_finetune_squad",
        "answer",
        f"{HUANG}, section 4.3, table 4",
        {"sequence_length": 512},
        {_SQUAD1: {}},
    )
    yield Configuration(
        "huang_large_finetune_squad",
        "answer",
        f"{HUANG}, section 4.4, table 5",
        {
            "swap_positions": "huang4",
            "sequence_length": 512,
            "learning_rates": (5e-5,),
            "epochs": (3,),
        },
        {_SQUAD1: {}},
    )


def blockbert() -> Iterator[Configuration]:
    """Qiu et al., "BlockBERT"."""
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
            source = f"{BLOCKBERT}, tables 2 and 6, sections 2.3 and 4.1"
            yield _pretraining(name + end, preset, source, **settings)
    tuned: dict[str, Any] = {
        "batch_sizes": (16, 32),
        "learning_rates": (5e-6, 1e-5, 2e-5, 3e-5, 5e-5),
        "epochs": (4,),
        "sequence_length": None,
        "stride": 128,
    }
    halves = {"dev_split": "dev_half", "predict_split": "test_half"}
    yield Configuration(
        "blockbert_finetune_squad",
        "answer",
        f"{BLOCKBERT}, sections 4.2 and A.4",
        tuned,
        {_SQUAD1: {}, _SQUAD2: {}},
    )
    yield Configuration(
        "blockbert_finetune_mrqa",
        "answer",
        f"{BLOCKBERT}, sections 4.2 and A.4",
        tuned | halves,
        dict.fromkeys(_MRQA, {}),
    )


def convbert() -> Iterator[Configuration]:
    """Jiang et al., "ConvBERT"."""
    for size, batch_size, rate, ratio in (
        ("small", 128, 3e-4, 1 / 4),
        ("medium_small", 128, 5e-4, 1 / 4),
        ("base", 256, 2e-4, 1 / 3),
    ):
        source = f"{CONVBERT}, sections 4.1 and 6.2, table 5; no bias correction"
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
        yield _pretraining(preset, preset, source, **settings, **short)
        # "for the 10% more updates before fine-tuning it for task with longer context"
        longer = {"sequence_length": 512, "steps": 100_000}
        yield _pretraining(
            f"{preset}_512", preset, source, continues=True, **settings, **longer
        )
    tuned: dict[str, Any] = {
        "batch_sizes": (32,),
        "learning_rates": (5e-5, 1e-4, 2e-4, 3e-4),
        "weight_decay": (0.01, 0.1),
        "warmup": 0.1,
        "layer_decay": 0.8,
        "dropout": 0.1,
        "bias_correction": False,
        **_adam(1e-6),
    }
    yield Configuration(
        "convbert_finetune_glue",
        "finetune",
        f"{CONVBERT}, sections 4.2 and 6.3, table 6; MRPC's metric as ELECTRA",
        {**tuned, "epochs": (3.0, 10.0)},
        {
            "CoLA": _MATTHEWS,
            "SST-2": _ACCURACY,
            "MRPC": _ACCURACY,
            "QQP": _ACCURACY,
            "STS-B": _SPEARMAN,
            "MNLI": _ACCURACY,
            "QNLI": _ACCURACY,
            "RTE": _ACCURACY,
        },
    )
    yield Configuration(
        "convbert_finetune_squad",
        "answer",
        f"{CONVBERT}, sections 6.2 and 6.3, table 6",
        {**tuned, "epochs": (3, 10), "sequence_length": 512},
        {_SQUAD1: {}, _SQUAD2: {}},
    )


def albert() -> Iterator[Configuration]:
    """Lan et al., "ALBERT"."""
    for size in ("base", "large", "xlarge", "xxlarge"):
        yield _pretraining(
            f"albert_{size}",
            f"albert_{size}",
            f"{ALBERT}, sections 3.1 and 4.1, but for LAMB with its rate and batches",
            objective="sentence_order",
            masking="ngram",
            vocabulary_size=30_000,
            sequence_length=512,
            dropout=0.0,
        )
