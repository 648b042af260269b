"""Fixtures of the tests of conversion."""

import functools
import json

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
def _models_once():
    """The SentencePiece model of a file, which takes a second, once for each text."""
    module, models = tfeff.convert.tokenizer, {}
    make = module.sentence_piece_model

    def once(file):
        key = json.dumps(file.values)
        if key not in models:
            models[key] = make(file)
        return models[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "sentence_piece_model", once)
        yield
