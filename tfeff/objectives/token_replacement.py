import keras
from keras import ops

from tfeff.compat.layers import name_seed_by_layer
from tfeff.layers.checks import check_layer_seed
from tfeff.utils.checks import check_positive


@keras.saving.register_keras_serializable(package="tfeff")
class TokenReplacement(keras.layers.Layer):
    """Draws tokens from logits and replaces those of a text by them.

        s_m = argmax_v (z_mv / τ + G_mv),   G = -log(-log U),   U uniform in (0, 1)

    which is a draw from softmax(z_m / τ) (Gumbel's trick). No gradient passes. Outside
    of training `U` is the same at every call, so that evaluation is reproducible and
    does not change the random state of training.

    Args:
        temperature: float `τ` > 0; near 0 the draw is the likeliest token.
        seed: integer, or `None` for one drawn by Keras.
        **kwargs: arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        token_ids: integer tensor `[B, T]`, the text.
        positions: integer tensor `[B, M]`, the positions to replace. Position 0,
            which holds `[CLS]`, is never replaced: unused slots point there.
        logits: float tensor `[B, M, V]`.
        training: whether every call draws new tokens.

    Returns:
        `(replaced, samples)`, int32: the text with the draws in it `[B, T]`, and the
        draws `[B, M]`.

    Example:

    >>> ids = keras.ops.convert_to_tensor([[2, 4, 9, 3]])
    >>> positions = keras.ops.convert_to_tensor([[1, 0]])
    >>> logits = 100 * keras.ops.one_hot([[7, 8]], 10)
    >>> replaced, samples = TokenReplacement()(ids, positions, logits)
    >>> keras.ops.convert_to_numpy(replaced).tolist()
    [[2, 7, 9, 3]]

    Reference:
        Clark et al., "ELECTRA", section 2; Jang et al., "Categorical
        reparameterization with Gumbel-softmax", for the trick.
    """

    def __init__(self, temperature: float = 1.0, seed: int | None = None, **kwargs):
        # Half precision would round the logits before they are drawn from.
        super().__init__(autocast=False, **kwargs)
        self.temperature = check_positive("temperature", temperature)
        self.seed = check_layer_seed(seed)
        self.seed_generator = keras.random.SeedGenerator(self.seed)
        name_seed_by_layer(self)

    def call(self, token_ids, positions, logits, training=None):
        logits = ops.cast(ops.stop_gradient(logits), "float32") / self.temperature
        seed = self.seed_generator if training else 0
        uniform = keras.random.uniform(ops.shape(logits), dtype="float32", seed=seed)
        # `uniform` may be 0, whose logarithm is infinite.
        tiny = 1e-20
        gumbel = -ops.log(-ops.log(uniform + tiny) + tiny)
        samples = ops.cast(ops.argmax(logits + gumbel, axis=-1), "int32")
        length = ops.shape(token_ids)[1]
        here = at_positions(ops.ones_like(samples), positions, length)
        there = at_positions(samples, positions, length)
        return ops.where(here > 0, there, ops.cast(token_ids, "int32")), samples

    def compute_output_spec(self, token_ids, positions, logits, training=None):
        return tuple(
            keras.KerasTensor(x.shape, dtype="int32") for x in (token_ids, positions)
        )

    def get_config(self):
        config = super().get_config()
        config.update(temperature=self.temperature, seed=self.seed)
        return config


def at_positions(values, positions, length):
    """Values `[B, M]` at their positions in `[B, T]`, 0 elsewhere and at position 0.

    A repeated position gets its first value.
    """
    positions = ops.cast(positions, "int32")[..., None]
    slots = ops.arange(ops.shape(positions)[1], dtype="int32")
    equal = positions == ops.swapaxes(positions, 1, 2)
    earlier = ops.logical_and(equal, slots < slots[:, None])
    first = ops.logical_not(ops.any(earlier, axis=2, keepdims=True))
    indices = ops.arange(length, dtype="int32")
    here = ops.logical_and(positions == indices, indices > 0)
    here = ops.logical_and(here, first)
    return ops.sum(
        ops.where(here, values[..., None], ops.zeros_like(values[..., None])), axis=1
    )
