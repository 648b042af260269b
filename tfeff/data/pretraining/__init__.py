"""What pretraining objectives make of the sequences of a cache."""
