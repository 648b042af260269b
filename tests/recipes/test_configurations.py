"""The named configurations against the values that the papers print."""

import json

import pytest

import tfeff
from tfeff.recipes import (
    AnswerSettings,
    FinetuneSettings,
    PretrainSettings,
    pretrain,
)
from tfeff.recipes.configurations import CONFIGURATIONS, find
from tfeff.recipes.stack_settings import StackSettings

# Written from the papers. Shatter, table 1 and A.2: 15 % of 32k pieces, Adam with a
# decay of 0.01 and a rate of 1e-4, 10k steps of warm-up.
SHATTER = dict(
    vocabulary_size=32_000,
    mask_rate=0.15,
    learning_rate=1e-4,
    warmup_steps=10_000,
    weight_decay=0.01,
    objective="masked_lm",
    tokenizer_kind="sentencepiece",
)
# Table 6 of BlockBERT.
BLOCKBERT = dict(
    vocabulary_size=30_522,
    dropout=0.1,
    attention_dropout=0.1,
    tokenizer_kind="wordpiece",
    warmup_steps=10_000,
    weight_decay=0.01,
    steps=2_400_000,
    learning_rate=0.00025,
    epsilon=1e-8,
    beta_1=0.9,
    beta_2=0.999,
    global_clipnorm=1.0,
    objective="masked_lm",
    dtype="mixed_float16",
)
# Table 5 of ConvBERT.
CONVBERT = dict(
    warmup_steps=10_000,
    epsilon=1e-6,
    beta_1=0.9,
    beta_2=0.999,
    dropout=0.1,
    tokenizer_kind="wordpiece",
    objective="replaced_token",
    bias_correction=False,
)
CONVBERT_SIZES = {
    "small": dict(batch_size=128, learning_rate=3e-4, generator_ratio=1 / 4),
    "medium_small": dict(batch_size=128, learning_rate=5e-4, generator_ratio=1 / 4),
    "base": dict(batch_size=256, learning_rate=2e-4, generator_ratio=1 / 3),
}
# Section 4 of Huang et al.
HUANG = dict(
    sequence_length=512,
    vocabulary_size=30_000,
    tokenizer_kind="wordpiece",
    masking="whole_word",
    batch_size=160,
    learning_rate=1e-4,
)
ALBERT = dict(
    objective="sentence_order", masking="ngram", vocabulary_size=30_000, dropout=0.0
)
GPU = dict(batch_size=128, sequence_length=256, steps=1_600_000)
BASE = dict(batch_size=256, sequence_length=512, steps=1_000_000)
LARGE = dict(batch_size=1024, sequence_length=512, steps=1_000_000)
SHORT = dict(sequence_length=512, batch_size=256)
LONG = dict(sequence_length=1024, batch_size=128)
PRETRAINING = {
    "shatter_gpu": ("shatter_base", SHATTER | GPU),
    "bert_gpu": ("bert_base", SHATTER | GPU),
    "shatter_base": ("shatter_base", SHATTER | BASE),
    "bert_base": ("bert_base", SHATTER | BASE),
    "bert_rpe_base": ("bert_rpe_base", SHATTER | BASE),
    "bert_rab_base": ("bert_rab_base", SHATTER | BASE),
    "xlnet_base": (
        "xlnet_base",
        SHATTER | BASE | dict(objective="permutation_lm", mask_rate=None),
    ),
    "no_position_base": ("no_position_base", SHATTER | BASE),
    "part_mask_base": ("part_mask_base", SHATTER | BASE),
    "one_head_softmax_base": ("one_head_softmax_base", SHATTER | BASE),
    "one_head_sigmoid_base": ("one_head_sigmoid_base", SHATTER | BASE),
    "part_bias_base": ("part_bias_base", SHATTER | BASE),
    "shatter_large": ("shatter_large", SHATTER | LARGE),
    "bert_large": ("bert_large", SHATTER | LARGE),
    "huang_absolute": ("huang_absolute_base", HUANG),
    "shaw": ("shaw_base", HUANG),
    **{f"huang{n}": (f"huang{n}_base", HUANG) for n in (1, 2, 3, 4)},
    "roberta_1seq": ("bert_base", BLOCKBERT | SHORT),
    "roberta_1seq_1024": ("bert_base", BLOCKBERT | LONG),
    "blockbert_n2": ("blockbert_n2_base", BLOCKBERT | SHORT),
    "blockbert_n2_1024": ("blockbert_n2_base", BLOCKBERT | LONG),
    "blockbert_n3": ("blockbert_n3_base", BLOCKBERT | SHORT),
    "blockbert_n3_1024": ("blockbert_n3_base", BLOCKBERT | LONG),
    "sparsebert": ("sparsebert_base", BLOCKBERT | SHORT),
    "sparsebert_1024": ("sparsebert_base", BLOCKBERT | LONG),
    **{
        f"convbert_{size}": (
            f"convbert_{size}",
            CONVBERT | settings | dict(sequence_length=128, steps=1_000_000),
        )
        for size, settings in CONVBERT_SIZES.items()
    },
    **{
        f"albert_{size}": (f"albert_{size}", ALBERT)
        for size in ("base", "large", "xlarge", "xxlarge")
    },
}
# Section 6.2 of ConvBERT: "512 for the 10% more updates".
CONTINUED = {
    f"convbert_{size}_512": CONVBERT
    | settings
    | dict(sequence_length=512, steps=100_000)
    for size, settings in CONVBERT_SIZES.items()
}
# Section 5.2 of Shatter, with the metrics of table 2's columns of the dev sets.
SHATTER_TASK = dict(
    batch_sizes=(16,),
    learning_rates=(1e-5,),
    eval_every=1000,
    global_clipnorm=None,
    weight_decay=(0.01,),
)
HEAD = SHATTER_TASK | dict(pooling="layerwise")
LOW = dict(learning_rates=(5e-6,))
# Table 6 and section 6.3 of ConvBERT.
CONVBERT_TASK = dict(
    learning_rates=(5e-5, 1e-4, 2e-4, 3e-4),
    weight_decay=(0.01, 0.1),
    epochs=(3, 10),
    epsilon=1e-6,
    beta_1=0.9,
    beta_2=0.999,
    layer_decay=0.8,
    warmup=0.1,
    dropout=0.1,
    batch_sizes=(32,),
)
# Section 4.2 of Huang et al.
HUANG_TASK = dict(batch_sizes=(32,), epochs=(3.0,), learning_rates=(3e-5,))
# Section A.4 of BlockBERT.
BLOCKBERT_TASK = dict(
    sequence_length=None,
    stride=128,
    learning_rates=(5e-6, 1e-5, 2e-5, 3e-5, 5e-5),
    batch_sizes=(16, 32),
    epochs=(4,),
)
TEXTS = {
    ("shatter_finetune_glue", "CoLA"): HEAD | LOW | dict(metric="accuracy"),
    ("shatter_finetune_glue", "SST-2"): HEAD | LOW | dict(metric="accuracy"),
    ("shatter_finetune_glue", "MRPC"): HEAD | dict(metric="f1"),
    ("shatter_finetune_glue", "QQP"): HEAD | dict(metric="f1"),
    ("shatter_finetune_glue", "STS-B"): HEAD | dict(metric="spearman"),
    ("shatter_finetune_glue", "MNLI"): HEAD | dict(metric="accuracy"),
    ("shatter_finetune_glue", "QNLI"): HEAD | dict(metric="accuracy"),
    ("shatter_finetune_glue", "RTE"): HEAD | dict(metric="accuracy"),
    ("shatter_finetune_superglue", "BoolQ"): HEAD | dict(metric="accuracy"),
    ("shatter_finetune_superglue", "MultiRC"): HEAD | dict(metric="accuracy"),
    # Section A.3 of BERT, for 5.3.
    ("bert_finetune_conll", "CoNLL-2003"): dict(
        batch_sizes=(16, 32),
        learning_rates=(5e-5, 3e-5, 2e-5),
        epochs=(2, 3, 4),
        dropout=0.1,
        metric="f1",
    ),
    ("huang_finetune_glue", "MNLI"): HUANG_TASK | dict(metric="accuracy"),
    ("huang_finetune_glue", "QQP"): HUANG_TASK | dict(metric="f1"),
    ("huang_finetune_glue", "SST-2"): HUANG_TASK | dict(metric="accuracy"),
    ("huang_finetune_glue", "MRPC"): HUANG_TASK | dict(metric="f1"),
    ("convbert_finetune_glue", "CoLA"): CONVBERT_TASK
    | dict(metric="matthews_correlation"),
    ("convbert_finetune_glue", "STS-B"): CONVBERT_TASK | dict(metric="spearman"),
    **{
        ("convbert_finetune_glue", task): CONVBERT_TASK | dict(metric="accuracy")
        for task in ("SST-2", "MRPC", "QQP", "MNLI", "QNLI", "RTE")
    },
}
QUESTIONS = {
    ("shatter_finetune_squad", "SQuAD1.1"): SHATTER_TASK | dict(sequence_length=None),
    ("huang_finetune_squad", "SQuAD1.1"): dict(sequence_length=512),
    ("huang_large_finetune_squad", "SQuAD1.1"): dict(
        swap_positions="huang4",
        sequence_length=512,
        learning_rates=(5e-5,),
        epochs=(3,),
    ),
    ("blockbert_finetune_squad", "SQuAD1.1"): BLOCKBERT_TASK,
    ("blockbert_finetune_squad", "SQuAD2.0"): BLOCKBERT_TASK,
    ("convbert_finetune_squad", "SQuAD1.1"): CONVBERT_TASK,
    ("convbert_finetune_squad", "SQuAD2.0"): CONVBERT_TASK,
    **{
        ("blockbert_finetune_mrqa", task): BLOCKBERT_TASK
        | dict(dev_split="dev_half", predict_split="test_half")
        for task in ("SearchQA", "TriviaQA", "NewsQA", "NaturalQuestions", "HotpotQA")
    },
}
OF_TEXTS = dict(run_dir="run", data="glue", pretrained="mlm")
OF_QUESTIONS = dict(run_dir="run", train="qa", dev="qa", pretrained="mlm")


