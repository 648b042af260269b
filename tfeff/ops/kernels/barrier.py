"""A factor that keeps a compiler from moving recomputation into the forward pass."""

from keras import ops


def barrier_one(x):
    """A scalar 1 that depends on `x`.

    What a gradient recomputes, in order not to save it, is multiplied by a factor of
    the upstream gradient: a compiler would otherwise find it equal to what the forward
    pass computes, and save that. Compare `jax.lax.optimization_barrier`.

    Args:
        x: tensor of any shape.

    Returns:
        Scalar tensor, in the dtype of `x`; NaN where the first number of `x` is.
    """
    # A sum, since a replica may have no examples; of a slice, for which nothing moves.
    first = ops.sum(x[tuple(slice(1) for _ in x.shape)])
    return ops.where(ops.isnan(first), first, ops.ones_like(first))
