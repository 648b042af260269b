"""Products with the Hessian of blocks, by the backend and by central differences.

    KERAS_BACKEND=torch python -m tests.subjects.second_gradients

prints the relative error of each.
"""

import keras
import numpy as np

from tests.subjects.backend_layers import ATTENTIONS, WITHOUT_BLOCKS
from tfeff.layers import EncoderBlock, FeedForward

# They have all custom gradients between them.
NAMES = "self", "one_head", "rpe", "huang4", "sparse", "separable", "dynamic_conv"
# Keras' matrix products are in float32 on these backends.
STEP = 3e-3


def product_with_hessian(function, x, direction):
    """The gradient of the gradient's product with a direction."""
    if keras.backend.backend() == "jax":
        import jax

        def along(x):
            return (jax.grad(function)(x) * direction).sum()

        return np.asarray(jax.jit(jax.grad(along))(x))
    import torch

    x = torch.tensor(x, requires_grad=True)
    (gradient,) = torch.autograd.grad(function(x), x, create_graph=True)
    along = (gradient * torch.tensor(direction)).sum()
    return torch.autograd.grad(along, x)[0].numpy()


def gradient(function, x):
    if keras.backend.backend() == "jax":
        import jax

        return np.asarray(jax.jit(jax.grad(function))(x))
    import torch

    x = torch.tensor(x, requires_grad=True)
    return torch.autograd.grad(function(x), x)[0].numpy()


def blocks():
    """Blocks in float64 by name, all weights random."""
    keras.config.set_dtype_policy("float64")
    for name in NAMES:
        make = ATTENTIONS[name]
        sizes = ({},) if name in WITHOUT_BLOCKS else ({}, {"query_block_size": 3})
        for options in sizes:
            block = EncoderBlock(make(**options), FeedForward(12))
            block.build((None, None, 8))
            own = np.random.default_rng(len(name))
            block.set_weights([own.normal(size=w.shape) / 2 for w in block.weights])
            yield f"{name} {options}", block
    for memory_efficient in ("attention", "block"):
        block = EncoderBlock(
            ATTENTIONS["self"](), FeedForward(12), memory_efficient=memory_efficient
        )
        block.build((None, None, 8))
        yield memory_efficient, block


def main():
    if keras.backend.backend() == "jax":
        import jax

        jax.config.update("jax_enable_x64", True)
    x, direction, factors = np.random.default_rng(0).normal(size=(3, 2, 7, 8))
    mask = keras.ops.convert_to_tensor(np.arange(7) < np.array([[7], [4]]))
    factors = keras.ops.convert_to_tensor(factors)
    for name, block in blocks():

        def function(x, block=block):
            output = block(x, padding_mask=mask, training=True)
            return keras.ops.sum(output * factors)

        sides = (gradient(function, x + s * STEP * direction) for s in (1, -1))
        expected = np.subtract(*sides) / (2 * STEP)
        error = product_with_hessian(function, x, direction) - expected
        print(name, np.linalg.norm(error) / np.linalg.norm(expected), sep="\t")


if __name__ == "__main__":
    main()
