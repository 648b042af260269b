"""What dropout keeps, from a few random bits stretched over many elements."""

import keras
from keras import ops


def keep_mask(shape, rate: float, seed):
    """Draws which elements dropout keeps: each, but a share of `rate`.

    A row (the last axis) gets 32 random bits `r` from the backend's generator. From
    them come words `h(r + γ w)`, where `w` counts words and `h` is an integer hash in
    which every bit depends on all, and from each word two numbers with independent
    leading 16 bits, for one element in either half of the row. An element is dropped if
    its number is below `2³² rate`. So the generator, by far the most expensive part of
    dropout, runs once a row, and the rest is arithmetic that a compiler fuses into what
    reads the result.

    Args:
        shape: shape of the result, of integers and integer tensors.
        rate: float in [0, 1), share of dropped elements.
        seed: `keras.random.SeedGenerator`, or an integer.

    Returns:
        Bool tensor of the shape, false at dropped elements. The same for the same
        seed.

    Example:

    >>> from keras import ops
    >>> kept = keep_mask((1000, 9), rate=0.25, seed=0)
    >>> 0.73 < float(ops.mean(ops.cast(kept, "float32"))) < 0.77
    True
    """
    *rows, length = shape
    return keep_mask_from_bits(row_bits(rows, seed), length, rate)


def row_bits(rows, seed):
    """The random bits of each row that `keep_mask` stretches.

    Rows that are drawn together may be stretched in parts, such as blocks of queries.

    Args:
        rows: shape of the rows, of integers and integer tensors.
        seed: `keras.random.SeedGenerator`, or an integer.

    Returns:
        int32 tensor `[*rows, 1]`.
    """
    return keras.random.randint((*rows, 1), -(2**31), 2**31 - 1, seed=seed)


def keep_mask_from_bits(bits, length, rate: float):
    """`keep_mask` of rows whose bits are drawn.

    Args:
        bits: int32 tensor `[..., 1]`, as from `row_bits`.
        length: integer or integer tensor, elements of a row.
        rate: float in [0, 1), share of dropped elements.

    Returns:
        Bool tensor `[..., length]`, false at dropped elements.
    """
    half = (length + 1) // 2
    counts = ops.cast(ops.arange(half), "uint32") * _word(0x9E3779B9)
    words = ops.cast(bits, "uint32") + counts
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        words = ops.bitwise_xor(words, ops.right_shift(words, _word(shift)))
        words = words * _word(factor)
    others = ops.bitwise_xor(words, ops.left_shift(words, _word(16)))
    limit = _word(int(rate * 2**32))
    return ops.concatenate([words >= limit, others >= limit], axis=-1)[..., :length]


def _word(number: int):
    return ops.convert_to_tensor(number, "uint32")
