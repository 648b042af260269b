"""The distances and angles between each layer's input and its output."""

import dataclasses
import os
from collections.abc import Iterable, Mapping

import keras
import numpy as np
from keras import ops

from tfeff.layers.encoder_block import blocks_of
from tfeff.plots.attention_maps import recordings
from tfeff.plots.figure import check_figure_path, figure_axes, legend_beside
from tfeff.storage.arguments import REPLACE, paths
from tfeff.utils.checks import check_finite_batches


@dataclasses.dataclass(frozen=True)
class LayerChanges:
    """Means over real tokens, for the input `x` and the output `y` of each layer.

        distances = mean ‖y - x‖₂,   degrees = mean arccos(x · y / (‖x‖ ‖y‖)) · 180 / π

    Args:
        distances: float64 array `[L]`.
        degrees: float64 array `[L]`, from 0 to 180.

    Example: see `layer_changes`.
    """

    distances: np.ndarray
    degrees: np.ndarray


def layer_changes(encoder: keras.Model, batches: Iterable) -> LayerChanges:
    """How far, and by what angle, each layer of an encoder moves hidden states.

    Small numbers in all layers are what ALBERT's authors call stable. Layers may share
    their weights or not. The angle to a state of zeros counts as 90 degrees.

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.

    Returns:
        `LayerChanges`.

    Raises:
        ValueError: if a batch lacks an input, there is no batch or no real token, or
            `batches` is an infinite `tf.data.Dataset`.
        TypeError: if a batch is not a dict of inputs, or a tuple that starts with one.

    Example:

    >>> import tfeff
    >>> encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=50)
    >>> ids = np.ones((2, 6), "int32")
    >>> batch = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids}
    >>> layer_changes(encoder, [batch]).degrees.shape
    (2,)

    Reference:
        Lan et al., "ALBERT", section 3.1 and figure 1; Saidov, "Optimized BERT
        modifications", "Cross-layer parameter sharing".
    """
    totals = np.zeros((2, len(blocks_of(encoder))))
    count = 0
    for mask, recording in recordings(encoder, batches, None):
        count += mask.sum()
        states = [
            ops.convert_to_numpy(ops.cast(state, "float32"))[mask].astype("float64")
            for state in recording.hidden_states
        ]
        for layer, (x, y) in enumerate(zip(states, states[1:])):
            norms = np.linalg.norm(x, axis=-1) * np.linalg.norm(y, axis=-1)
            products = (x * y).sum(-1)
            cosines = np.divide(
                products, norms, out=np.zeros_like(norms), where=norms > 0
            )
            angles = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
            totals[:, layer] += np.linalg.norm(y - x, axis=-1).sum(), angles.sum()
    return LayerChanges(*(totals / count))


@paths(path=REPLACE)
def layer_stability(
    encoders: Mapping[str, object] | object, batches: Iterable, path: str | os.PathLike
) -> None:
    """Draws how far, and by what angle, each layer moves hidden states.

    The left panel shows the L2 distances of the inputs and outputs of layers, the right
    one their angles in degrees, as in `tfeff.plots.layer_changes`. Two encoders that
    differ only in `sharing` show what shared weights do.

    Args:
        encoders: `tfeff.encoders.Encoder`, or a dict from labels to several that take
            the same batches.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.
        path: the PNG file to write; replaced if it is there.

    Raises:
        ValueError: as `layer_changes`, if there is no encoder, or if the folder of
            `path` is missing.
        TypeError: as `layer_changes`, if `path` is not a path, or if an encoder is
            none.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    shared, tokenizer = tfeff.tasks.load_pretrained("runs/first")
    other = tfeff.encoders.build(
        "albert_base", vocabulary_size=40, hidden_dim=24, num_layers=2
    )
    cache = tfeff.data.open_cache("runs/first/cache/validation")
    batches = cache.batches(tfeff.data.MaskedTokens(), 16, repeat=False).take(8)
    encoders = {"pretrained": shared, "new": other}
    tfeff.plots.layer_stability(encoders, batches, "stability.png")
    ```

    Reference:
        Lan et al., "ALBERT", figure 1.
    """
    if not isinstance(encoders, Mapping):
        encoders = {"": encoders}
    if not encoders:
        raise ValueError("`encoders` must hold an encoder. Received: none")
    for encoder in encoders.values():
        if not hasattr(encoder, "blocks"):
            raise TypeError(
                "`encoders` must be a `tfeff.encoders.Encoder`, or map labels to "
                f"several. Received: {encoder!r:.80}"
            )
    check_figure_path(path)
    # Batches that can be read only once serve all encoders, too.
    batches = list(check_finite_batches(batches))
    changes = {
        label: layer_changes(encoder, batches) for label, encoder in encoders.items()
    }
    with figure_axes(path, 2, size=(4.5, 3.5)) as panels:
        for name, axes in zip(("distances", "degrees"), panels):
            for label, change in changes.items():
                values = getattr(change, name)
                axes.plot(range(len(values)), values, marker=".", label=label)
            axes.set(xlabel="layer")
        if any(changes):
            legend_beside(panels[-1])
        panels[0].set(ylabel="L2 distance of input and output")
        panels[1].set(ylabel="angle of input and output (degrees)")
