"""Data sets of one's own that a file beside their examples describes."""

import inspect
import os
from collections.abc import Callable

from tfeff.datasets.conll import conll_dataset
from tfeff.datasets.dataset import Dataset
from tfeff.datasets.files import json_file
from tfeff.datasets.tsv import tsv_dataset
from tfeff.storage.arguments import READ, paths
from tfeff.utils.near_misses import near_miss
from tfeff.utils.paths import check_path, is_name

DESCRIPTION = "dataset.json"


@paths(folder=READ)
def described_dataset(name: str, folder: str | os.PathLike) -> Dataset:
    """The data set that the file `folder/name/dataset.json` describes.

    It holds the arguments of `tsv_dataset`, of texts, or of `conll_dataset`, of words,
    without the name, and if wanted `metric_names`. The commands that take `--task` and
    `--data` read it, so that a data set of one's own needs no Python. There the name
    must be none of tfeff's own data sets.

    Args:
        name: the name of the data set and of its folder.
        folder: the folder that holds that one; `--data` of the commands.

    Returns:
        A `Dataset`, which is not registered.

    Raises:
        TypeError, ValueError: if the name or the folder is none, there is no such file,
            or it lacks an argument or has another one, or one of another type or value;
            the message has the file.

    Example:
    ```python
    import json
    import os
    import tfeff

    os.makedirs("data/Weather", exist_ok=True)
    with open("data/Weather/dataset.json", "w") as file:
        json.dump(
            {"texts": ["report"], "label": "sky", "label_names": ["dry", "wet"]}, file
        )
    with open("data/Weather/dev.tsv", "w") as file:
        file.write("report\\tsky\\nIt rains.\\twet\\nIt shines.\\tdry\\n")
    weather = tfeff.datasets.described_dataset("Weather", "data")
    dev = weather.read("dev", "data")
    assert weather.metrics(dev, [1, 1]) == {"accuracy": 0.5}
    ```
    """
    if not isinstance(name, str):
        raise TypeError(f"`name` must be a string. Received: name={name!r:.80}")
    folder = check_path("folder", folder)
    path = os.path.join(folder, name, DESCRIPTION)
    if not is_name(name) or not os.path.isfile(path):
        raise ValueError(
            f"`name` must be that of a folder in `folder`, with a {DESCRIPTION}. "
            f"Received: name={name!r}, folder={folder!r}"
        )
    found = json_file(path)
    # `label_names` are of texts, too.
    are_words = "types" in found or (found and {*found} <= {*_keys(conll_dataset)})
    if "texts" not in found and not are_words:
        raise ValueError(
            f"{path} must have the key 'texts', of texts, or 'types' or 'label_names', "
            f"of words. Received: {list(found)}"
        )
    make: Callable[..., Dataset] = tsv_dataset if "texts" in found else conll_dataset
    keys = _keys(make)
    for key in found:
        if key not in keys:
            raise ValueError(
                f"{path} must have keys of {list(keys)}. Received: "
                f"{key!r}.{near_miss(key, keys)}"
            )
    for key, is_needed in keys.items():
        if is_needed and key not in found:
            raise ValueError(
                f"{path} must have the key {key!r}. Received: {list(found)}"
            )
    try:
        return make(name, **found)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} describes no data set: {error}") from error


def _keys(make):
    """The keys of a description, and whether each is needed."""
    parameters = inspect.signature(make).parameters.values()
    keys = {p.name: p.default is p.empty for p in parameters if p.kind != p.VAR_KEYWORD}
    del keys["name"]
    return keys | {"metric_names": False}
