"""The manifest of a cache: its settings and sources, and the digests of its files."""

import concurrent.futures
import dataclasses
import hashlib
import json
import os

FILE_NAME = "manifest.json"
_FORMAT = 2  # since 2, records begin with the index of their document
_BLOCK = 1 << 20


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
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise ValueError(_damaged(path, "it is not a manifest")) from error
        if version != _FORMAT:
            raise ValueError(
                f"{path} has format {version!r}, and this version reads format "
                f"{_FORMAT}. Build the cache again in another directory."
            )
        if checksum != _checksum(content):
            raise ValueError(_damaged(path, "its content does not match its checksum"))
        content["shards"] = [Shard(**shard) for shard in content["shards"]]
        return cls(**content)

    def check_tokenizer(self, fingerprint: str) -> None:
        """Raises unless the fingerprint is that of the cache's tokenizer."""
        if fingerprint != self.tokenizer_hash:
            raise ValueError(
                "`tokenizer` must be the one that the cache was built with. Received: "
                f"a tokenizer with hash {fingerprint}, while the cache has "
                f"{self.tokenizer_hash}"
            )

    def verify(self, directory: str, checksums: bool) -> None:
        """Compares the size, and with `checksums` the digest, of every shard.

        Raises:
            ValueError: if a file is missing or differs; it names the first one.
        """

        def check(shard: Shard) -> None:
            path = os.path.join(directory, shard.file)
            try:
                size = os.path.getsize(path)
                if size != shard.num_bytes:
                    raise ValueError(
                        _damaged(path, f"it has {size} bytes, not {shard.num_bytes}")
                    )
                if checksums and _sha256(path) != shard.sha256:
                    raise ValueError(_damaged(path, "its checksum does not match"))
            except OSError as error:
                raise ValueError(_damaged(path, str(error.strerror))) from error

        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(check, self.shards))


def _damaged(path: str, reason: str) -> str:
    return (
        f"The cache file {path} is damaged: {reason}. Delete the cache and build it "
        "again."
    )


def _checksum(content: dict) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def _sha256(path: str) -> str:
    checksum = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            checksum.update(block)
    return checksum.hexdigest()
