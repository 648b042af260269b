"""Kinds of characters as tables, against the kinds themselves over all of Unicode."""

import numpy as np
import pytest

from tests.reference import offsets as reference
from tfeff.data.text import characters


@pytest.mark.parametrize(
    "kind",
    [
        *("is_word", "is_word_or_space", "is_joined", "is_invisible"),
        "is_invisible_in_pieces",
    ],
)
def test_tables_are_the_kinds(kind):
    boundaries = characters.boundaries(getattr(characters, kind))
    assert boundaries.dtype == np.int32
    points = np.arange(0x110000)
    found = np.searchsorted(boundaries, points, side="right") % 2 == 1
    expected = [getattr(reference, kind)(chr(point)) for point in points]
    np.testing.assert_array_equal(found, expected)
