"""What the settings about text say, in each recipe that reads a corpus."""

CORPUS_HELP = (
    "Text files, JSON Lines (.jsonl, .jsonl.gz, .json.gz), Parquet files (.parquet), "
    "globs of them; or tfds:NAME, hf:NAME, hf:NAME:CONFIGURATION, docstrings."
)
TEXT_FIELD_HELP = (
    "The field or column of the text in JSON Lines, Parquet files and data sets."
)
