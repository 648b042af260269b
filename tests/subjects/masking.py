"""Rows of tokens to mask, with their special tokens."""

import numpy as np

PAD, CLS, SEP, MASK = SPECIAL = (0, 2, 3, 4)
VOCABULARY = 50
SETTINGS = {
    "vocabulary_size": VOCABULARY,
    "mask_token_id": MASK,
    "special_token_ids": SPECIAL,
}


def sequences(lengths: list[int], total: int, seed: int = 0) -> np.ndarray:
    """Rows [CLS] text [SEP] padding, of `lengths` tokens of text."""
    generator = np.random.default_rng(seed)
    text = [i for i in range(VOCABULARY) if i not in SPECIAL]
    rows = np.full((len(lengths), total), PAD, np.int32)
    for row, length in zip(rows, lengths):
        row[: length + 2] = [CLS, *generator.choice(text, length), SEP]
    return rows
