"""Fixtures of the tests of conversion."""

import functools

import pytest

import tfeff.convert.tokenizer
from tests.convert import conversions


@pytest.fixture(scope="session")
def preset(tmp_path_factory):
    """Function from a golden's name to its preset's folder, made at most once."""
    return functools.partial(
        conversions.preset, root=str(tmp_path_factory.mktemp("presets"))
    )


@pytest.fixture(scope="session", autouse=True)
def _rules_once():
    """A pure function of some seconds, which most tests call with the same model."""
    module = tfeff.convert.tokenizer
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "with_rules", functools.cache(module.with_rules))
        yield
