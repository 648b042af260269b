import contextlib
import contextvars
from typing import Any

import keras
from keras import ops

from tfeff import ops as functional
from tfeff.compat.layers import DrawnSeed, is_seed_state, name_seed_by_layer, sublayers
from tfeff.layers.checks import check_layer_seed
from tfeff.utils.checks import check_rate
from tfeff.utils.types import Shape, Tensor

# Seeds by layer, for a recomputation that must drop the same elements.
_DRAWN: contextvars.ContextVar[dict] = contextvars.ContextVar("drawn")


@keras.saving.register_keras_serializable(package="tfeff")
class Dropout(keras.layers.Dropout):
    """Dropout with few random bits: the same layer, several times cheaper.

        y = m ⊙ x / (1 - rate),   m = 0 with probability rate, else 1

    Drawing random numbers dominates the cost of dropout. This layer draws 32 random
    bits for a whole row (the last axis) and expands them by an integer hash
    (`tfeff.ops.keep_mask`). As with Keras' layer, the replicas of a distribution
    strategy drop the same elements of their shards of the batch.

    Args:
        rate: float in [0, 1), the dropout rate.
        noise_shape: `None`; the argument exists only for Keras' configs.
        seed: integer of at least 0, or `None` for one that Keras draws.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: float tensor of any shape.
        training: whether elements are dropped.

    Raises:
        TypeError: if `rate` is no number, or another argument of another type.
        ValueError: if `rate` is not in [0, 1), or `noise_shape` is given.

    Example:

    >>> layer = Dropout(0.5, seed=1)
    >>> values = layer(keras.ops.ones((4, 100)), training=True)
    >>> sorted(set(keras.ops.convert_to_numpy(values).ravel().tolist()))
    [0.0, 2.0]

    Reference:
        Srivastava et al., "Dropout: a simple way to prevent neural networks from
        overfitting".
    """

    def __init__(
        self,
        rate: float,
        noise_shape: Shape | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ):
        if noise_shape is not None:
            raise ValueError(
                "`noise_shape` must be None: every element is dropped on its own. "
                f"Received: noise_shape={noise_shape!r:.80}"
            )
        super().__init__(
            check_rate("rate", rate), seed=check_layer_seed(seed), **kwargs
        )
        if self.rate:
            name_seed_by_layer(self)

    def row_bits(self, rows: Shape, training: bool | None) -> Tensor | None:
        """The random bits of rows (`tfeff.ops.row_bits`); `None` without dropout.

        Args:
            rows: shape of the rows, of integers and integer tensors.
            training: whether elements are dropped.
        """
        if not training or not self.rate:
            return None
        return functional.row_bits(rows, _DRAWN.get({}).get(self, self.seed_generator))

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if len(inputs.shape) == 0:
            return self.call(inputs[None], training)[0]
        *rows, length = ops.shape(inputs)
        bits = self.row_bits(rows, training)
        if bits is None:
            return inputs
        keep = functional.keep_mask_from_bits(bits, length, self.rate)
        scaled = inputs * (1.0 / (1.0 - self.rate))
        return ops.where(keep, scaled, ops.zeros_like(inputs))


def draw_seeds(layer: keras.layers.Layer) -> dict:
    """Draws the next seed of each dropout layer within a layer, for `drawn_seeds`.

    Those of rate 0 need none.

    Raises:
        ValueError: if a layer draws random numbers in another way, which a
            recomputation could not draw again, or updates moving means, which it would
            update twice.
    """
    parts = sublayers(layer)
    dropouts = [x for x in parts if isinstance(x, Dropout) and x.rate]
    known = {id(dropout.seed_generator.state) for dropout in dropouts}
    for variable in layer.variables:
        if is_seed_state(variable) and id(variable) not in known:
            raise ValueError(
                "`memory_efficient` must be False or 'attention' where another layer "
                "than `tfeff.layers.Dropout` draws random numbers: a recomputation "
                "would draw others. Received: memory_efficient='block', and "
                f"{variable.path}"
            )
    for part in parts:
        if isinstance(part, keras.layers.BatchNormalization) and part.trainable:
            raise ValueError(
                "`memory_efficient` must be False or 'attention' where a layer updates "
                "moving means: a recomputation would update them again. Received: "
                f"memory_efficient='block', and {part.path}"
            )
    return {x: x.seed_generator.next() for x in dropouts}


@contextlib.contextmanager
def drawn_seeds(seeds: dict):
    """A context in which dropout layers draw from the given seeds.

    Each context begins with these seeds, so that a recomputation drops the same
    elements. Within a context, each further call of a layer drops other elements.
    """
    token = _DRAWN.set({layer: DrawnSeed(seed) for layer, seed in seeds.items()})
    try:
        yield
    finally:
        _DRAWN.reset(token)
