import os

from tfeff.export.versions import versions
from tfeff.storage.local import current_folder
from tfeff.utils.digests import FILE_NAME, check_digests, files_below, read_digests

# TensorFlow Serving's own place for files beside a model, such as requests to warm up.
_OF_THE_SERVER = "assets.extra/"


def check_export(path: str | os.PathLike) -> None:
    """Compares every file of an export with the digest that was written beside it.

    `save_for_serving` writes `SHA256SUMS` into the folder. Where there is no tfeff,
    `sha256sum --check SHA256SUMS` in the folder does the same.

    Args:
        path: the folder that `save_for_serving` or `save_version` wrote; or a folder of
            versions, of which the newest is checked. What is at a URL is downloaded for
            the comparison, whatever copy this machine has.

    Raises:
        TypeError: if `path` is no path.
        ValueError: if there is no `SHA256SUMS` in it, or naming the files that are
            missing, differ, or are not in it (but for `assets.extra/`, where TensorFlow
            Serving has files of yours).

    Example:
    ```python
    import tfeff

    documents = [f"{i} green bottles hanging on the wall" for i in range(100)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=40)
    encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=40)
    tfeff.export.save_for_serving(encoder, tokenizer, "export/1")
    tfeff.export.check_export("export/1")
    ```
    """
    with current_folder("path", ([path] + versions(path))[-1]) as folder:
        if not os.path.isfile(os.path.join(folder, FILE_NAME)):
            raise ValueError(
                f"`path` must be a folder with a file {FILE_NAME}, as "
                f"`save_for_serving` writes it. Received: path={path!r}"
            )
        check_digests(folder)
        known = read_digests(folder)
        others = [
            name
            for name in files_below(folder)
            if name not in known and not name.startswith(_OF_THE_SERVER)
        ]
        if others:
            raise ValueError(
                f"{FILE_NAME} of {folder} must have all files of the export. It has "
                f"not: {', '.join(others)}"
            )
