"""Other names of data sets."""

# The names of SQuAD's versions in settings, and on the Hugging Face hub.
ALIASES = {
    "squad1": "SQuAD1.1",
    "squad2": "SQuAD2.0",
    "squad": "SQuAD1.1",
    "squad_v2": "SQuAD2.0",
}
