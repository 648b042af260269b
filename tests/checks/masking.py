"""BERT's rule of masking, checked row by row."""

import numpy as np

from tests.subjects.masking import MASK, SPECIAL, VOCABULARY


def check_rule(original, result, max_masks, rate):
    """Every clause of the rule that holds with certainty, row by row."""
    masked, positions, labels, weights = (np.asarray(t) for t in result)
    assert masked.dtype == positions.dtype == labels.dtype == np.int32
    assert weights.dtype == np.float32
    for b, row in enumerate(original):
        candidates = [t for t in range(len(row)) if row[t] not in SPECIAL]
        count = max(1, round(rate * len(candidates))) if candidates else 0
        count = min(count, max_masks)
        assert weights[b].tolist() == [1.0] * count + [0.0] * (max_masks - count)
        chosen = positions[b][:count].tolist()
        assert chosen == sorted(set(chosen))
        assert set(chosen) <= set(candidates)
        assert labels[b].tolist() == [row[t] for t in chosen] + [0] * (
            max_masks - count
        )
        assert positions[b][count:].tolist() == [0] * (max_masks - count)
        for t in range(len(row)):
            if t not in chosen:
                assert masked[b, t] == row[t]
            else:
                assert masked[b, t] == MASK or masked[b, t] not in SPECIAL
                assert 0 <= masked[b, t] < VOCABULARY
