"""Pictures: what is drawn is what the files say."""

import pytest

from tfeff import plots


def test_learning_curves_draws_every_loss_of_every_run(tmp_path, monkeypatch):
    drawn = []
    from matplotlib.axes import Axes

    plot = Axes.plot

    def record(self, x, y, *args, **kwargs):
        drawn.append((kwargs["label"], list(x), list(y)))
        return plot(self, x, y, *args, **kwargs)

    monkeypatch.setattr(Axes, "plot", record)
    (tmp_path / "a.csv").write_text("step,loss,val_loss\n1,3.5,3.75\n2,2.5,\n")
    (tmp_path / "b.csv").write_text("step,loss\n4,1.5\n")
    picture = tmp_path / "curves.png"
    plots.learning_curves(
        {"a": str(tmp_path / "a.csv"), "b": str(tmp_path / "b.csv")}, str(picture)
    )
    assert drawn == [
        ("a, training", [1, 2], [3.5, 2.5]),
        ("a, validation", [1], [3.75]),
        ("b, training", [4], [1.5]),
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "a.csv",
        "b.csv",
        "curves.png",
    ]


def test_a_file_without_the_columns_is_named(tmp_path):
    (tmp_path / "x.csv").write_text("epoch,accuracy\n0,1\n")
    with pytest.raises(ValueError, match="x.csv"):
        plots.learning_curves({"x": str(tmp_path / "x.csv")}, str(tmp_path / "y.png"))
    assert not (tmp_path / "y.png").exists()