def check(settings, expected):
    assert {name: getattr(settings, name) for name in expected} == expected


@pytest.mark.parametrize("name", PRETRAINING)
def test_pretraining_as_printed(name):
    preset, expected = PRETRAINING[name]
    settings = PretrainSettings.named(name, run_dir="run")
    check(settings, expected | {"preset": preset})
    assert settings == PretrainSettings.named(f"{name}_pretrain", run_dir="run")
    assert preset in tfeff.encoders.presets()
    tfeff.recipes.pretraining.settle(settings)  # They fit each other.


@pytest.mark.parametrize("name", CONTINUED)
def test_continued_pretraining_as_printed(name):
    settings = PretrainSettings.named(name, run_dir="run", pretrained="runs/first")
    # The run has its tokenizer: the setting, of those to train, is at its default.
    of_run = {"pretrained": "runs/first", "tokenizer_kind": "sentencepiece"}
    check(settings, CONTINUED[name] | of_run)
    tfeff.recipes.pretraining.settle(settings)  # The encoder has its own sizes.
    with pytest.raises(ValueError, match="`pretrained` must be given .*=None"):
        PretrainSettings.named(name, run_dir="run")


@pytest.mark.parametrize(("name", "task"), TEXTS)
def test_fine_tuning_on_texts_as_printed(name, task):
    settings = FinetuneSettings.named(name, task=task, **OF_TEXTS)
    check(settings, TEXTS[name, task] | {"task": task})
    assert settings.metric in tfeff.datasets.get(task).metric_names


