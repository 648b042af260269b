from pathlib import Path

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def figures(monkeypatch):
    """The figures that the test saves, in order; their files stay empty."""
    saved = []

    def save(figure, path, **kwargs):
        assert kwargs == {"format": "png"}
        Path(path).touch()
        saved.append(figure)

    monkeypatch.setattr(Figure, "savefig", save)
    return saved
