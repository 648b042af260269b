"""The manifest of a cache: its settings and sources, and the digests of its files."""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
from typing import Any

import numpy as np

from tfeff.utils.digests import sha256
from tfeff.utils.paths import is_name
from tfeff.utils.reading import raise_unreadable

FILE_NAME = "manifest.json"
DAMAGED = "is damaged"  # In all messages about files that are not as written.
LENGTHS = "lengths.npy"  # [N] uint32, the int32 words of each record, in order.
_FORMAT = 4


class OtherTokenizer(ValueError):
    """A tokenizer that is not the one of a cache."""


@dataclasses.dataclass(frozen=True)
class Shard:
    """A file of a cache."""

    file: str
    num_bytes: int
    num_records: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Manifest:
    """The description of a cache: settings, hashes, counts and shards."""

    sequence_length: int
    cross_documents: bool
    vocabulary_size: int
    pad_token_id: int
    cls_token_id: int
    sep_token_id: int
    mask_token_id: int
    tokenizer_hash: str
    corpus_hash: str
    num_documents: int  # documents with at least one token
    num_sequences: int
    num_tokens: int
    unigram_entropy: float
    shards: list[Shard]
    lengths_sha256: str  # of `lengths.npy`

    @property
    def special_token_ids(self) -> list[int]:
        """The ids of the special tokens, which are not part of the text."""
        return [
            self.pad_token_id,
            self.cls_token_id,
            self.sep_token_id,
            self.mask_token_id,
        ]

    def write(self, directory: str) -> None:
        """Writes `manifest.json`, with a checksum of its own content."""
        content = dataclasses.asdict(self)
        document = {"format": _FORMAT, "checksum": _checksum(content), **content}
        with open(os.path.join(directory, FILE_NAME), "x", encoding="utf-8") as file:
            json.dump(document, file, indent=1)

    @classmethod
    def read(cls, directory: str) -> "Manifest":
        """Reads `manifest.json`.

        Raises:
            ValueError: if it is missing, of another format, or damaged.
        """
        path = os.path.join(directory, FILE_NAME)
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            version = content.pop("format")
            checksum = content.pop("checksum")
        except OSError as error:
            raise ValueError(
                "`directory` must be a cache made by `build_cache`. Received: "
                f"{directory!r}, whose {FILE_NAME} cannot be read: {error.strerror}"
            ) from error
        except (
            AttributeError,
            KeyError,
            RecursionError,
            TypeError,
            ValueError,
        ) as error:
            raise ValueError(damaged(path, "it is not a manifest")) from error
        if version != _FORMAT:
            raise ValueError(
                f"{path} has format {version!r}, and this version reads format "
                f"{_FORMAT}. Build the cache again in another directory."
            )
        if checksum != _checksum(content):
            raise ValueError(damaged(path, "its content does not match its checksum"))
        try:
            if isinstance(content.get("shards"), list):
                content["shards"] = [_parsed(Shard, x) for x in content["shards"]]
            manifest = _parsed(cls, content)
            _check_values(manifest)
        except ValueError as error:
            raise ValueError(damaged(path, str(error))) from error
        return manifest

    def check_tokenizer(self, fingerprint: str) -> None:
        """Raises unless the fingerprint is that of the cache's tokenizer."""
        if fingerprint != self.tokenizer_hash:
            raise OtherTokenizer(
                "`tokenizer` must be the one that the cache was built with. Received: "
                f"a tokenizer with hash {fingerprint}, while the cache has "
                f"{self.tokenizer_hash}"
            )

    def check_unchanged(self, directory: str) -> None:
        """Raises a ValueError if another cache lies in the folder by now."""
        if Manifest.read(directory) != self:
            raise ValueError(
                f"The cache {directory} {DAMAGED}: another one was built there since "
                "it was opened. Start again to read that one."
            )

    def verify(self, directory: str, checksums: bool) -> None:
        """Compares the size, and with `checksums` the digest, of every file.

        Raises:
            ValueError: if a file is missing or differs; it names the first one.
            OSError: if the system refuses to read one.
        """

        def check(file: str, num_bytes: int | None, digest: str) -> None:
            path = os.path.join(directory, file)
            try:
                size = os.path.getsize(path)
                if num_bytes not in (None, size):
                    raise ValueError(
                        damaged(path, f"it has {size} bytes, not {num_bytes}")
                    )
                if checksums and sha256(path) != digest:
                    raise ValueError(damaged(path, "its checksum does not match"))
            except OSError as error:
                raise_unreadable(error, path)
                raise ValueError(damaged(path, str(error.strerror))) from error

        files: list[tuple[str, int | None, str]] = [
            (shard.file, shard.num_bytes, shard.sha256) for shard in self.shards
        ]
        files.append((LENGTHS, None, self.lengths_sha256))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(check, *zip(*files)))
        self.lengths(directory)

    def lengths(self, directory: str) -> np.ndarray:
        """The words of each record, mapped into memory.

        Raises:
            ValueError: if the file has other content.
            OSError: if the system refuses to read it.
        """
        path = os.path.join(directory, LENGTHS)
        number = sum(shard.num_records for shard in self.shards)
        try:
            found = np.load(path, mmap_mode="r", allow_pickle=False)
        except Exception as error:  # A damaged header may say anything.
            raise_unreadable(error, path)
            raise ValueError(damaged(path, str(error))) from error
        if (
            not isinstance(found, np.memmap)
            or found.shape != (number,)
            or found.dtype != np.uint32
            or found.offset + found.nbytes != os.path.getsize(path)
        ):
            raise ValueError(damaged(path, f"it has not {number} lengths in uint32"))
        return found


