"""The attention of each head: its map, and how alike the heads' maps are."""

import math
import os
from collections.abc import Iterable

import keras
import numpy as np
from keras import ops

from tfeff.layers.record_layers import PROBABILITIES
from tfeff.plots.attention_maps import padded, recordings
from tfeff.plots.figure import check_figure_path, check_layer, figure_axes
from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_integer


def head_maps(
    encoder: keras.Model, batches: Iterable, length: int = 50
) -> list[np.ndarray]:
    """The attention of each head, averaged over examples, without dropout.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.
        length: integer, the number of positions at the start of the examples.

    Returns:
        A float64 array `[N, t, t]` for each layer: the attention of position `i` to
        position `j`, averaged over the examples in which both are real tokens; NaN
        where there are none. `t` is `length`, or the longest batch if it is shorter.

    Raises:
        ValueError: as `attention_maps`, or if `length` is below 1.
        TypeError: as `attention_maps`, or if `length` is not an integer.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=50)
    >>> ids = np.ones((2, 6), "int32")
    >>> batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    >>> [maps.shape for maps in head_maps(encoder, [batch])]
    [(2, 6, 6), (2, 6, 6)]
    """
    length = check_integer("length", length)
    totals: list[np.ndarray] = []
    pairs = np.zeros((0, 0), "int64")
    for mask, recording in recordings(encoder, batches, PROBABILITIES):
        mask = mask[:, :length]
        both = mask[:, :, None] & mask[:, None, :]
        size = max(len(pairs), mask.shape[1])
        totals = totals or [np.zeros((x.shape[1], 0, 0)) for x in recording.attention]
        totals, pairs = [padded(x, size) for x in totals], padded(pairs, size)
        seen = slice(mask.shape[1])
        pairs[seen, seen] += both.sum(0)
        for total, scores in zip(totals, recording.attention):
            scores = ops.cast(scores[:, :, seen, seen], "float32")
            scores = np.where(both[:, None], ops.convert_to_numpy(scores), 0)
            total[:, seen, seen] += scores.sum(0, dtype="float64")
    with np.errstate(invalid="ignore"):
        return [total / pairs for total in totals]


def head_similarity(
    encoder: keras.Model, batches: Iterable
) -> tuple[np.ndarray, list[int]]:
    """How alike the attention maps of all heads of all layers are.

    The cosine of the angle between the maps of two heads, over all examples `b` and all
    pairs of real tokens:

        S[g, h] = Σ A_g[b, i, j] A_h[b, i, j] / sqrt(Σ A_g[b, i, j]² Σ A_h[b, i, j]²)

    So it is 1 if two heads attend alike in every example, and 0 if they never attend
    to a common key.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.

    Returns:
        `(similarity, heads)`: a float64 array `[H, H]`, from 0 to 1, with the heads of
        the first layer first and NaN for heads that attend to nothing; and the number
        of heads of each layer.

    Raises:
        TypeError, ValueError: as `attention_maps`.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=50)
    >>> ids = np.ones((2, 6), "int32")
    >>> batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    >>> similarity, heads = head_similarity(encoder, [batch])
    >>> similarity.shape, heads
    ((4, 4), [2, 2])

    Reference:
        Saidov, "Optimized BERT modifications", "Motivation": the heads share a limited
        set of patterns; and "Purpose" of stacking: so do the layers.
    """
    products, heads = 0, []
    for mask, recording in recordings(encoder, batches, PROBABILITIES):
        both = mask[:, :, None] & mask[:, None, :]
        heads = [scores.shape[1] for scores in recording.attention]
        for index, pairs in enumerate(both):
            maps = [
                ops.convert_to_numpy(ops.cast(scores[index], "float32"))[:, pairs]
                for scores in recording.attention
            ]
            rows = np.concatenate(maps).astype("float64")
            products = products + rows @ rows.T
    norms = np.sqrt(np.diag(products))
    with np.errstate(invalid="ignore"):
        # Rounding may go beyond 1.
        return np.minimum(products / np.outer(norms, norms), 1), heads


