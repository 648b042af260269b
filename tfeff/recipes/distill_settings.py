"""Settings of distillation."""

from tfeff.recipes.corpus_settings import CORPUS_HELP, TEXT_FIELD_HELP
from tfeff.recipes.fields import fields_of, setting
from tfeff.recipes.run_settings import RunSettings
from tfeff.recipes.settings import POOLER_ACTIVATIONS, settings
from tfeff.utils.checks import MAX_SEED

# The settings that one stage alone has.
_STAGES = {
    "general": ("corpus", "text_field", "validation_fraction", "max_characters"),
    "task": (
        *("task", "data", "skip_malformed", "skip_mismatched", "augment_with"),
        *("stride", "max_answer_tokens", "train_examples", "pooler_activation"),
        *("prediction_steps", "prediction_rate"),
    ),
}
_AUGMENTATION = ("word_vectors", "candidates", "copies", "threshold")
# Settings of the comparison of predictions, which may be left out.
_TEMPERATURE = ("temperature", "soften")
_PREDICTIONS = (*_TEMPERATURE, "label_weight")
_LAYERS = ("embedding_weight", "hidden_weight", "attention_weight", "cosine_weight")


@settings
class DistillSettings(RunSettings):
    """Distils a teacher into a smaller student, in general or on a task.

    As TinyBERT, or with other weights of the losses as DistilBERT.

    In general, on any text: the teacher is a preset with its tokenizer, or a pretrained
    run; the student is a name of tfeff.encoders.presets():

        tfeff distill --run_dir=runs/small --teacher=runs/large \\
            --student=bert_tiny --override=num_layers=2 --corpus='corpus/*.txt'

    With a `prediction_weight`, tokens are masked, and both models predict them: the
    teacher is then a run of masked language modelling, or a preset that keeps its head.

    On a task of any data set of tfeff.datasets.names(), or of one that a dataset.json
    describes, as for tfeff finetune. The teacher is the folder of a fine-tuned run, the
    student the general run; the layers are distilled first, the predictions then, and
    the best student on the development set is kept:

        tfeff distill --stage=task --run_dir=runs/small-sst2 \\
            --teacher=runs/large-sst2 --student=runs/small --task=SST-2 --data=glue \\
            --augment_with=runs/large --word_vectors=glove.6B.300d.txt

    Attention maps are compared before the softmax where both encoders have one
    (`attention`). A loss of weight 0 is left out, as in the ablations of TinyBERT's
    table 6; a student that is a name of presets() has not been distilled in general,
    and with `steps=0`, `prediction_weight=0` and `label_weight=1` it learns from labels
    alone. A run that was stopped resumes when it is started again with the same
    settings; a task's run that was killed, not stopped by a signal, begins anew. In
    the end the run directory holds `metrics.json`, `preset/`: the student with the
    tokenizer, after a task `model.keras`, and `export/`: a SavedModel that takes text.
    """

    command = "distill"

    run_dir: str = setting("Folder or URL of the run.", fixed=False)
    stage: str = setting(
        "The stage: a general encoder, or a task.",
        "general",
        choices=["general", "task"],
    )
    teacher: str = setting(
        "general: a preset, a run or RUN@STEP; task: the folder of a fine-tuned run."
    )
    student: str = setting(
        "A name of presets(), to begin with random weights; task: or a preset or run."
    )
    override: dict[str, object] = setting(
        "Arguments of Encoder to replace the preset's, as JSON.",
        {},
    )
    pooler_activation: str | None = setting(
        "task: activation of the student's pooler; default: the teacher's.",
        None,
        choices=POOLER_ACTIVATIONS,
    )
    copy_layers: bool = setting(
        "Whether a student by name begins with the teacher's embedding and the layers "
        "that it learns from, as DistilBERT; sizes must be the teacher's.",
        False,
    )
    layer_map: str = setting(
        "uniform, top, bottom, or the teacher's layers: 2,4.", "uniform"
    )
    attention: str | None = setting(
        "Maps to compare; default: scores, or probabilities if a layer has no scores "
        "before a softmax, or none if one has no map.",
        None,
        choices=["scores", "probabilities", "none"],
    )
    reduction: str = setting(
        "How losses are reduced over positions.",
        "mean",
        choices=["mean", "sum_squares"],
    )
    layer_weights: tuple[float, ...] | None = setting(
        "Weights of the embedding, of each layer of the student, and of the "
        "predictions; default: 1 each.",
        None,
        minimum=0.0,
    )
    embedding_weight: float = setting("Weight of the embedding.", 1.0, minimum=0.0)
    hidden_weight: float = setting("Weight of the hidden states.", 1.0, minimum=0.0)
    attention_weight: float = setting("Weight of the maps.", 1.0, minimum=0.0)
    cosine_weight: float = setting(
        "Weight of the cosine of the last hidden states, with those above.",
        0.0,
        minimum=0.0,
    )
    prediction_weight: float | None = setting(
        "Weight of the predictions; default: 1 on a task, 0 in general.",
        None,
        minimum=0.0,
    )
    label_weight: float = setting(
        "Weight of the student's own loss on labels, with the predictions.",
        0.0,
        minimum=0.0,
    )
    temperature: float = setting(
        "Temperature of the softmax of predictions.", 1.0, above=0.0
    )
    soften: str = setting(
        "Whose logits are divided by the temperature.",
        "both",
        choices=["both", "student"],
    )
    corpus: tuple[str, ...] = setting(
        f"general: {CORPUS_HELP}", ("docstrings",), by_content=True
    )
    text_field: str = setting(f"general: {TEXT_FIELD_HELP}", "text")
    validation_fraction: float = setting(
        "general: documents held out of the corpus.", 0.02, above=0.0, below=1.0
    )
    max_characters: int = setting(
        "general: most characters of the docstrings corpus.", 10_000_000, minimum=1
    )
    task: str | None = setting(
        "task: a name of tfeff.datasets.names(), or one that data describes.",
        None,
    )
    data: str | None = setting(
        "task: folder of the benchmark's files; for your own data, the one that has "
        "TASK/, with dataset.json and its tables.",
        None,
        by_content=True,
    )
    skip_malformed: bool = setting(
        "task: leave out malformed lines of tables, such as QQP's.", False
    )
    skip_mismatched: bool = setting(
        "task: leave questions whose answer does not stand at its offset out of train "
        "and dev, and of the scores there.",
        False,
    )
    stride: int = setting("task: tokens from window to window.", 128, minimum=1)
    max_answer_tokens: int = setting("task: most tokens of an answer.", 30, minimum=1)
    augment_with: str | None = setting(
        "task: a run of masked language modelling, or a preset that keeps its head, "
        "to replace words of texts.",
        None,
    )
    word_vectors: str | None = setting(
        "task: a file like GloVe's, for long words.", None
    )
    candidates: int = setting(
        "task: K, words to choose a replacement from.", 15, minimum=1
    )
    copies: int = setting(
        "task: N_a, copies of an example with words replaced.", 20, minimum=1
    )
    threshold: float = setting(
        "task: p_t, the share of words to replace.", 0.4, minimum=0.0, maximum=1.0
    )
    train_examples: int | None = setting(
        "task: train on those N that `finetune` or `answer` would.", None, minimum=1
    )
    prediction_steps: int = setting("task: steps on predictions.", 1000, minimum=1)
    prediction_rate: float = setting("task: peak rate on predictions.", 3e-5, above=0.0)
    sequence_length: int = setting("Tokens in a sequence.", 128, minimum=3)
    batch_size: int = setting("Sequences in a batch, over all replicas.", 16, minimum=1)
    steps: int = setting(
        "Steps on layers, each an update; task: may be 0.", 1000, minimum=0
    )
    eval_every: int | None = setting(
        "Steps between evaluations. In general, they divide the steps; default: the "
        "largest divisor up to 200. On a task, default: 200, or less for few steps.",
        None,
        minimum=1,
    )
    patience: int | None = setting(
        "Evaluations in a row without a better one after which the training ends: in "
        "general by the loss, on a task by the metric, on predictions; default: none.",
        None,
        minimum=1,
    )
    learning_rate: float = setting("Peak learning rate on layers.", 5e-4, above=0.0)
    warmup: float = setting(
        "Share of the steps in which the learning rate rises to its peak.",
        0.1,
        minimum=0.0,
        below=1.0,
    )
    weight_decay: float = setting(
        "Weight decay of all weights but biases and norms.", 0.01, minimum=0.0
    )
    seed: int = setting(
        "Seed of weights, order, replaced words, dropout.",
        0,
        minimum=0,
        maximum=MAX_SEED,
    )

    def __post_init__(self):
        super().__post_init__()
        fields = {field.name: field for field in fields_of(type(self))}
        values = {name: getattr(self, name) for name in fields}
        for name, needed in _unused(values).items():
            field = fields[name]
            if values[name] != field.default:
                of = needed.partition("=")[0]
                raise ValueError(
                    f"`{name}` can be given with `{needed}` only. Received: "
                    f"{name}={field.to_json(values[name])!r}, {of}={values[of]!r}"
                )
        for name in ("task", "data"):
            if self.stage == "task" and not values[name]:
                raise ValueError(
                    f"`{name}` must be given with `stage='task'`. "
                    f"Received: {name}={values[name]!r}"
                )
        weights = values["layer_weights"]
        if weights is not None and not any(weights):
            raise ValueError(
                "`layer_weights` must have one above 0. "
                f"Received: layer_weights={weights!r}"
            )
        if not self.prediction_loss and not self.label_weight and self.stage == "task":
            raise ValueError(
                "`prediction_weight` must be above 0 on a task without `label_weight`: "
                "the student's last layer would learn nothing. Received: "
                f"prediction_weight={self.prediction_weight!r}, label_weight=0.0"
            )
        compared = {name: values[name] for name in (*_LAYERS, "prediction_weight")}
        if values["attention"] == "none":
            del compared["attention_weight"]
        if self.stage == "general" and not any(compared.values()):
            names = ", ".join(f"`{name}`" for name in compared)
            raise ValueError(f"One of {names} must be above 0. Received: all are 0")
        learns = self.stage == "general" or self.label_weight
        if weights is not None and not weights[-1] and not learns:
            raise ValueError(
                "`layer_weights` must end in a number above 0, the weight of the "
                "predictions, on a task without `label_weight`: the student's last "
                f"layer would learn nothing. Received: layer_weights={weights!r}"
            )
        if self.stage == "general" and not self.steps:
            raise ValueError("`steps` must be at least 1. Received: steps=0")

    @property
    def prediction_loss(self) -> float:
        """The weight of the predictions."""
        if self.prediction_weight is not None:
            return self.prediction_weight
        return 1.0 if self.stage == "task" else 0.0


def _unused(values):
    """The settings that have no effect, each with the setting that it needs."""
    unused = {}
    if values["augment_with"] is None:
        unused |= dict.fromkeys(_AUGMENTATION, "augment_with")
    if values["stage"] == "general" and not values["prediction_weight"]:
        unused |= dict.fromkeys(_PREDICTIONS, "prediction_weight")
    elif values["prediction_weight"] == 0:
        unused |= dict.fromkeys(_TEMPERATURE, "prediction_weight")
    for other, names in _STAGES.items():
        if other != values["stage"]:
            unused |= dict.fromkeys(names, f"stage={other!r}")
    if values["stage"] == "general":
        unused |= dict.fromkeys(_AUGMENTATION, "stage='task'")
    return unused