def damaged(path: str, reason: str) -> str:
    """The message about a file of a cache that is not as it was written."""
    return (
        f"The cache file {path} {DAMAGED}: {reason}. Delete the cache and build it "
        "again."
    )


# The types of JSON that the types of fields have.
_JSON: dict[Any, tuple] = {
    bool: (bool,),
    int: (int,),
    float: (float, int),
    str: (str,),
    list[Shard]: (list,),
}


def _parsed(kind: type, content: Any) -> Any:
    """The dataclass of a JSON object; a ValueError tells why it is none."""
    if not isinstance(content, dict):
        raise ValueError(f"{content!r:.80} is no {kind.__name__.lower()}")
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name, field in fields.items():
        if name not in content:
            raise ValueError(f"it has no {name}")
        if type(content[name]) not in _JSON[field.type]:
            raise ValueError(f"{name} is {content[name]!r:.80}")
    if unknown := content.keys() - fields.keys():
        raise ValueError(f"it has an unknown {min(unknown)}")
    return kind(**content)


def _check_values(manifest: Manifest) -> None:
    """Raises a ValueError unless the names and numbers are those of a cache."""
    lowest = {"sequence_length": 3, "unigram_entropy": 0}
    lowest |= dict.fromkeys(("num_documents", "num_sequences", "num_tokens"), 1)
    for name, least in lowest.items():
        if not getattr(manifest, name) >= least:  # NaN, too, is out of range.
            raise ValueError(f"{name} is {getattr(manifest, name)}")
    for token_id in manifest.special_token_ids:
        if not 0 <= token_id < manifest.vocabulary_size:
            raise ValueError(
                f"there is a special token {token_id} among "
                f"{manifest.vocabulary_size} tokens"
            )
    for shard in manifest.shards:
        # A name that leads elsewhere would have other files read.
        if not is_name(shard.file):
            raise ValueError(f"{shard.file!r} is no name of a file")
        if shard.num_records < 1 or shard.num_bytes < 1:
            raise ValueError(f"{shard.file} has no records")
    if len({shard.file for shard in manifest.shards}) < len(manifest.shards):
        raise ValueError("it has a file twice")
    if sum(shard.num_records for shard in manifest.shards) != manifest.num_sequences:
        raise ValueError("its files do not have num_sequences records together")


def _checksum(content: dict) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()
