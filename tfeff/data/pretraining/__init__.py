"""What pretraining objectives make of the texts of a batch."""
