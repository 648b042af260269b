"""What tests of encoders share: attentions that are registered for one test."""

import sys

import pytest


@pytest.fixture
def own_attentions(monkeypatch):
    """What the test registers is gone after it: others take all attentions."""
    module = sys.modules["tfeff.encoders.attentions"]
    monkeypatch.setattr(module, "_REGISTRY", dict(module._REGISTRY))