@pytest.mark.parametrize(("name", "task"), QUESTIONS)
def test_fine_tuning_on_questions_as_printed(name, task):
    settings = AnswerSettings.named(name, task=task, **OF_QUESTIONS)
    check(settings, QUESTIONS[name, task] | {"task": task})
    splits = tfeff.datasets.get(task).splits
    assert {settings.dev_split, settings.predict_split} <= {None, *splits}


def test_every_configuration_is_checked_and_says_its_source():
    tested = {f"{name}_pretrain" for name in (*PRETRAINING, *CONTINUED)}
    tested |= {name for name, _ in (*TEXTS, *QUESTIONS)}
    assert tested == set(CONFIGURATIONS)
    of_tasks = {(c.name, task) for c in CONFIGURATIONS.values() for task in c.by_task}
    assert of_tasks == {*TEXTS, *QUESTIONS}
    for name, configuration in CONFIGURATIONS.items():
        assert configuration.name == name and " et al., 20" in configuration.source


def test_blocks_at_1024_are_those_of_table_2():
    settings = PretrainSettings.named("blockbert_n2_1024", run_dir="run")
    attention = {"name": "blockwise", "head_blocks": "9:3"}
    assert settings.override == {"attention": attention}
    larger = PretrainSettings.named(
        "blockbert_n2_1024", run_dir="run", override={"num_layers": 2}
    )
    assert larger.override == {"attention": attention, "num_layers": 2}
    of_presets = {
        name: tfeff.encoders.presets()[name]["config"]["attention"]["head_blocks"]
        for name in ("blockbert_n2_base", "blockbert_n3_base")
    }
    assert of_presets == {"blockbert_n2_base": "10:2", "blockbert_n3_base": "8:2:2"}


