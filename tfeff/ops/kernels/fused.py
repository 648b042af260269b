"""Softmax attention by a fused kernel of the backend, if it has one."""

import math

import keras
from keras import ops

from tfeff.ops.kernels import backends

_HEAD_SIZES = range(8, 129, 8)


def can_fuse(query, key) -> bool:
    """Whether `fused_attention` supports such queries and keys, `[B, N, t or S, H]`.

    It does on JAX with an NVIDIA GPU (Ampere and later), in half precision, with heads
    of at most 128 features, a multiple of 8, and even lengths, which JAX requires for
    gradients; `keras.config.disable_flash_attention()` turns it off.
    """
    sizes = *query.shape, *key.shape
    return (
        backends.cuda_capability() >= 8.0
        and keras.backend.standardize_dtype(query.dtype) in ("bfloat16", "float16")
        and query.shape[-1] in _HEAD_SIZES
        and 0 not in sizes
        and query.shape[2] % 2 == key.shape[2] % 2 == 0
        and keras.config.is_flash_attention_enabled() is not False
    )


def fused_attention(query, key, value, visible=None):
    """Equals `softmax_values(dot_product_scores(query, key), value, visible)`.

        X̄[h] = softmax(Q[h] K[h]ᵀ / sqrt(H)) V[h]

    `can_fuse` says when it applies. Neither scores nor masks of pairs are saved: the
    keys are sorted, visible ones first, and the kernel gets their number. Rows without
    a visible key give 0.

    Args:
        query: half precision tensor `[B, N, t, H]`.
        key, value: tensors `[B, N, S, H]` of the same dtype.
        visible: bool tensor `[B, N or 1, 1, S]`, true where a key is visible, or `None`
            when all are.

    Returns:
        Tensor `[B, N, t, H]`.

    Reference:
        Dao et al., "FlashAttention".
    """
    shape = query.shape

    def by_head(x, *axes):
        """Each head as a sequence, which needs no transpose."""
        x = ops.broadcast_to(x, (*shape[:2], *x.shape[2:]))
        return ops.reshape(x, (math.prod(shape[:2]), *axes))

    counts = lengths = None
    if visible is not None:
        counts = ops.sum(ops.cast(visible, "int32"), axis=-1, keepdims=True)
        # A row without visible keys attends to one, or it would be 0 / 0.
        lengths = by_head(counts + ops.cast(counts == 0, "int32"))
        order = by_head(ops.argsort(ops.logical_not(visible), axis=-1), -1)
        visible = ops.swapaxes(visible, 2, 3)
        # Masked keys get no gradient, whatever the kernel returns for them.
        key, value = (ops.where(visible, x, ops.zeros_like(x)) for x in (key, value))
    query, key, value = (by_head(x, -1, shape[3]) for x in (query, key, value))
    if visible is not None:
        key, value = (backends.rows_in_order(x, order) for x in (key, value))
    context = backends.attention(*(x[:, :, None] for x in (query, key, value)), lengths)
    context = ops.reshape(context, shape)
    return context if counts is None else context * ops.cast(counts > 0, context.dtype)
