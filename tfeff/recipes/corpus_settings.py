"""What the settings about text say, in each recipe that reads a corpus."""

from collections.abc import Mapping

from tfeff.recipes.settings import changed

CORPUS_HELP = (
    "Text files, JSON Lines (.jsonl, .ndjson, .json, also .gz), Parquet files "
    "(.parquet), globs of them; or tfds:NAME, hf:NAME, hf:NAME:CONFIGURATION, "
    "docstrings."
)
TEXT_FIELD_HELP = (
    "The field or column of the text in JSON Lines, Parquet files and data sets."
)
VALIDATION_HELP = "Like the corpus; by default a part of it."
VALIDATION_FRACTION_HELP = "Documents held out of the corpus."
MAX_CHARACTERS_HELP = "Where the docstrings corpus ends."
# Enough for the default vocabulary.
MAX_CHARACTERS = 16_000_000
_BEFORE = 10_000_000
TOKENIZER_HELP = (
    "A preset, a run, or a tokenizer's file or folder, as of Hugging Face: vocab.txt, "
    "spiece.model, tokenizer.json; by default one is trained."
)
TOKENIZER_KIND_HELP = "Kind of the tokenizer to train."
TOKENIZER_KINDS = ("sentencepiece", "wordpiece")
VOCABULARY_SIZE_HELP = "Pieces of the tokenizer to train."
SEQUENCE_LENGTH_HELP = "Tokens in a sequence."
CROSS_DOCUMENTS_HELP = "Whether sequences span documents."


def without_effect(config: Mapping) -> set[str]:
    """The settings of an older version's configuration that had no effect."""
    found = set()
    given = [config.get("corpus"), config.get("validation")]
    names = [names for names in given if isinstance(names, (list, str))]
    reads_docstrings = any("docstrings" in each for each in names)
    if config.get("max_characters") == _BEFORE and any(names) and not reads_docstrings:
        found.add("max_characters")
    if config.get("validation"):
        found.add("validation_fraction")
    return found


def check_no_fraction(settings) -> None:
    """Raises if documents are to be held out beside those to validate by."""
    if settings.validation and "validation_fraction" in changed(settings):
        raise ValueError(
            "`validation_fraction` must be left out where `validation` is given. "
            f"Received: validation={list(settings.validation)}, "
            f"validation_fraction={settings.validation_fraction}"
        )
