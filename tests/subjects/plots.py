"""Batches of random tokens for figures."""

import numpy as np

LENGTHS = [(5, 3), (7, 1, 2)]


def batches_of(lengths=LENGTHS, labels=False):
    """Random tokens, one batch for each tuple of lengths."""
    rng = np.random.default_rng(1)
    batches = []
    for sizes in lengths:
        mask = np.arange(max(sizes) + 1) < np.array(sizes)[:, None]  # one always pads
        inputs = {
            "token_ids": rng.integers(0, 19, mask.shape).astype("int32"),
            "segment_ids": np.zeros(mask.shape, "int32"),
            "padding_mask": mask.astype("int32"),
        }
        batches.append((inputs, mask, mask) if labels else inputs)
    return batches
