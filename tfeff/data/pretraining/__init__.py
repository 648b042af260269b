"""Examples of the pretraining objectives, from the sequences of a cache."""
