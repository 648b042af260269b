"""Settings of distillation."""

from collections.abc import Mapping

from tfeff.recipes.settings import Settings, fields_of, setting, settings

# The settings that one stage alone has, and those of replacing words.
_STAGES = {
    "general": ("override", "corpus", "validation_fraction", "max_characters"),
    "task": (
        *("temperature", "soften", "task", "data", "skip_malformed", "augment_with"),
        *("word_vectors", "copies", "train_examples"),
        *("prediction_steps", "prediction_rate"),
    ),
}
_AUGMENTATION = ("word_vectors", "copies")


@settings
class DistillSettings(Settings):
    """Distils a teacher into a smaller student, as TinyBERT, in general or on a task.

    In general, on any text: the teacher is a preset with its tokenizer, or a pretrained
    run; the student is a name of tfeff.encoders.presets():

        tfeff distill --run_dir=runs/small --teacher=runs/large \\
            --student=bert_tiny --override=num_layers=2 --corpus='corpus/*.txt'

    On a task of texts or pairs: GLUE's nine, BoolQ, MultiRC. The teacher is a
    fine-tuned run, the student the general run; the layers are distilled first, the
    predictions then, and the best student on the development set is kept:

        tfeff distill --stage=task --run_dir=runs/small-sst2 \\
            --teacher=runs/large-sst2 --student=runs/small --task=SST-2 --data=glue \\
            --augment_with=runs/large --word_vectors=glove.6B.300d.txt

    Attention maps are compared before the softmax where both encoders have one
    (`attention`). A general run that was stopped goes on when it is started again with
    the same settings; a task's run starts again until it is finished. In the end the
    run directory holds `metrics.json`, `preset/`: the student with the tokenizer,
    after a task `model.keras`, and `export/`: a SavedModel that takes text.
    """

    run_dir: str = setting("Folder of the run.", fixed=False)
    stage: str = setting(
        "The stage: a general encoder, or a task.",
        "general",
        choices=["general", "task"],
    )
    teacher: str = setting("A preset, or the folder of a run.")
    student: str = setting("general: a name of presets(); task: a preset or run.")
    override: dict[str, object] = setting(
        "general: NAME=VALUE (JSON), an argument of Encoder to replace the preset's.",
        {},
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
    reduction: str = setting("Over positions.", "mean", choices=["mean", "sum_squares"])
    temperature: float = setting("task: of the softmax of predictions.", 1.0)
    soften: str = setting(
        "task: logits to be divided by it.", "both", choices=["both", "student"]
    )
    corpus: tuple[str, ...] = setting(
        "general: text files and globs, or docstrings.", ("docstrings",)
    )
    validation_fraction: float = setting(
        "general: documents held out of the corpus.", 0.02
    )
    max_characters: int = setting(
        "general: where docstrings end.", 10_000_000, minimum=1
    )
    task: str | None = setting("task: one of GLUE's, BoolQ or MultiRC.", None)
    data: str | None = setting("task: folder of the benchmark's files.", None)
    skip_malformed: bool = setting(
        "task: leave out malformed lines of GLUE; QQP has some.", False
    )
    augment_with: str | None = setting(
        "task: a run of masked language modelling, to replace words.", None
    )
    word_vectors: str | None = setting(
        "task: a file like GloVe's, for long words.", None
    )
    copies: int = setting(
        "task: copies of an example with words replaced.", 20, minimum=1
    )
    train_examples: int | None = setting(
        "task: how many of the training part.", None, minimum=1
    )
    prediction_steps: int = setting("task: steps on predictions.", 1000, minimum=1)
    prediction_rate: float = setting("task: peak rate on predictions.", 3e-5)
    sequence_length: int = setting("Tokens in a sequence.", 128, minimum=3)
    batch_size: int = setting("Sequences in a batch, over all replicas.", 16, minimum=1)
    accumulation_steps: int = setting(
        "Batches in a step: their gradients are summed to make one update.",
        1,
        minimum=1,
    )
    steps: int = setting("Steps on layers, each an update.", 1000, minimum=1)
    eval_every: int | None = setting(
        "Steps between evaluations; default: 200, or less for few steps.",
        None,
        minimum=1,
    )
    patience: int | None = setting(
        "Evaluations in a row without a better one after which the training ends: in "
        "general by the loss, on a task by the metric, on predictions; default: none.",
        None,
        minimum=1,
    )
    learning_rate: float = setting("Peak learning rate on layers.", 5e-4)
    warmup: float = setting(
        "Share of the steps up to the peak.", 0.1, minimum=0.0, maximum=0.99
    )
    weight_decay: float = setting("Decay of all but biases and norms.", 0.01)
    seed: int = setting("Seed of weights, order, replaced words, dropout.", 0)
    strategy: str = setting(
        "Where to train.",
        "default",
        choices=["default", "mirrored", "tpu"],
        fixed=False,
    )
    tpu: str = setting("Name or address of the TPU.", "", fixed=False)
    plots: bool = setting(
        "Whether to draw attention, partitions and tables in the end.",
        False,
        fixed=False,
    )

    def __post_init__(self):
        super().__post_init__()
        fields = {field.name: field for field in fields_of(type(self))}
        for name, needed in _unused(self.stage, self.augment_with).items():
            value, field = getattr(self, name), fields[name]
            if value != field.default:
                raise ValueError(
                    f"`{name}` can be given with `{needed}` only. Received: "
                    f"{name}={field.to_json(value)!r}, stage={self.stage!r}, "
                    f"augment_with={self.augment_with!r}"
                )
        for name in ("task", "data"):
            if self.stage == "task" and not getattr(self, name):
                raise ValueError(
                    f"`{name}` must be given with `stage='task'`. "
                    f"Received: {name}={getattr(self, name)!r}"
                )

    @classmethod
    def upgraded(cls, config: Mapping) -> dict:
        """As of all settings; those that were given and did nothing are gone."""
        upgraded = super().upgraded(config)
        defaults = super().upgraded({})
        unused = _unused(upgraded["stage"], upgraded["augment_with"])
        return upgraded | {name: defaults[name] for name in unused}


def _unused(stage, augment_with):
    """From the settings that have no effect to what they need to have one."""
    unused = {}
    if augment_with is None:
        unused |= dict.fromkeys(_AUGMENTATION, "augment_with")
    for other, names in _STAGES.items():
        if other != stage:
            unused |= dict.fromkeys(names, f"stage={other!r}")
    return unused
