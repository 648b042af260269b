"""A scheme of fsspec over a local folder, as poor as an object store."""

import contextlib
import os
import time
import uuid

import fsspec
from fsspec.implementations.local import LocalFileSystem

from tfeff.storage import lease, remote_run


class Store(LocalFileSystem):
    """`store://`: nothing can be renamed, and listings lag behind.

    Attributes:
        root: the folder that it is over.
        lag: seconds until a listing has a new file.
        conditional: whether of several that create a file at once one succeeds.
        fails: called with each path before it is written; may raise.
    """

    protocol = "store"
    root = ""
    lag = 0.3
    conditional = True
    cachable = False

    @staticmethod
    def fails(path):
        del path

    @classmethod
    def _strip_protocol(cls, path):
        if path.startswith("store://"):
            path = f"{cls.root}/{path.removeprefix('store://')}"
        return super()._strip_protocol(path)

    def unstrip_protocol(self, name):
        return f"store://{name.removeprefix(self.root).strip('/')}"

    def ls(self, path, detail=False, **kwargs):
        found = super().ls(path, detail=True, **kwargs)
        old = time.time() - self.lag
        found = [x for x in found if x["type"] != "file" or x["mtime"] <= old]
        return found if detail else [x["name"] for x in found]

    def put_file(self, lpath, rpath, **kwargs):
        self.fails(rpath)
        super().put_file(lpath, rpath, **kwargs)

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        self.fails(path)
        if mode == "create" and not self.conditional:
            mode = "overwrite"
        if mode != "create":
            super().pipe_file(path, value, mode=mode, **kwargs)
            return
        # A look and a write would be two steps. Here it is there at once, and whole.
        new = f"{self.root}-{uuid.uuid4().hex}"
        super().pipe_file(new, value)
        try:
            os.link(new, self._strip_protocol(path))
        finally:
            os.remove(new)

    def rm_file(self, path):
        super().rm_file(path)
        folder = os.path.dirname(self._strip_protocol(path))
        with contextlib.suppress(OSError):  # Folders are there with files alone.
            while folder != self.root:
                os.rmdir(folder)
                folder = os.path.dirname(folder)

    def mv(self, *_, **__):
        raise AssertionError("object stores do not rename")

    mv_file = rename = move = mv


def make_quick_store(root, monkeypatch) -> type[Store]:
    """As `make_store`, without lags, for runs that are published at once."""
    monkeypatch.setattr(lease, "SECONDS", 30.0)
    monkeypatch.setattr(lease, "_SETTLE", 0.0)
    monkeypatch.setattr(remote_run, "WATCH_SECONDS", 0.05)
    store = make_store(root, monkeypatch)
    monkeypatch.setattr(store, "lag", 0)
    return store


def make_store(root, monkeypatch) -> type[Store]:
    """The scheme `store://` over a folder, and copies of it in another one."""
    root.mkdir()
    monkeypatch.setattr(Store, "root", str(root))
    monkeypatch.setenv("TFEFF_CACHE", str(root.parent / "copies"))
    fsspec.register_implementation("store", Store, clobber=True)
    return Store
