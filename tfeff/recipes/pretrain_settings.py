"""Settings of pretraining."""

from typing import Any, ClassVar

from tfeff.recipes.corpus_settings import CorpusSettings
from tfeff.recipes.fields import setting
from tfeff.recipes.optimizer_settings import OptimizerSettings
from tfeff.recipes.settings import DTYPES, RECOMPUTED, settings
from tfeff.utils.checks import MAX_SEED

# Peak rates: that for new weights would undo those of a checkpoint.
RATE = 2e-3
RATE_OF_PRETRAINED = 5e-5
OBJECTIVE = (
    "mask_rate",
    "masking",
    "mask_share",
    "random_share",
    "masked_lm",
    "generator_ratio",
    "generator_override",
)


@settings
class PretrainSettings(CorpusSettings, OptimizerSettings):
    """Pretrains any encoder by any of the papers' objectives, on any text.

    Without further settings it pretrains a small Shatter on the documentation strings
    of the installed packages. To pretrain the papers' models with their authors'
    settings (`tfeff configs` lists all), on your own text and every GPU of the machine:

        tfeff pretrain --config=shatter_base --run_dir=runs/shatter \\
            --corpus='corpus/*.txt' --eval_every=10000 --strategy=mirrored
        tfeff pretrain --config=convbert_small --run_dir=runs/convbert \\
            --corpus='corpus/*.txt' --eval_every=10000 --dtype=mixed_bfloat16

    ALBERT's objective alone, with other settings:

        tfeff pretrain --run_dir=runs/albert --preset=albert_base \\
            --objective=sentence_order --masking=ngram

    Longer sequences for the last tenth of the updates, as ConvBERT's authors do before
    tasks of long texts; an encoder may be extended from any run or preset:

        tfeff pretrain --config=convbert_small_512 --pretrained=runs/convbert \\
            --corpus='corpus/*.txt' --run_dir=runs/convbert_512

    A run that was stopped resumes when it is started again with the same settings. The
    run directory holds the configuration, tokenizer, token caches, checkpoints,
    metrics, curves and, at the end, `metrics.json`: those of the validation text,
    `preset/`: the encoder with its tokenizer, and `export/`: a SavedModel that takes
    text.
    """

    command = "pretrain"
    recipe = "pretrain"
    # A setting of `StackSettings` alone: others have it from `preset` and `override`.
    num_layers: ClassVar[Any] = None

    run_dir: str = setting("Folder or URL of the run.", fixed=False)
    preset: str = setting("A name of tfeff.encoders.presets().", "shatter_tiny")
    pretrained: str | None = setting(
        "A preset, a run or RUN@STEP, whose encoder, tokenizer and heads to start "
        "from. Heads that the objective has and it lacks are new, and so are all after "
        "a run of another objective.",
        None,
    )
    swap_positions: str | None = setting(
        "A method of relative positions, such as huang4, to put in place of the "
        "pretrained absolute ones; default: none.",
        None,
    )
    override: dict[str, object] = setting(
        "Arguments of Encoder to replace the preset's, as JSON.", {}
    )
    cache_dir: str | None = setting(
        "Folder that tfeff cache wrote, in place of a corpus and a tokenizer; the "
        "sequence length must be the cache's. Default: none.",
        None,
        by_content=True,
    )
    objective: str = setting(
        "The objective: masked_lm, replaced_token, permutation_lm, sentence_order, "
        "next_sentence, or one that a module of --import registers.",
        "masked_lm",
    )
    mask_rate: float | None = setting(
        "Share of tokens to predict; by default the objective's: 0.15, of "
        "permutation_lm a sixth.",
        None,
        above=0.0,
        maximum=1.0,
    )
    masking: str = setting(
        "Unit of tokens that are masked together.",
        "token",
        choices=["token", "whole_word", "ngram"],
    )
    mask_share: float | None = setting(
        "Share of [MASK] among the tokens to predict; by default the objective's.",
        None,
        minimum=0.0,
        maximum=1.0,
    )
    random_share: float | None = setting(
        "Share of random tokens among them; by default the objective's.",
        None,
        minimum=0.0,
        maximum=1.0,
    )
    masked_lm: bool = setting(
        "Whether to predict tokens beside sentence_order and next_sentence.", True
    )
    generator_ratio: float = setting(
        "Width of replaced_token's generator, as a ratio of the encoder's.",
        0.25,
        above=0.0,
        maximum=1.0,
    )
    generator_override: dict[str, object] = setting(
        "Like override, for replaced_token's generator.", {}
    )
    batch_size: int = setting("Sequences in a batch, over all replicas.", 16, minimum=1)
    steps: int = setting("Training steps, each an update.", 1000, minimum=1)
    eval_every: int | None = setting(
        "Steps between validations and checkpoints, which divide the steps; default: "
        "the largest divisor up to 200.",
        None,
        minimum=1,
    )
    patience: int | None = setting(
        "Validations in a row without a new lowest loss after which the training ends, "
        "with the weights that it has; by default none.",
        None,
        minimum=1,
    )
    learning_rate: float | None = setting(
        f"Peak learning rate; by default {RATE:g}, which suits small new models, or "
        f"{RATE_OF_PRETRAINED:g} with pretrained.",
        None,
        above=0.0,
    )
    warmup_steps: int | None = setting(
        "Steps in which the learning rate rises to its peak; by default 100, or a "
        "fifth of all if that is fewer.",
        None,
        minimum=0,
    )
    weight_decay: float = setting(
        "Weight decay of all weights but biases and norms.", 0.01, minimum=0.0
    )
    dropout: float | None = setting(
        "The encoder's dropout rate; default: the preset's.",
        None,
        minimum=0.0,
        below=1.0,
    )
    attention_dropout: float | None = setting(
        "The dropout rate of attention scores; default: the preset's.",
        None,
        minimum=0.0,
        below=1.0,
    )
    seed: int = setting(
        "Seed of weights, order, masks and dropout.", 0, minimum=0, maximum=MAX_SEED
    )
    dtype: str = setting("Precision.", "float32", choices=DTYPES)
    memory_efficient: str | None = setting(
        "What the backward pass recomputes, to save memory: whole blocks, or scores of "
        "attentions; default: nothing, or as pretrained.",
        None,
        choices=RECOMPUTED,
    )
    strategy: str = setting(
        "Where to train: on one device, on all GPUs of this machine (mirrored), on the "
        "machines of TF_CONFIG (multi_worker, with one run_dir), or on a TPU.",
        "default",
        choices=["default", "mirrored", "multi_worker", "tpu"],
        fixed=False,
    )
    steps_per_execution: int = setting(
        "Training steps in one call of the compiled function.", 1, minimum=1
    )
    jit_compile: bool = setting("Whether to compile the step with XLA.", False)
    keep_checkpoints: int = setting(
        "How many of the newest checkpoints to keep.", 2, minimum=1, fixed=False
    )
    keep_steps: tuple[int, ...] = setting(
        "Steps whose checkpoints are kept beside those, for --pretrained=RUN@STEP, by "
        "all starts of the run; default: none.",
        (),
        minimum=1,
    )

    @property
    def peak_rate(self) -> float:
        """The learning rate, or its default."""
        default = RATE_OF_PRETRAINED if self.pretrained else RATE
        return default if self.learning_rate is None else self.learning_rate
