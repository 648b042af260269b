"""Settings of text, which several recipes read, and of its tokenizer and sequences."""

from collections.abc import Sequence

from tfeff.recipes.fields import setting
from tfeff.recipes.settings import Settings, changed, settings

CORPUS_HELP = (
    "Text files, in which a blank line ends a document, JSON Lines (.jsonl, .ndjson, "
    ".json), both also .gz, Parquet files (.parquet), globs of them; or docstrings; or "
    "the training split of tfds:NAME, hf:NAME, hf:NAME:CONFIGURATION, or hf:FOLDER of "
    "save_to_disk."
)
TEXT_FIELD_HELP = (
    "The field or column of the text in JSON Lines, Parquet files and data sets."
)
# Settings of a tokenizer that is trained.
OF_TRAINED = ("tokenizer_kind", "tokenizer_lowercase")


@settings
class CorpusSettings(Settings):
    """Settings of a corpus that is made sequences of tokens."""

    corpus: tuple[str, ...] = setting(CORPUS_HELP, ("docstrings",), by_content=True)
    text_field: str = setting(TEXT_FIELD_HELP, "text")
    validation: tuple[str, ...] = setting(
        "Text to validate on, named like the corpus, in other files; by default a part "
        "of the corpus.",
        (),
        by_content=True,
    )
    validation_fraction: float = setting(
        "Documents held out of the corpus.", 0.02, above=0.0, below=1.0
    )
    # Enough for the default vocabulary.
    max_characters: int = setting(
        "Most characters of the docstrings corpus.", 16_000_000, minimum=1
    )
    tokenizer: str | None = setting(
        "A preset, a run or RUN@STEP, a tokenizer's file or folder, as of Hugging "
        "Face: vocab.txt, spiece.model, tokenizer.json; or a name on its hub. By "
        "default one is trained.",
        None,
    )
    tokenizer_kind: str = setting(
        "Kind of the tokenizer to train. One of byte-level BPE, which Hugging Face's "
        "tokenizers trains, is given as --tokenizer.",
        "sentencepiece",
        choices=("sentencepiece", "wordpiece"),
    )
    tokenizer_lowercase: bool = setting(
        "Whether the tokenizer to train folds case; WordPiece drops accents then, too.",
        True,
    )
    vocabulary_size: int = setting(
        "Pieces of the tokenizer to train.", 32_000, minimum=1
    )
    sequence_length: int = setting("Tokens in a sequence.", 128, minimum=3)
    cross_documents: bool = setting("Whether sequences span documents.", False)

    @property
    def of_validation(self) -> str:
        """The setting that names the text to validate by."""
        return "validation" if self.validation else "corpus"


def check_no_fraction(settings) -> None:
    """Raises if documents are to be held out beside those to validate by."""
    if settings.validation and "validation_fraction" in changed(settings):
        raise ValueError(
            "`validation_fraction` must be left out where `validation` is given. "
            f"Received: validation={list(settings.validation)}, "
            f"validation_fraction={settings.validation_fraction}"
        )


def check_no_training(settings, names: Sequence[str]) -> None:
    """Raises if settings of a tokenizer to train are given beside a `tokenizer`."""
    for name in names:
        if name in changed(settings):
            raise ValueError(
                f"`{name}` must be left out where a `tokenizer` is given. Received: "
                f"tokenizer={settings.tokenizer!r}, {name}={getattr(settings, name)!r}"
            )
