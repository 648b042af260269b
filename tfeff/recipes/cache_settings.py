"""Settings of caches that are built before a training."""

from collections.abc import Mapping

from tfeff.recipes.corpus_settings import (
    CORPUS_HELP,
    CROSS_DOCUMENTS_HELP,
    MAX_CHARACTERS,
    MAX_CHARACTERS_HELP,
    SEQUENCE_LENGTH_HELP,
    TEXT_FIELD_HELP,
    TOKENIZER_HELP,
    TOKENIZER_KIND_HELP,
    TOKENIZER_KINDS,
    VALIDATION_FRACTION_HELP,
    VALIDATION_HELP,
    VOCABULARY_SIZE_HELP,
    without_effect,
)
from tfeff.recipes.settings import Settings, setting, settings


@settings
class CacheSettings(Settings):
    """Tokenizes a corpus once, for any number of runs of `tfeff pretrain`.

    The folder then has the tokenizer, and a cache of the text to train on and of that
    to validate by:

        tfeff cache --cache_dir=caches/english --corpus='corpus/*.jsonl' \\
            --sequence_length=512
        tfeff pretrain --run_dir=runs/first --cache_dir=caches/english \\
            --sequence_length=512

    With a runner, workers of Apache Beam do the work and write the same bytes. The
    runner's own flags stand behind `--`:

        tfeff cache --cache_dir=/shared/english --corpus='/shared/corpus/*.jsonl' \\
            --sequence_length=512 --tokenizer_sample=1000000000 \\
            --runner=FlinkRunner -- --flink_master=flink:8081 --parallelism=100

    Started again with the same settings, it goes on with the caches that are not
    complete.
    """

    cache_dir: str = setting("Folder to write, or a URL.", fixed=False)
    corpus: tuple[str, ...] = setting(CORPUS_HELP, ("docstrings",))
    text_field: str = setting(TEXT_FIELD_HELP, "text")
    validation: tuple[str, ...] = setting(VALIDATION_HELP, ())
    validation_fraction: float = setting(
        VALIDATION_FRACTION_HELP, 0.02, above=0.0, below=1.0
    )
    max_characters: int = setting(MAX_CHARACTERS_HELP, MAX_CHARACTERS, minimum=1)
    tokenizer: str | None = setting(TOKENIZER_HELP, None)
    tokenizer_kind: str = setting(
        TOKENIZER_KIND_HELP, "sentencepiece", choices=TOKENIZER_KINDS
    )
    tokenizer_sample: int | None = setting(
        "Bytes of text that the tokenizer is trained on, in documents drawn by a hash; "
        "by default all.",
        None,
        minimum=1,
    )
    vocabulary_size: int = setting(VOCABULARY_SIZE_HELP, 32_000, minimum=1)
    sequence_length: int = setting(SEQUENCE_LENGTH_HELP, 128, minimum=3)
    cross_documents: bool = setting(CROSS_DOCUMENTS_HELP, False)
    runner: str | None = setting(
        "A runner of Apache Beam, such as DirectRunner, PrismRunner, DataflowRunner, "
        "FlinkRunner or SparkRunner; by default threads of this process.",
        None,
        fixed=False,
    )
    beam_flags: tuple[str, ...] = setting(
        "The runner's flags, as Beam has them.", (), fixed=False, behind_dashes=True
    )

    @classmethod
    def upgraded(cls, config: Mapping) -> dict:
        unused = without_effect(config)
        if config.get("tokenizer"):
            unused.add("vocabulary_size")
        return super().upgraded({n: config[n] for n in config if n not in unused})
