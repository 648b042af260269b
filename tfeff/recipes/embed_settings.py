"""Settings of sentence embeddings."""

from typing import ClassVar

from tfeff.recipes.optimizer_settings import TuningSettings
from tfeff.recipes.settings import MAX_SEED, setting, settings


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
    `examples` nothing is trained, and these are all:

        tfeff embed --run_dir=runs/mean --pretrained=runs/shatter --task=STS-B \\
            --data=glue --pooling=mean

    Grids of rates and seeds, and what a run leaves, are as of `tfeff finetune`:
    `metrics.json` and `summary.md`; `model.keras`, the best model; `preset/`, the same
    with the tokenizer for `tfeff.tasks.load_task`; and `export/`, which takes text and
    gives `sentence_embeddings`.
    """

    # The texts of a batch are contrasted with each other: it is not divided.
    accumulation_steps: ClassVar[int] = 1

    run_dir: str = setting("Folder or URL of the run.", fixed=False)
    examples: str | None = setting(
        "A file of texts, pairs or triplets; default: none, nothing is trained.", None
    )
    task: str = setting("A data set of pairs with ratings to score by.", "STS-B")
    data: str = setting("Folder of the benchmark's files.")
    split: str = setting("The part of it to score by.", "dev")
    pooling: str = setting(
        "What of a text's hidden states is its embedding.",
        "mean",
        choices=("mean", "cls", "layerwise"),
    )
    temperature: float = setting(
        "Cosines are divided by it in the loss.", 0.05, above=0.0
    )
    sequence_length: int | None = setting(
        "Tokens of a text; default: as pretrained.", None, minimum=3
    )
    batch_sizes: tuple[int, ...] = setting("Batch sizes to try.", (64,), minimum=1)
    seeds: tuple[int, ...] = setting(
        "Seeds of order and dropout.", (0,), minimum=0, maximum=MAX_SEED
    )
    epochs: tuple[float, ...] = setting(
        "Passes over the examples to try.", (1.0,), above=0.0
    )
    steps: int | None = setting(
        "Steps, each an update, instead of `epochs`.", None, minimum=1
    )
    eval_every: int = setting("Steps between evaluations.", 125, minimum=1)
    metric: str = setting("The metric that tells the best.", "spearman")
    dropout: float | None = setting(
        "The encoder's rate; default: as pretrained.", None, minimum=0.0, below=1.0
    )
    train_examples: int | None = setting(
        "Train on a sample of so many; default: on all.", None, minimum=1
    )
    strategy: str = setting(
        "Where to train.",
        "default",
        choices=("default", "mirrored", "tpu"),
        fixed=False,
    )
    tpu: str = setting("Name or address of the TPU.", "", fixed=False)

    def num_steps(self, num_examples: int, in_step: int, epochs: float) -> int:
        """The steps of a training on so many examples, so many in a step."""
        return self.steps or max(1, round(epochs * num_examples / in_step))
