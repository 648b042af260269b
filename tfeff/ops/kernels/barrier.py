"""A factor that keeps a compiler from moving recomputation into the forward pass."""

from keras import ops


def barrier_one(x):
    """A scalar 1 that depends on `x`.

    A backward pass multiplies what it recomputes by this factor of the upstream
    gradient. Otherwise a compiler finds the same operations in the forward pass and
    saves their results. Compare `jax.lax.optimization_barrier`.

    Args:
        x: tensor of any shape.

    Returns:
        Scalar tensor, in the dtype of `x`; NaN where the first number of `x` is.
    """
    # A sum, since a replica may have no examples; of a slice, which copies nothing.
    first = ops.sum(x[tuple(slice(1) for _ in x.shape)])
    return ops.where(ops.isnan(first), first, ops.ones_like(first))
