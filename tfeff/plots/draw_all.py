"""All figures of an encoder."""

import os
from collections.abc import Iterable

import keras

from tfeff.plots.attention import draw_average, draw_concentration
from tfeff.plots.attention_maps import attention_maps
from tfeff.plots.head_maps import attention_heads, similar_heads
from tfeff.plots.layer_changes import layer_stability
from tfeff.plots.partitions import partition_functions, partition_values
from tfeff.plots.relative_tables import relative_embeddings, relative_tables
from tfeff.storage.arguments import ADD_OR_REPLACE, paths
from tfeff.utils.checks import check_finite_batches
from tfeff.utils.paths import check_path


@paths(folder=ADD_OR_REPLACE)
def draw_all(
    encoder: keras.Model, batches: Iterable, folder: str | os.PathLike
) -> list[str]:
    """Draws all figures of an encoder.

    | file | figure |
    |---|---|
    | `average_attention.png` | `average_attention` |
    | `diagonal_concentration.png` | `diagonal_concentration` |
    | `attention_heads.png` | `attention_heads` |
    | `similar_heads.png` | `similar_heads` |
    | `layer_stability.png` | `layer_stability` |
    | `partition_functions.png` | `partition_functions`, if it has partitions |
    | `relative_embeddings.png` | `relative_embeddings`, if it has tables |

    Args:
        encoder: `tfeff.encoders.Encoder`.
        batches: finitely many batches, as for `tfeff.plots.attention_maps`.
        folder: the folder to write to; made if missing. These files are replaced.

    Returns:
        The paths of the files.

    Raises:
        ValueError: as `attention_maps`.
        ImportError: if matplotlib is not installed.

    Example:
    ```python
    import tfeff

    encoder, _ = tfeff.tasks.load_pretrained("runs/first")
    cache = tfeff.data.open_cache("runs/first/cache/validation")
    batches = cache.batches(tfeff.data.MaskedTokens(), 16, repeat=False).take(8)
    tfeff.plots.draw_all(encoder, batches, "runs/first/plots")
    ```
    """
    folder = check_path("folder", folder)
    # Batches that can be read only once serve all figures, too.
    batches = list(check_finite_batches(batches))
    maps = attention_maps(encoder, batches)
    drawings = {
        "average_attention": lambda path: draw_average(maps, path, length=50),
        "diagonal_concentration": lambda path: draw_concentration(maps, path, 4),
        "attention_heads": lambda path: attention_heads(encoder, batches, path),
        "similar_heads": lambda path: similar_heads(encoder, batches, path),
        "layer_stability": lambda path: layer_stability(encoder, batches, path),
    }
    if partition_values(encoder):
        drawings["partition_functions"] = lambda path: partition_functions(
            encoder, path
        )
    if relative_tables(encoder):
        drawings["relative_embeddings"] = lambda path: relative_embeddings(
            encoder, path
        )
    os.makedirs(folder, exist_ok=True)
    drawn = []
    for name, draw in drawings.items():
        drawn.append(os.path.join(folder, f"{name}.png"))
        draw(drawn[-1])
    return drawn
