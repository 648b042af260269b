"""Training of WordPiece as byte-pair encoding, one merge after another."""

import collections


def train(words: dict[str, int], size: int, special: list[str]) -> list[str]:
    """The pieces: special ones, characters inside words, characters, merges.

    Args:
        words: how often each word occurs.
        size: the number of pieces.
        special: the first ones.
    """
    split = {word: [word[0], *(f"##{c}" for c in word[1:])] for word in words}
    inner = {piece for pieces in split.values() for piece in pieces[1:]}
    vocabulary = [*special, *sorted(inner), *sorted({c for w in words for c in w})]
    while len(vocabulary) < size:
        counts = collections.Counter()
        for word, pieces in split.items():
            for pair in zip(pieces, pieces[1:]):
                counts[pair] += words[word]
        # Of equally frequent pairs, the one whose pieces came into being first.
        left, right = min(
            counts, key=lambda pair: (-counts[pair], *map(vocabulary.index, pair))
        )
        merged = left + right.removeprefix("##")
        if merged not in vocabulary:
            vocabulary.append(merged)
        for pieces in split.values():
            index = 0
            while index < len(pieces) - 1:
                if (pieces[index], pieces[index + 1]) == (left, right):
                    pieces[index : index + 2] = [merged]
                index += 1
    return vocabulary