@paths(path=REPLACE)
def attention_heads(
    encoder: keras.Model,
    batches: Iterable,
    path: str | os.PathLike,
    length: int = 50,
    layer: int | None = None,
) -> None:
    """Draws the attention map of each head, averaged over examples.

    There is one panel for each layer, with the maps of its heads side by side, row by
    row, from 0 (white) to each head's largest value (dark).

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.
        path: the PNG file to write; replaced if it is there.
        length: integer, how many positions to show.
        layer: integer, the index of the only layer to show; `None` for all layers.

    Raises:
        ValueError: as `head_maps`, if there is no such layer, or if the folder of
            `path` is missing.
        TypeError: as `head_maps`, or if `path` is not a path.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    encoder, _ = tfeff.tasks.load_pretrained("runs/first")
    cache = tfeff.data.open_cache("runs/first/cache/validation")
    batches = cache.batches(tfeff.data.MaskedTokens(), 16, repeat=False).take(8)
    tfeff.plots.attention_heads(encoder, batches, "heads.png")
    ```

    Reference:
        Saidov, "Optimized BERT modifications", "Motivation": the main patterns.
    """
    layer = check_layer(layer, encoder)
    check_figure_path(path)
    maps = head_maps(encoder, batches, length)
    shown = range(len(maps)) if layer is None else [layer]
    with figure_axes(path, len(shown), size=(4, 4)) as panels:
        for index, axes in zip(shown, panels):
            axes.imshow(
                _side_by_side(maps[index]),
                cmap="Blues",
                vmin=0,
                vmax=1,
                interpolation="nearest",
            )
            axes.set(title=f"layer {index}", xticks=[], yticks=[])


def _side_by_side(heads):
    """The maps `[N, t, t]`, each over its largest value, in one image."""
    count, length, _ = heads.shape
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    # One NaN, which stays empty, between two maps.
    image = np.full((rows * (length + 1) - 1, columns * (length + 1) - 1), np.nan)
    for index, head in enumerate(heads):
        row, column = (place * (length + 1) for place in divmod(index, columns))
        largest = np.nanmax(head, initial=0) or 1.0
        image[row : row + length, column : column + length] = head / largest
    return image


@paths(path=REPLACE)
def similar_heads(
    encoder: keras.Model, batches: Iterable, path: str | os.PathLike
) -> None:
    """Draws how alike the attention maps of all heads of all layers are.

    The numbers are those of `tfeff.plots.head_similarity`. Lines part the layers.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.
        path: the PNG file to write; replaced if it is there.

    Raises:
        ValueError: as `attention_maps`, or if the folder of `path` is missing.
        TypeError: as `attention_maps`, or if `path` is not a path.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    encoder, _ = tfeff.tasks.load_pretrained("runs/first")
    cache = tfeff.data.open_cache("runs/first/cache/validation")
    batches = cache.batches(tfeff.data.MaskedTokens(), 16, repeat=False).take(8)
    tfeff.plots.similar_heads(encoder, batches, "similar.png")
    ```
    """
    check_figure_path(path)
    similarity, heads = head_similarity(encoder, batches)
    ends = np.cumsum(heads) - 0.5
    with figure_axes(path, size=(6, 5)) as (axes,):
        image = axes.imshow(
            similarity, cmap="viridis", vmin=0, vmax=1, interpolation="nearest"
        )
        axes.figure.colorbar(image, ax=axes)
        for end in ends[:-1]:
            axes.axhline(end, color="white", linewidth=0.5)
            axes.axvline(end, color="white", linewidth=0.5)
        middles = ends - np.array(heads) / 2
        axes.set(xlabel="layer", ylabel="layer", xticks=middles, yticks=middles)
        axes.set_xticklabels(range(len(heads)))
        axes.set_yticklabels(range(len(heads)))
