"""Settings of sentence embeddings."""

from typing import Any, ClassVar

from tfeff.recipes.fields import setting
from tfeff.recipes.settings import settings
from tfeff.recipes.tuning_settings import TuningSettings

# The settings that matter without `examples`; all others are of training.
OF_SCORING = (
    *("run_dir", "pretrained", "swap_positions", "dtype", "task", "data", "split"),
    *("pooling", "sequence_length"),
)


@settings
class EmbedSettings(TuningSettings):
    """Trains, scores and serves sentence embeddings of a pretrained encoder.

    Embeddings are trained by contrast within the batch: each text's partner must be
    nearer to it, by cosine, than the partners of the other texts. With texts alone,
    one a line, the partner is the text itself under another dropout mask (SimCSE):

        tfeff embed --run_dir=runs/simcse --pretrained=runs/shatter \\
            --examples=texts.txt --dropout=0.1 --task=STS-B --data=glue

    With pairs of texts that mean the same, and triplets with a hard negative, as
    sentence-transformers has them (`anchor`, `positive` and `negative`, columns of a
    `.tsv` file or fields of a `.jsonl` file):

        tfeff embed --run_dir=runs/pairs --pretrained=runs/shatter \\
            --examples=pairs.tsv --task=STS-B --data=glue

    Scores are the correlations of cosines with the ratings of pairs of texts, such as
    STS-B's. Those of the encoder before training are printed first; without
    `examples` nothing is trained, these are all, and settings of training are refused:

        tfeff embed --run_dir=runs/mean --pretrained=runs/shatter --task=STS-B \\
            --data=glue --pooling=mean

    Grids of rates and seeds, and what a run leaves, are as of `tfeff finetune`:
    `metrics.json` and `summary.md`; `model.keras`, the best model; `preset/`, the same
    with the tokenizer for `tfeff.tasks.load_task`; and `export/`, which takes text and
    gives `sentence_embeddings`.
    """

    command = "embed"

    # No settings here: the texts of a batch are contrasted with each other, so that it
    # is not divided, and nothing is drawn.
    accumulation_steps: ClassVar[Any] = 1  # type: ignore[misc]
    plots: ClassVar[Any] = False  # type: ignore[misc]

    run_dir: str = setting("Folder or URL of the run.", fixed=False)
    examples: str | None = setting(
        "A file of texts, pairs or triplets; default: none, nothing is trained.",
        None,
        by_content=True,
    )
    task: str = setting(
        "A data set of pairs with ratings to score by; or one that data describes.",
        "STS-B",
    )
    data: str = setting(
        "Folder of the benchmark's files; for your own data, the one that has TASK/, "
        "with dataset.json and its tables.",
        by_content=True,
    )
    split: str = setting("The part of the task to score by.", "dev")
    pooling: str = setting(
        "How a text's hidden states are pooled into its embedding.",
        "mean",
        choices=("mean", "cls", "last", "layerwise"),
    )
    temperature: float = setting(
        "Cosines are divided by it in the loss.", 0.05, above=0.0
    )
    sequence_length: int | None = setting(
        "Tokens of a text; default: as pretrained.", None, minimum=3
    )
    batch_sizes: tuple[int, ...] = setting("Batch sizes to try.", (64,), minimum=1)
    epochs: tuple[float, ...] = setting(
        "Passes over the examples to try.", (1.0,), above=0.0
    )
    eval_every: int = setting("Steps between evaluations.", 125, minimum=1)
    metric: str = setting("The metric that selects the best model.", "spearman")
    train_examples: int | None = setting(
        "Train on a sample of N examples, the same for all seeds; default: all.",
        None,
        minimum=1,
    )
