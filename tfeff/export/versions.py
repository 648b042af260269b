import os

from tfeff.storage.fetching import published_files
from tfeff.utils.numbered import in_order, numbers
from tfeff.utils.paths import check_path, is_url

_SAVED_MODEL = "saved_model.pb"


def versions(path: str | os.PathLike) -> list[str]:
    """The exports in a folder, the oldest first: TensorFlow Serving takes the last.

    Args:
        path: a folder of versions, as `save_version` writes them; or a version itself,
            which is then the only one. So are the exports of recipes before they had
            versions.

    Returns:
        The paths of the folders whose names are numbers, in their order; none where
        there is no such folder.

    Raises:
        TypeError: if `path` is no path.

    Example:
    ```python
    import tfeff

    assert tfeff.export.versions("not_there_yet") == []
    for path in tfeff.export.versions("export"):
        tfeff.export.check_export(path)
    ```
    """
    if is_url(path):
        files = published_files("path", str(path))
        if _SAVED_MODEL in files:
            return [str(path)]
        found = in_order({name.partition("/")[0] for name in files if "/" in name})
        return [f"{str(path).rstrip('/')}/{number}" for number in found]
    path = check_path("path", path)
    if os.path.isfile(os.path.join(path, _SAVED_MODEL)):
        return [path]
    return [os.path.join(path, number) for number in numbers(path)]
