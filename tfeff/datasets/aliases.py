"""Other names of data sets."""

# The names of SQuAD's versions in older runs.
ALIASES = {"squad1": "SQuAD1.1", "squad2": "SQuAD2.0"}
