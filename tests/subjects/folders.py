"""Folders of small files, here and in `store://`."""

import pathlib


def write(folder, contents):
    for name, text in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def read(folder):
    paths = [path for path in pathlib.Path(folder).glob("**/*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text() for path in paths}


def remote(store, name=""):
    return pathlib.Path(store.root, "bucket", "folder", name)
