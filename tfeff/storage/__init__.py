"""Corpora, caches, runs, presets and exports at URLs: `s3://`, `gs://`, `hdfs://`, …

Functions of tfeff that take a path take a URL, too, of any scheme that fsspec knows.
They work on local copies: `fetch` downloads, `publish` uploads, the manifest last.
"""

from tfeff.storage.local import fetch
from tfeff.storage.publishing import publish

__all__ = ["fetch", "publish"]
