"""The initializer of BERT's weights, which all models of tfeff use, and clones."""

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
