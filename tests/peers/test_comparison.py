"""docs/COMPARISON.md: every ✓ of tfeff has a test or a page that is there."""

import re

import pytest

from tests.peers.comparison import PAGE, missing, rows


def test_each_row_of_tfeff_has_what_shows_it():
    table = rows()
    assert len(table) > 40
    for feature, ours, *others in table:
        assert len(others) == 2, feature
        assert ours == "–" or ours.startswith("✓ ["), feature


def test_tests_and_pages_exist():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text(encoding="utf-8")):
        path = PAGE.parent / target
        assert path.is_file(), target
        if path.suffix == ".py":
            assert "\ndef test_" in path.read_text(encoding="utf-8"), target


@pytest.mark.parametrize("package", ["keras_hub", "keras"])
def test_names_of_other_packages_exist(package):
    assert missing(package) == []
