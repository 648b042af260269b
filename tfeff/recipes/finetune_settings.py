"""Settings of fine-tuning to classify texts, to choose options or to label words."""

from tfeff.recipes.fields import setting
from tfeff.recipes.settings import POOLER_ACTIVATIONS, settings
from tfeff.recipes.tuning_settings import TuningSettings


@settings
class FinetuneSettings(TuningSettings):
    """Fine-tunes encoders to classify or rate texts, choose options, label words.

    A task is any data set of `tfeff.datasets.names()` but those of spans: GLUE's nine,
    BoolQ, MultiRC, RACE, and of words CoNLL-2003, CoNLL-2000, WikiANN, WNUT-17. As the
    papers' authors fine-tuned on a task:

        tfeff finetune --config=shatter_finetune_glue --task=CoLA --data=glue \\
            --pretrained=runs/shatter --run_dir=runs/cola

    A data set of one's own needs a file that describes it, own/Weather/dataset.json, as
    `tfeff.datasets.described_dataset` reads it, beside train.tsv, dev.tsv and test.tsv:

        {"texts": ["report"], "label": "sky", "label_names": ["dry", "wet"]}

        tfeff finetune --run_dir=runs/weather --task=Weather --data=own \\
            --pretrained=runs/shatter --predict_split=test

    Every rate, batch size, number of epochs, weight decay and seed has a folder of its
    own under `cells/`, with `dev_metrics.csv` and the best model of its training. So
    has every step of `pretrained_steps`; `tfeff.plots.score_curves` draws the scores of
    several runs over the steps:

        tfeff finetune --run_dir=runs/mnli --task=MNLI --data=glue \\
            --pretrained=runs/shatter --pretrained_steps=100000,200000,400000

    With `lora_rank` the encoder's weights are frozen. Small adapters of its queries and
    values train beside the head, and are merged into what the run exports:

        tfeff finetune --run_dir=runs/rte --task=RTE --data=glue \\
            --pretrained=runs/shatter --lora_rank=8 --learning_rates=5e-4

    Names and chunks of words, with the best F1 of phrases kept:

        tfeff finetune --run_dir=runs/names --task=WikiANN --data=ner/wikiann_en \\
            --pretrained=runs/shatter --predict_split=dev

    Beside every score stands that of a baseline, which reads no text: of the commonest
    class of the training part, of the mean rating, of each word's commonest label.

    A run that was stopped resumes when it is started again with the same settings: what
    is finished is not run again. In the end the run directory holds `metrics.json` and
    `summary.md`, means and deviations over the seeds and which setting is best on the
    development set; `model.keras`, that setting's best model, and `preset/`, the same
    with the tokenizer for `tfeff.tasks.load_task`; `export/`, which takes text; and
    with `predict_split` the predictions as the benchmark wants them, and their metrics
    where that part has labels.

    Where `pretrained` is a preset of the same kind of task, with the same labels, the
    training goes on from its heads. Else the pooler begins as that of `pretrained`
    where its preset keeps one, as presets of published BERT and ALBERT do; the layer
    after it is new.
    """

    command = "finetune"
    recipe = "finetune"

    run_dir: str = setting("Folder or URL of the run.", fixed=False)
    task: str = setting(
        "A task of GLUE, BoolQ, MultiRC, RACE, CoNLL-2003, CoNLL-2000, WikiANN or "
        "WNUT-17, or one that data describes."
    )
    pretrained_steps: tuple[int, ...] = setting(  # type: ignore[misc]
        "Steps of the run's checkpoints to start from, each in turn; default: its end.",
        (),
        minimum=1,
    )
    data: str = setting(
        "Folder of the benchmark's files; for your own data, the one that has TASK/, "
        "with dataset.json and its tables.",
        by_content=True,
    )
    pooling: str = setting(
        "How hidden states are pooled for the head; not for labelled words.",
        "cls",
        choices=("cls", "mean", "segments", "layerwise"),
    )
    pooler_activation: str | None = setting(
        "Activation of the pooler; default: that of the preset's pooler, which it then "
        "begins as, or tanh.",
        None,
        choices=POOLER_ACTIVATIONS,
    )
    new_segments: str = setting(
        "How the embeddings of segments that the pretraining run never used begin: "
        "copied from segment 0, or kept as they are.",
        "copied",
        choices=("copied", "kept"),
    )
    sequence_length: int | None = setting(
        "Tokens of an example; default: as pretrained.", None, minimum=3
    )
    batch_sizes: tuple[int, ...] = setting(
        "Batch sizes to try, over all replicas.", (16,), minimum=1
    )
    epochs: tuple[float, ...] = setting(
        "Passes over the training split to try.", (3.0,), above=0.0
    )
    metric: str | None = setting(
        "The metric of the task that selects the best model; default: its first.", None
    )
    head_dropout: float = setting(
        "Dropout rate before the last layer.", 0.1, minimum=0.0, below=1.0
    )
    train_examples: int | None = setting(
        "Train on a sample of N examples, the same for all seeds; default: all.",
        None,
        minimum=1,
    )
    predict_split: str | None = setting(
        "A part to predict: any of the data set's, such as test or dev, or a file that "
        "begins with test, such as test_new; default: none.",
        None,
        fixed=False,
    )
    skip_malformed: bool = setting(
        "Leave out malformed lines of tables, such as QQP's.", False
    )
    pad_to_longest: bool | None = setting(
        "Pad each batch to its longest row; the default, except on a TPU and for "
        "BlockBERT, whose blocks depend on the length.",
        None,
    )

    def __post_init__(self):
        super().__post_init__()
        if self.pooler_activation and self.pooling in ("segments", "layerwise"):
            raise ValueError(
                "`pooler_activation` must be left out where the pooling has no dense "
                f"layer. Received: pooler_activation={self.pooler_activation!r}, "
                f"pooling={self.pooling!r}"
            )
