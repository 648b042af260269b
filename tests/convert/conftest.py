"""Fixtures of the tests of conversion."""

import functools

import pytest

from tests.convert import conversions


@pytest.fixture(scope="session")
def preset(tmp_path_factory):
    """Function from a golden's name to its preset's folder, made at most once."""
    return functools.partial(
        conversions.preset, root=str(tmp_path_factory.mktemp("presets"))
    )
