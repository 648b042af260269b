"""A layer under test, its reference, and inputs for both."""

import numpy as np
import tensorflow as tf

from tests.checks.numeric import arrays_of, randomize

# The third sequence has no real token; the fourth has holes.
RAGGED = np.array(
    [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 1, 0, 0, 1]], bool
)
EMPTY_ROW = 2
MASKS = {
    "odd length": RAGGED,
    "length 1": np.array([[1], [0]], bool),
    "even length": np.array([[1] * 8, [1] * 2 + [0] * 6], bool),
}


class Subject:
    """A layer under test with its reference, and inputs for both."""

    def __init__(self, make_layer, reference, hidden_dim, variables):
        self.make_layer = make_layer
        self.reference = reference
        self.hidden_dim = hidden_dim
        self.variables = variables
        self._layers = {}

    def layer(self, **kwargs):
        """The layer, built, with random weights, which no check may change."""
        key = tuple(sorted(kwargs.items()))
        if key not in self._layers:
            layer = self.make_layer(**kwargs)
            layer(tf.zeros((1, 2, self.hidden_dim)))
            randomize(self.variables(layer))
            self._layers[key] = layer
        return self._layers[key]

    def hidden(self, visible, dtype="float32"):
        shape = (*visible.shape, self.hidden_dim)
        return np.random.default_rng(2).normal(size=shape).astype(dtype)

    def expected(self, layer, hidden, visible):
        """The reference's (output,) or (output, scores)."""
        weights = arrays_of(self.variables(layer))
        return self.reference(np.asarray(hidden, "float64"), visible, weights)
