"""Gradients of the references."""

import numpy as np


def finite_differences(function, arrays, step=1e-5):
    """Central differences of `function(arrays)`, a number, in every element.

    Args:
        function: takes a mapping of names to float64 arrays, gives a float.
        arrays: where to differentiate.
        step: half the distance between the two points.

    Returns:
        A mapping of the same names to arrays of the same shapes.
    """
    gradients = {}
    for name, array in arrays.items():
        gradient = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            values = []
            for sign in (1, -1):
                moved = array.copy()
                moved[index] += sign * step
                values.append(function({**arrays, name: moved}))
            gradient[index] = (values[0] - values[1]) / (2 * step)
        gradients[name] = gradient
    return gradients
