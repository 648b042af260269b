"""Sinusoids: their values are tested where encoders and attentions use them."""

import numpy as np
import pytest

from tfeff.ops import sinusoids


@pytest.mark.parametrize("dim", [5, 0, 4.0])
@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
def test_a_bad_size_is_named(dim, layout):
    with pytest.raises((ValueError, TypeError), match="`dim` must .*Received: dim="):
        sinusoids(np.arange(3), dim, layout)
