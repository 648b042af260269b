"""A small model of cost: what training, input, checkpoints and corpora take at scale.

Each function is one formula. What is measured comes in as an argument; what is assumed
is a constant here.
"""

import dataclasses

from collectives import CORES, Collective, seconds

from tfeff.data.cache.layout import SIZES

BYTES_A_TOKEN = 4.0  # Of English text, in pieces of 32,000 or so.
BYTES_A_DOCUMENT = 4_000
BEAM_FACTOR = 2.0  # Processor time by Beam's workers over that of threads.
RECORD_FRAME = 3  # int32 words beside the tokens: the document, [CLS], [SEP].
RECORD_BYTES = 16  # Of a TFRecord beside its content.
LENGTH_BYTES = 4  # Of a record in lengths.npy.
CORES_A_HOST = 8  # Replicas of a TPU v3 host, of four chips.


@dataclasses.dataclass(frozen=True)
class Step:
    """The training step of one replica, as the TPU's compiler estimates it."""

    seconds: float
    sequences: int
    length: int
    weights: int  # Bytes of the trainable weights in float32, and of their gradients.


def collective_seconds(step: Step, tpu: str, chips: int) -> float:
    """The time in which all replicas add up their gradients, in float32."""
    gradients = Collective("all-reduce", step.weights // 4, step.weights)
    return seconds([gradients], tpu, chips)


def share_of_collectives(step: Step, tpu: str, chips: int) -> float:
    """The share of a step that is spent in them: what is lost to more chips."""
    between = collective_seconds(step, tpu, chips)
    return between / (step.seconds + between)


def tokens_a_second(step: Step, tpu: str, chips: int) -> float:
    """The tokens that all replicas of a slice train on."""
    tokens = step.sequences * step.length * chips * CORES[tpu]
    return tokens / (step.seconds + collective_seconds(step, tpu, chips))


def smaller(step: Step, sequences: int) -> Step:
    """The step with fewer sequences, if its time is theirs in proportion."""
    part = sequences / step.sequences
    return dataclasses.replace(step, sequences=sequences, seconds=step.seconds * part)


def input_bytes_a_second(tokens: float, length: int) -> float:
    """The bytes of a cache that so many tokens a second read, in full sequences."""
    return tokens / length * (4 * (length + 1) + RECORD_BYTES)


def share_of_checkpoints(save: float, every: int, step: float) -> float:
    """The share of the time in which training waits: a save each `every` steps."""
    return save / (save + every * step)


@dataclasses.dataclass(frozen=True)
class Corpus:
    """The cache of a corpus: counts and bytes."""

    text: float
    documents: float
    tokens: float
    sequences: float
    shards: int
    records: float  # Bytes of all shards.
    lengths: float  # Bytes of lengths.npy.


def corpus(text: float, length: int) -> Corpus:
    """The cache of so many bytes of text, in documents of one size."""
    documents = text / BYTES_A_DOCUMENT
    of_document = BYTES_A_DOCUMENT / BYTES_A_TOKEN
    sequences = documents * -(-of_document // (length - 2))
    tokens = documents * of_document
    records = 4 * (tokens + RECORD_FRAME * sequences) + RECORD_BYTES * sequences
    return Corpus(
        text,
        documents,
        tokens,
        sequences,
        SIZES.shard_of(int(text) - 1) + 1,
        records,
        LENGTH_BYTES * sequences,
    )


def caching_hours(tokens: float, rate: float, workers: int) -> float:
    """Hours of workers with one core each, at so many tokens a second of a core."""
    return tokens * BEAM_FACTOR / (rate * workers) / 3600
