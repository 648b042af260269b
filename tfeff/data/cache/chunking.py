"""Splitting of token ids into sequences of bounded length."""

import numpy as np


def piece_lengths(document_lengths: np.ndarray, capacity: int) -> np.ndarray:
    """Lengths of the pieces, in order, when each document is cut at `capacity`.

    A document of n tokens gives ceil(n / capacity) pieces, all full but the last.

    Args:
        document_lengths: [N] int, tokens in each document; 0 gives no piece.
        capacity: the maximum number of tokens in a piece.

    Returns:
        [R] int64, summing to the sum of `document_lengths`.
    """
    pieces = -(-document_lengths // capacity)
    ends = np.cumsum(pieces)
    lengths = np.full(pieces.sum(), capacity, np.int64)
    filled = pieces > 0
    rest = document_lengths - (pieces - 1) * capacity
    lengths[ends[filled] - 1] = rest[filled]
    return lengths


def piece_documents(document_lengths: np.ndarray, capacity: int) -> np.ndarray:
    """The index of each piece's document, [R] int64; see `piece_lengths`."""
    pieces = -(-document_lengths // capacity)
    return np.repeat(np.arange(len(document_lengths)), pieces)


def join_documents(
    ids: np.ndarray, lengths: np.ndarray, separator: int
) -> tuple[np.ndarray, np.ndarray]:
    """Joins documents into one, with a separator between neighbours.

    Args:
        ids: [S] int32, the documents' tokens, concatenated.
        lengths: [N] int, the tokens in each document; empty ones are dropped.
        separator: the id between two documents.

    Returns:
        The pair (ids [S + N - 1], lengths [1]); both empty if there is no token.
    """
    lengths = lengths[lengths > 0]
    joined = np.insert(ids, np.cumsum(lengths)[:-1], separator)
    return joined, np.array([len(joined)][: len(lengths)], np.int64)


def frame_pieces(
    ids: np.ndarray, lengths: np.ndarray, documents: np.ndarray, start: int, end: int
) -> np.ndarray:
    """Writes consecutive pieces into rows: document, `start`, piece, `end`, zeros.

    Args:
        ids: [S] int32, the pieces, concatenated.
        lengths: [R] int, summing to S.
        documents: [R] int, the index of each piece's document.
        start: the id before each piece, `[CLS]`.
        end: the id after each piece, `[SEP]`.

    Returns:
        [R, max(lengths) + 3] int32.
    """
    width = int(lengths.max())
    rows = np.zeros((len(lengths), width + 3), np.int32)
    rows[:, 0] = documents
    rows[:, 1] = start
    rows[:, 2:-1][np.arange(width) < lengths[:, None]] = ids
    rows[np.arange(len(lengths)), lengths + 2] = end
    return rows
