"""Collective operations of a compiled program: their bytes, and how long they take.

The TPU's compiler writes no cost beside its collective operations. What they take is
bytes over bandwidth here, with the published bandwidth of the links between chips.
"""

import dataclasses
import math
import re

# Bytes a second of one link between two chips, in each direction. TPU v3: Jouppi et
# al., "TPU v4: An Optically Reconfigurable Supercomputer", 2023, table 4. TPU v5e:
# 1600 Gbit/s a chip, by four links, in Google Cloud's description of the chip.
LINK_BYTES_A_SECOND = {"v3": 70e9, "v5e": 50e9}
# Slices of up to 64 chips are meshes: the chips in the corners have two links.
CORNER_LINKS = 2
CORES = {"v3": 2, "v5e": 1}  # Of a chip; each is a replica.

_BYTES = {"pred": 1, "bf16": 2} | {
    f"{kind}{bits}": bits // 8 for kind in "fsu" for bits in (8, 16, 32, 64)
}
_KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute"
_OPERATION = re.compile(rf" = (.*?) ({_KINDS})(-start)?\(", re.MULTILINE)
_SHAPE = re.compile(rf"({'|'.join(_BYTES)})\[([\d,]*)\]")


@dataclasses.dataclass(frozen=True)
class Collective:
    """A collective operation: its kind, and its result on one device."""

    kind: str
    elements: int
    bytes: int


def collectives(program: str) -> list[Collective]:
    """The collective operations in the text of an HLO module, in its order.

    Those in the body of a loop count once.
    """
    found = []
    for shape, kind, start in _OPERATION.findall(program):
        results = [
            (math.prod(map(int, filter(None, dimensions.split(",")))), _BYTES[dtype])
            for dtype, dimensions in _SHAPE.findall(shape)
        ]
        if start and kind != "all-reduce":
            # The type of an operation that others overlap holds its operands, too.
            results = [max(results)]
        elements = sum(count for count, _ in results)
        num_bytes = sum(count * size for count, size in results)
        found.append(Collective(kind, elements, num_bytes))
    return found


def seconds(operations: list[Collective], version: str, chips: int) -> float:
    """The time of operations over all chips of a slice, if the links are all there is.

    Of `b` bytes in `n` chips a reduction sends (n - 1) / n from each chip and then as
    much to gather the sums; the other kinds send half of that. A corner's links carry
    it. Operations follow one another, none overlaps with computing, and none has any
    latency.

    Args:
        operations: those of a program that all chips run.
        version: a key of `LINK_BYTES_A_SECOND`.
        chips: `n`.
    """
    sent = sum(
        (2 if operation.kind == "all-reduce" else 1) * operation.bytes
        for operation in operations
    )
    links = CORNER_LINKS * LINK_BYTES_A_SECOND[version]
    return sent * (chips - 1) / chips / links
