"""The initializer of BERT's weights, which all models of tfeff use, and clones."""

import math

import keras


def bert_initializer(seed: int | None = None) -> keras.initializers.Initializer:
    """A normal distribution of standard deviation 0.02, truncated at two deviations.

    One instance returns the same values at each call, so every weight needs its own.

    Args:
        seed: integer; `None` draws a seed.
    """
    return keras.initializers.TruncatedNormal(stddev=0.02, seed=seed)


def own_initializer(initializer):
    """An initializer for one more weight: a clone, or a function itself.

    An initializer that is used twice gives equal weights. The clone of one without a
    seed draws another; that of one with an integer has the same, so that weights of one
    shape are equal, as in Keras' `MultiHeadAttention`.
    """
    return getattr(initializer, "clone", lambda: initializer)()


def initializer_by_group(initializer):
    """A function that draws kernels `[G, in, out]`, by the sizes of a group.

    Keras counts groups as the taps of a convolution, `G` times as many inputs and
    outputs as a group has, by whose number `glorot_uniform` and its kind
    (`keras.initializers.VarianceScaling`) scale. Others draw as they do for any weight
    of this shape.
    """
    own = own_initializer(initializer)
    scales = isinstance(own, keras.initializers.VarianceScaling)
    # Newer versions of Keras let the user say what counts.
    scales = scales and getattr(own, "input_axes", None) is None

    def kernel(shape, dtype=None):
        values = own(shape, dtype=dtype)
        return values * math.sqrt(shape[0]) if scales else values

    return kernel
