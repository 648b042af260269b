"""Fixed embeddings of positions by sines and cosines."""

import keras
from keras import ops

from tfeff.utils.checks import check_choice, check_integer
from tfeff.utils.types import Tensor

LAYOUTS = ("interleaved", "concatenated")


def sinusoids(positions: Tensor, dim: int, layout: str = "interleaved") -> Tensor:
    """Fixed sinusoid embeddings of positions, absolute or relative.

    With the frequencies `ω_m = 10000^(-2m / dim)`, `m = 0 … dim/2 - 1`, the row of
    `x` is `sin(ω_0 x), cos(ω_0 x), sin(ω_1 x), …` when interleaved, and all sines
    before all cosines when concatenated.

    Args:
        positions: integer or float tensor `[...]`, in tokens.
        dim: even integer, size of an embedding.
        layout: `"interleaved"` or `"concatenated"`.

    Returns:
        Tensor `[..., dim]`, float32 (float64 for float64 positions).

    Raises:
        ValueError: if `layout` is another one, or `dim` is odd.

    Example:

    >>> from keras import ops
    >>> ops.convert_to_numpy(sinusoids(ops.zeros((1,)), 4)).tolist()
    [[0.0, 1.0, 0.0, 1.0]]

    Reference:
        Vaswani et al., "Attention is all you need", section 3.5; Huang et al.,
        "Improve Transformer models with better relative position embeddings",
        equations 1 and 2.
    """
    check_choice("layout", layout, LAYOUTS)
    if check_integer("dim", dim) % 2:
        raise ValueError(
            f"`dim` must be even: sines and cosines come in pairs. Received: dim={dim}"
        )
    dtype = keras.backend.standardize_dtype(positions.dtype)
    dtype = "float64" if dtype == "float64" else "float32"
    frequencies = [10000.0 ** (-2.0 * m / dim) for m in range(dim // 2)]
    angles = ops.expand_dims(ops.cast(positions, dtype), -1)
    angles = angles * ops.convert_to_tensor(frequencies, dtype)
    waves = [ops.sin(angles), ops.cos(angles)]
    if layout == "concatenated":
        return ops.concatenate(waves, axis=-1)
    return ops.reshape(ops.stack(waves, axis=-1), (*ops.shape(positions), dim))