def test_given_settings_replace_those_of_the_paper():
    settings = PretrainSettings.named("shatter_base", run_dir="run", steps=20_000)
    assert (settings.steps, settings.batch_size) == (20_000, 256)
    alike = PretrainSettings(
        run_dir="run", preset="shatter_base", **SHATTER | BASE | {"steps": 20_000}
    )
    assert settings.config() == alike.config()  # A run goes on with either.
    stacked = StackSettings.named("bert_base", run_dir="run", num_layers=12)
    assert (stacked.preset, stacked.learning_rate) == ("bert_base", 1e-4)
    own = PretrainSettings.named("shaw", run_dir="run", tokenizer="own.spm")
    assert own.tokenizer_kind == "sentencepiece"  # The file says which it is.
    for configuration in CONFIGURATIONS.values():
        if configuration.recipe == "pretrain" and not configuration.continues:
            cached = PretrainSettings.named(
                configuration.name, run_dir="run", cache_dir="caches"
            )
            tfeff.recipes.pretraining.settle(cached)  # So does the cache.
    default = AnswerSettings.named("shatter_finetune_squad", **OF_QUESTIONS)
    assert default.task == "squad1"  # That of the recipe, another name of SQuAD1.1.


@pytest.mark.parametrize(
    ("cls", "name", "given", "message"),
    [
        (PretrainSettings, "shatter_bse", {}, "Did you mean 'shatter_base_pretrain'"),
        (PretrainSettings, "weather", {}, "config='weather'.$"),
        (FinetuneSettings, "shatter_base", {}, "which is of `tfeff pretrain`"),
        (AnswerSettings, "huang_finetune_glue", {}, "which is of `tfeff finetune`"),
        (FinetuneSettings, "huang_finetune_glue", {}, "`task` must .* task=None"),
        (FinetuneSettings, "huang_finetune_glue", {"task": "QNLI"}, "mean 'MNLI'"),
        (AnswerSettings, "blockbert_finetune_mrqa", {}, "`task` .*task='squad1'"),
        (PretrainSettings, "shaw", {"preset": "bert_base"}, "must be 'shaw_base'"),
        (tfeff.recipes.EvaluateSettings, "shaw", {}, "has no configurations"),
    ],
)
def test_other_recipes_tasks_and_presets_are_refused(cls, name, given, message):
    with pytest.raises(ValueError, match=message):
        cls.named(name, run_dir="run", **given)


@pytest.mark.parametrize(
    ("recipe", "name", "same"),
    [
        ("answer", "blockbert_n2_finetune_squad", "blockbert_finetune_squad"),
        ("finetune", "convbert_small_finetune_glue", "convbert_finetune_glue"),
        ("finetune", "shatter_large_finetune_glue", "shatter_finetune_glue"),
    ],
)
def test_fine_tuning_of_one_encoder_is_that_of_all(recipe, name, same):
    assert find(recipe, name) is CONFIGURATIONS[same]
    with pytest.raises(ValueError, match="`config` must be one of"):
        find(recipe, name.replace("_finetune", "_4_finetune"))


def test_a_name_that_is_none_is_named():
    with pytest.raises(TypeError, match="`config` must be a name. .*config=3"):
        PretrainSettings.named(3, run_dir="run")


@pytest.mark.slow
def test_a_run_by_a_name_goes_on_by_its_settings(tmp_path):
    """BlockBERT's optimizer on a very small encoder."""
    small = dict(
        run_dir=str(tmp_path / "run"),
        max_characters=500_000,
        vocabulary_size=300,
        sequence_length=32,
        batch_size=4,
        steps=4,
        warmup_steps=1,
        dtype="float32",
        override={"num_layers": 1, "hidden_dim": 24, "intermediate_dim": 24},
    )
    named = PretrainSettings.named("blockbert_n2", dropout=0.2, **small)
    model = pretrain(named)
    optimizer = model.optimizer
    assert (optimizer.epsilon, optimizer.beta_2) == (1e-8, 0.999)
    assert (optimizer.global_clipnorm, optimizer.bias_correction) == (1.0, True)
    assert model.encoder.dropout == 0.2
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert (config["learning_rate"], config["epsilon"]) == (0.00025, 1e-8)
    written = BLOCKBERT | {"preset": "blockbert_n2_base", "dropout": 0.2} | small
    again = pretrain(PretrainSettings(**written))  # At its end: nothing is trained.
    assert again.optimizer.iterations == 4
