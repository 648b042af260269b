"""The string replacement rules of a SentencePiece model, in its format and as a dict.

The model cleans a text by these rules before it cuts it into pieces.
"""

import collections
import io
import os
import struct

import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff.utils.disks import system_folder

# A damaged trie may have nodes within themselves, and so keys without end.
_LONGEST_KEY = 1 << 10
_MOST_NODES = 1 << 24


def compiled(rules):
    """The rules in SentencePiece's format, which only its trainer writes.

    No rules are no bytes, which the trainer refuses to write.
    """
    if not rules:
        return b""
    with system_folder() as directory:
        path = os.path.join(directory, "rules.tsv")
        with open(path, "w", encoding="ascii") as file:
            for source, target in sorted(rules.items()):
                file.write(f"{_codes(source)}\t{_codes(target)}\n")
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a"]),
            model_writer=model,
            model_type="char",
            vocab_size=5,
            hard_vocab_limit=False,
            normalization_rule_tsv=path,
            minloglevel=2,
        )
    return ModelProto.FromString(model.getvalue()).normalizer_spec.precompiled_charsmap


def _codes(text):
    return " ".join(f"{ord(character):X}" for character in text)


def decompiled(charsmap):
    """The rules in SentencePiece's format: a trie of UTF-8 keys, then their values.

    The format is the size of the trie in bytes (uint32), the trie, and the values,
    each ended by a zero byte. The trie is a double array of 32-bit units, unit 0 its
    root. The children of the unit at index i share a base index, i ^ offset, and the
    child by byte b is at base ^ b. Where a key ends, the unit at the base itself has
    no byte, and holds the index among the values at which the key's value begins.

    Raises:
        ValueError: if the bytes are not in this format.

    Reference:
        `Normalizer::DecodePrecompiledCharsMap` in `src/normalizer.cc` of
        https://github.com/google/sentencepiece, and `DoubleArrayUnit` in
        https://github.com/s-yata/darts-clone/blob/master/include/darts.h.
    """
    if not charsmap:
        return {}
    try:
        return _rules(charsmap)
    except (struct.error, IndexError, ValueError) as error:
        raise ValueError(
            "`precompiled_charsmap` must hold rules as SentencePiece writes them. It "
            f"has {len(charsmap)} bytes that do not: {error}"
        ) from error


def _rules(charsmap):
    (size,) = struct.unpack_from("<I", charsmap)
    units = struct.unpack_from(f"<{size // 4}I", charsmap, 4)
    values = charsmap[4 + size :]

    # Any unit with a byte, which is never 0, may be a child of the base index that
    # its byte leads to.
    children = collections.defaultdict(list)
    for index, unit in enumerate(units):
        if _byte(unit) != 0 and not _is_value(unit):
            children[index ^ _byte(unit)].append(index)

    rules, stack = {}, [(b"", _offset(units[0]))]
    for _ in range(_MOST_NODES):
        if not stack:
            return rules
        key, base = stack.pop()
        if base | 0xFF >= len(units):
            raise IndexError(f"a node's children are at {base} of {len(units)} units")
        if len(key) > _LONGEST_KEY:
            raise ValueError(f"a key has more than {_LONGEST_KEY} bytes")
        for index in children[base]:
            unit = units[index]
            child_key, child_base = key + bytes([_byte(unit)]), index ^ _offset(unit)
            if _ends_a_key(unit):
                begin = units[child_base] & 0x7FFFFFFF
                value = values[begin : values.index(b"\0", begin)]
                rules[child_key.decode()] = value.decode()
            stack.append((child_key, child_base))
    raise ValueError(f"its trie has more than {_MOST_NODES} nodes")


def _is_value(unit):
    """Whether the unit tells where a value begins, not a byte of keys: bit 31."""
    return unit >> 31 == 1


def _byte(unit):
    """The byte of keys that leads to the unit: bits 0 to 7."""
    return unit & 0xFF


def _ends_a_key(unit):
    """Whether a key ends with the unit's byte: bit 8."""
    return unit >> 8 & 1 == 1


def _offset(unit):
    """From the unit's index to its base: bits 10 to 30, times 256 if bit 9 is set."""
    return (unit >> 10) << (8 if unit >> 9 & 1 else 0)
