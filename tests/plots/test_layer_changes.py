"""Distances and angles of each layer's input and output, against loops."""

import math

import numpy as np
import pytest

from tests.subjects.encoders import tiny
from tests.subjects.plots import LENGTHS, batches_of
from tfeff import plots


def randomized(**changes):
    encoder = tiny("albert_base", num_layers=3, dropout=0.5, **changes)
    rng = np.random.default_rng(0)
    for weight in encoder.weights:
        weight.assign(weight + 0.5 * rng.normal(size=weight.shape))
    return encoder


def by_loops(encoder):
    """Literally, token by token: `(distances, degrees)`."""
    distances, degrees, count = [0.0] * 3, [0.0] * 3, 0
    for sizes, batch in zip(LENGTHS, batches_of()):
        states = [x.numpy().astype("float64") for x in encoder(batch)["hidden_states"]]
        for b, size in enumerate(sizes):
            for i in range(size):
                count += 1
                for layer in range(3):
                    x, y = states[layer][b, i], states[layer + 1][b, i]
                    distances[layer] += math.sqrt(sum((y - x) ** 2))
                    cosine = x @ y / math.sqrt((x @ x) * (y @ y))
                    degrees[layer] += math.degrees(math.acos(cosine))
    return np.array(distances) / count, np.array(degrees) / count


@pytest.mark.parametrize("sharing", ["all", "none"])
def test_distances_and_angles(sharing, tmp_path, figures):
    encoder = randomized(sharing=sharing)
    distances, degrees = by_loops(encoder)
    changes = plots.layer_changes(encoder, batches_of(labels=True))
    np.testing.assert_allclose(changes.distances, distances, rtol=1e-5)
    np.testing.assert_allclose(changes.degrees, degrees, rtol=1e-5)
    assert degrees.min() > 1
    plots.layer_stability(encoder, iter(batches_of()), tmp_path / "a.png")
    left, right = figures[0].axes
    for axes, values in ((left, changes.distances), (right, changes.degrees)):
        (line,) = axes.lines
        np.testing.assert_array_equal(line.get_xdata(), range(3))
        np.testing.assert_allclose(line.get_ydata(), values)
        assert axes.get_legend() is None


def test_several_encoders_in_one_figure(tmp_path, figures):
    encoders = {"shared": randomized(), "apart": randomized(sharing="none")}
    plots.layer_stability(encoders, iter(batches_of()), tmp_path / "a.png")
    for axes in figures[0].axes:
        assert [line.get_label() for line in axes.lines] == ["shared", "apart"]
    assert axes.get_legend() is not None
    drawn = figures[0].axes[1].lines[1].get_ydata()
    expected = plots.layer_changes(encoders["apart"], batches_of()).degrees
    np.testing.assert_allclose(drawn, expected)


def test_no_change_and_states_of_zeros():
    """The angle of equal states is 0, however it is rounded; that to zeros is 90."""
    encoder = randomized(sharing="none")
    norms = [block.feedforward_norm for block in encoder.blocks]
    for norm in norms:
        norm.beta.assign(np.arange(8.0))
        norm.gamma.assign(np.zeros(8))
    changes = plots.layer_changes(encoder, batches_of())
    assert changes.distances[1:].tolist() == [0, 0]
    np.testing.assert_allclose(changes.degrees[1:], 0, atol=1e-5)
    norms[1].beta.assign(np.zeros(8))
    changes = plots.layer_changes(encoder, batches_of())
    np.testing.assert_allclose(changes.degrees[1:], 90)
    np.testing.assert_allclose(changes.distances[1:], math.sqrt(140))


def test_bad_input_is_named(tmp_path):
    encoder = randomized()
    with pytest.raises(ValueError, match="`encoders` must hold an encoder"):
        plots.layer_stability({}, batches_of(), tmp_path / "a.png")
    for bad in ({"a": 3}, None, [encoder]):
        with pytest.raises(TypeError, match="`encoders` must be"):
            plots.layer_stability(bad, batches_of(), tmp_path / "a.png")
    with pytest.raises(ValueError, match="must hold real tokens"):
        plots.layer_changes(encoder, [])
    with pytest.raises(TypeError, match="`batches` must be batches of inputs"):
        plots.layer_changes(encoder, 3)
    with pytest.raises(ValueError, match="a folder that exists"):
        plots.layer_stability(encoder, batches_of(), tmp_path / "no" / "a.png")
    assert list(tmp_path.iterdir()) == []
