"""Building of a cache by an Apache Beam pipeline."""

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import keras_hub
import numpy as np

from tfeff.data.cache import layout
from tfeff.data.cache.finishing import finish
from tfeff.data.cache.shards import WrittenShard
from tfeff.data.text.corpus import parts_of
from tfeff.data.text.packed_tokenizer import PackedTokenizer
from tfeff.storage.manifest import File, Manifest, local_files, manifest_of
from tfeff.storage.place import Place
from tfeff.storage.publishing import begin, complete
from tfeff.storage.shared_folder import SharedFolder, new_parts, shared_scratch
from tfeff.storage.threads import THREADS
from tfeff.utils.beam import BeamJobs, check_picklable
from tfeff.utils.partial import remove_partial


class CachePipeline:
    """Writes the shards of a cache, or hashes them, by workers of Beam.

    Args:
        documents: the corpus; its parts are read by the workers.
        flags: flags of Beam's pipeline options.

    Raises:
        ImportError, TypeError, ValueError: as of `BeamJobs`.
    """

    def __init__(self, documents: Iterable[str], flags: Sequence[str] | BeamJobs):
        self._jobs = BeamJobs.of(flags)
        self._parts = parts_of(documents)
        check_picklable(self._parts)

    def fill(
        self, directory: str, tokenizer: keras_hub.tokenizers.Tokenizer, wanted: dict
    ) -> None:
        """Writes a cache into a local folder that all workers see."""
        folder = SharedFolder("directory", directory)
        self._write(folder, tokenizer, wanted, directory)
        remove_partial(directory)  # Workers that were killed left them.

    def publish(
        self, place: Place, tokenizer: keras_hub.tokenizers.Tokenizer, wanted: dict
    ) -> None:
        """Writes a cache to a place that all workers see, and its manifest last.

        Workers upload their shards, which this process does not download.
        """
        begin(place)
        parts = new_parts()
        folder = SharedFolder("directory", f"{place.url}/{parts}")
        try:
            with tempfile.TemporaryDirectory() as own:
                files = {
                    shard.file: File(
                        shard.num_bytes, shard.sha256, f"{parts}/{shard.file}"
                    )
                    for shard in self._write(folder, tokenizer, wanted, own)
                }
                paths = local_files(own)
                for name, file in manifest_of(paths).files.items():
                    files[name] = dataclasses.replace(file, at=f"{parts}/{name}")
                    place.put(paths[name], files[name].at)
            complete(place, Manifest(files))
        except BaseException:
            with contextlib.suppress(OSError, ValueError):  # The first error counts.
                folder.remove(Place("directory", folder.path).files())
            raise

    def corpus_hash(self, directory: str) -> str:
        """The hash of the documents; `directory` is that of a cache, seen by all."""
        from tfeff.data.cache import beam_steps

        files = [beam_steps.REPORT]
        with shared_scratch("directory", directory, files) as folder:
            self._jobs.run(beam_steps.hash_shards, self._parts, layout.SIZES, folder)
            return layout.corpus_hash(beam_steps.read_hashes(folder))

    def _write(
        self,
        folder: SharedFolder,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        wanted: dict,
        own: str,
    ) -> list[WrittenShard]:
        """Has workers write the shards; writes the rest of the cache itself.

        Args:
            folder: of the shards.
            tokenizer, wanted: of the cache.
            own: the local folder for the rest.
        """
        from tfeff.data.cache import beam_steps

        self._jobs.run(
            beam_steps.write_shards,
            self._parts,
            layout.SIZES,
            PackedTokenizer.of(tokenizer),
            wanted,
            folder,
        )
        shards, token_counts = beam_steps.read_report(folder)
        names = [shard.file + beam_steps.LENGTHS for shard in shards]

        def read(name):
            with folder.read(name) as path:
                return np.load(path)

        with ThreadPoolExecutor(THREADS) as pool:
            lengths = list(pool.map(read, names))
        folder.remove([*names, beam_steps.REPORT])
        finish(own, wanted, shards, token_counts, lengths)
        return shards
