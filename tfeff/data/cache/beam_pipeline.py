"""Building of a cache by an Apache Beam pipeline."""

import os
from collections.abc import Iterable, Sequence

import keras_hub
import numpy as np

from tfeff.data.cache import layout
from tfeff.data.cache.finishing import finish
from tfeff.data.text.corpus import parts_of
from tfeff.data.text.packed_tokenizer import PackedTokenizer
from tfeff.utils.beam import BeamJobs, check_picklable
from tfeff.utils.files import remove_partial, scratch_folder


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
        check_picklable("documents", self._parts, "a corpus")

    def fill(
        self, directory: str, tokenizer: keras_hub.tokenizers.Tokenizer, wanted: dict
    ) -> None:
        """Writes the shards and the manifest into a folder that all workers see."""
        from tfeff.data.cache import beam_steps

        packed = PackedTokenizer.of(tokenizer)
        report = os.path.join(directory, "report.json")
        self._jobs.run(
            beam_steps.write_shards,
            self._parts,
            layout.SIZES,
            packed,
            wanted,
            directory,
            report,
        )
        remove_partial(directory)  # Of workers that were killed.
        shards, token_counts = beam_steps.read_report(report)
        lengths = []
        for shard in shards:
            path = os.path.join(directory, shard.file + beam_steps.LENGTHS)
            lengths.append(np.load(path))
            os.remove(path)
        os.remove(report)
        finish(directory, wanted, shards, token_counts, lengths)

    def corpus_hash(self, directory: str) -> str:
        """The hash of the documents; `directory` is that of a cache, seen by all."""
        from tfeff.data.cache import beam_steps

        with scratch_folder(directory) as folder:
            report = os.path.join(folder, "hashes.json")
            self._jobs.run(beam_steps.hash_shards, self._parts, layout.SIZES, report)
            return layout.corpus_hash(beam_steps.read_hashes(report))
