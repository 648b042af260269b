"""`tfeff convert`."""

import tfeff
from tfeff.recipes.fields import setting
from tfeff.recipes.settings import Settings, settings
from tfeff.utils.job_output import job_output


@settings
class ConvertSettings(Settings):
    """Writes a published checkpoint as a preset, or a preset as such a checkpoint.

    It takes BERT, ALBERT, ConvBERT, ELECTRA, RoBERTa, XLM-RoBERTa, CamemBERT,
    DistilBERT or XLNet of Hugging Face, BERT or ALBERT of the Model Garden, BERT,
    ALBERT, ELECTRA or ConvBERT of their authors, and BERT, ALBERT, ELECTRA, RoBERTa,
    XLM-RoBERTa or DistilBERT of KerasHub.

    Heads come along: of pretraining (masked language modelling, pooler, next sentence,
    sentence order, XLNet's) for `tfeff.tasks.load_objective`, of ELECTRA's networks for
    `tfeff.convert.load_replaced_token`, and of fine-tuned models and those of
    sentence-transformers, which `tfeff.tasks.load_task` reads. What was kept and what
    was left out is printed.

    With --to=huggingface it takes a preset or a run, and writes a checkpoint that
    transformers load, with its heads and its tokenizer, and that of a SentenceEmbedding
    sentence-transformers, too.
    """

    source: str = setting(
        "Folder with safetensors and config.json, with a TensorFlow checkpoint, or "
        "with a preset of KerasHub; or a name on the Hugging Face hub. With "
        "--to=huggingface, folder of a preset or of a run, or RUN@STEP.",
        positional=True,
    )
    destination: str = setting(
        "Folder to write; it must not exist, but for --overwrite.", positional=True
    )
    to: str = setting(
        "What is written: a preset of tfeff, or a checkpoint for transformers.",
        "preset",
        choices=("preset", "huggingface"),
    )
    architecture: str | None = setting(
        "model_type in transformers, such as electra, for --to=huggingface. Default: "
        "the one that fits.",
        None,
    )
    overwrite: bool = setting(
        "Replace a preset that is at the destination. Not for --to=huggingface.", False
    )


@job_output()
def convert(settings: ConvertSettings) -> None:
    """Converts a checkpoint or a preset and says what became of it."""
    if settings.to == "huggingface":
        if settings.overwrite:
            raise ValueError(
                "`overwrite` must be left out where to='huggingface'. "
                "Received: overwrite=True"
            )
        _write(settings)
        return
    if settings.architecture is not None:
        raise ValueError(
            "`architecture` must be left out unless to='huggingface'. Received: "
            f"architecture={settings.architecture!r}"
        )
    _read(settings)


def _write(settings):
    print(f"Reading {settings.source} ...")
    written = tfeff.convert.to_huggingface(
        settings.source, settings.destination, architecture=settings.architecture
    )
    print(f"Wrote {settings.destination}: {written.model} for transformers")
    if written.heads:
        print(f"With its heads: {', '.join(written.heads)}")
    if written.tokenizer is None:
        print("Without a tokenizer: the preset has none")
    else:
        print(f"With its tokenizer, {written.tokenizer}")
    library, reader = "transformers", f"{written.model}.from_pretrained"
    if written.modules:
        print(f"With modules of sentence-transformers: {', '.join(written.modules)}")
        library, reader = "sentence_transformers", "SentenceTransformer"
    print(
        f"next, in Python with {library}:\n"
        f"  {library}.{reader}({settings.destination!r})"
    )


def _read(settings):
    print(f"Reading {settings.source} ...")
    converted = tfeff.convert.convert(
        settings.source, settings.destination, overwrite=settings.overwrite
    )
    encoder, tokenizer = converted.encoder, converted.tokenizer
    print(
        f"Wrote {settings.destination}: an encoder of {encoder.num_layers} layers, "
        f"{encoder.count_params():,} weights"
    )
    if tokenizer is None:
        print(
            "Without a tokenizer: no files of one are with the source. To load more "
            "than the encoder,\nput them beside its weights and convert it again"
        )
    else:
        folds = ", lower-casing" if tokenizer.get_config().get("lowercase") else ""
        size = tokenizer.vocabulary_size()
        print(f"With its {type(tokenizer).__name__} of {size:,} ids{folds}")
    if converted.task is not None:
        reader = "tfeff.tasks.load_task reads it"
        if tokenizer is None:
            reader = "tfeff.convert.load_task reads it from the source"
        print(f"A {type(converted.task).__name__}: {reader}")
    if converted.heads:
        print(f"With its heads: {', '.join(sorted(converted.heads))}")
    for kind, count in sorted(converted.ignored.items()):
        print(f"Left out: {kind} ({count} tensors)")
    if tokenizer is not None:
        from tfeff.recipes.next_commands import print_finetune_next

        print_finetune_next(settings.destination)
