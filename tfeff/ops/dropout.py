"""Dropout masks from a few random bits."""

import keras
from keras import ops

from tfeff.utils.checks import check_rate
from tfeff.utils.types import Shape, Tensor


def keep_mask(
    shape: Shape, rate: float, seed: int | keras.random.SeedGenerator
) -> Tensor:
    """Draws a dropout mask: each element is kept with probability `1 - rate`.

    The backend's generator draws 32 random bits `r` for each row (the last axis). Word
    `w` of a row is `h(r + γ w)`, with an integer hash `h` in which every bit depends on
    all. Each word gives two numbers with independent leading 16 bits, for one element
    in either half of the row, which is dropped if its number is below `2³² rate`. So
    the generator, by far the most expensive part of dropout, runs once a row, and a
    compiler fuses the rest into the operation that reads the mask.

    Args:
        shape: shape of the result, of integers and integer tensors.
        rate: float in [0, 1), the dropout rate.
        seed: `keras.random.SeedGenerator`, or an integer.

    Returns:
        Bool tensor of the shape, false at dropped elements. The same for the same
        seed.

    Raises:
        TypeError, ValueError: if `rate` is no number in [0, 1).

    Example:

    >>> from keras import ops
    >>> kept = keep_mask((1000, 9), rate=0.25, seed=0)
    >>> 0.73 < float(ops.mean(ops.cast(kept, "float32"))) < 0.77
    True

    Reference:
        Srivastava et al., "Dropout", 2014. The hash is Wellons' `lowbias32`
        ("Prospecting for Hash Functions", 2018) without its last shift, at steps of
        2³² over the golden ratio.
    """
    *rows, length = shape
    return keep_mask_from_bits(row_bits(rows, seed), length, rate)


def row_bits(rows: Shape, seed: int | keras.random.SeedGenerator) -> Tensor:
    """The random bits of rows, for `keep_mask_from_bits`.

    Masks of rows that are drawn together may be made in parts, as for blocks of
    queries.

    Args:
        rows: shape of the rows, of integers and integer tensors.
        seed: `keras.random.SeedGenerator`, or an integer.

    Returns:
        int32 tensor `[*rows, 1]`.

    Example:

    >>> tuple(row_bits((2, 3), seed=0).shape)
    (2, 3, 1)
    """
    return keras.random.randint((*rows, 1), -(2**31), 2**31 - 1, seed=seed)


def keep_mask_from_bits(bits: Tensor, length: Tensor | int, rate: float) -> Tensor:
    """`keep_mask` from random bits.

    Args:
        bits: int32 tensor `[..., 1]`, as from `row_bits`.
        length: integer or integer tensor, elements of a row.
        rate: float in [0, 1), the dropout rate.

    Returns:
        Bool tensor `[..., length]`, false at dropped elements.

    Raises:
        TypeError, ValueError: if `rate` is no number in [0, 1).

    Example:

    >>> from keras import ops
    >>> kept = keep_mask_from_bits(row_bits((1000,), seed=0), 9, rate=0.25)
    >>> 0.73 < float(ops.mean(ops.cast(kept, "float32"))) < 0.77
    True
    """
    rate = check_rate("rate", rate)
    half = (length + 1) // 2
    counts = ops.cast(ops.arange(half, dtype="int32"), "uint32")
    counts = _wrapped(counts * _word(0x9E3779B9))
    words = _wrapped(ops.cast(bits, "uint32") + counts)
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        words = ops.bitwise_xor(words, ops.right_shift(words, _word(shift)))
        words = _wrapped(words * _word(factor))
    others = _wrapped(ops.bitwise_xor(words, ops.left_shift(words, _word(16))))
    limit = _word(int(rate * 2**32))
    return ops.concatenate([words >= limit, others >= limit], axis=-1)[..., :length]


def _word(number: int):
    return ops.convert_to_tensor(number, "uint32")


def _wrapped(words):
    """The words modulo 2³²: Keras on PyTorch has int64 in place of uint32."""
    if keras.backend.standardize_dtype(words.dtype) == "uint32":
        return words
    return ops.bitwise_and(words, _word(0xFFFFFFFF))
