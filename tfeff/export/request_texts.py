"""Checks of a request's texts, and their first valid characters, inside a graph."""

import functools
from collections.abc import Callable
from typing import Any

import keras_hub
import tensorflow as tf

from tfeff.compat.tokenizers import sentence_piece
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer

# SentencePiece's time for a run of unknown characters is quadratic.
_LONGEST_WORD = 20_000
_SPACES = "\t\n\v\f\r "  # at which `tf.strings.split` splits
# Unicode composes at most four characters to one: U+1F82 is a letter and three marks.
_COMPOSED = 4


def require(condition: tf.Tensor, message: str, *values: tf.Tensor) -> tf.Operation:
    """An operation for `checked` that fails unless `condition` holds.

    Args:
        condition: bool tensor of any shape; all of it must hold.
        message: names the input, as the caller of the signature knows it, and what
            it must be.
        *values: what was received, of several rows the largest: three values of a
            tensor are shown.
    """
    return tf.raw_ops.Assert(
        condition=tf.reduce_all(condition), data=[message, *values]
    )


def checked(x: Any, *checks: tf.Operation) -> Any:
    """`x` once the checks hold, which `require` makes.

    Operations that use the result run after the checks. Without this dependency
    TensorFlow may first run an operation that such a request crashes.
    """
    with tf.control_dependencies(checks):
        return tf.identity(x)


def with_rank_checks(function: Callable, ranks: dict[str, int]) -> Callable:
    """A function that calls the given one once its tensors are known to have the ranks.

    Args:
        function: of tensors by position, in the order of `ranks`.
        ranks: the number of axes of each, by the names that they have in the signature.

    Raises:
        tf.errors.InvalidArgumentError: of a call, naming the input, with its shape.
    """

    @functools.wraps(function)
    def with_checks(*inputs):
        named = zip(ranks.items(), inputs, strict=True)
        return function(*(_check_rank(name, x, rank) for (name, rank), x in named))

    return with_checks


def _check_rank(name, tensor, rank):
    # A signature takes tensors of any shape, but its graph is simplified for the
    # declared one, checks included: only what left its shape behind keeps its check.
    (given,) = tf.raw_ops.OptionalGetValue(
        optional=tf.raw_ops.OptionalFromValue(components=[tensor]),
        output_types=[tensor.dtype],
        output_shapes=[tf.TensorShape(None)],
    )
    has_rank = require(
        tf.rank(given) == rank,
        f"`{name}` must have {rank} {'axis' if rank == 1 else 'axes'}. Received: "
        "the shape:",
        tf.shape(given),
    )
    return checked(tensor, has_rank)


def check_equal_rows(**inputs: tf.Tensor) -> list[tf.Tensor]:
    """The inputs, once they are known to have equal numbers of rows.

    Args:
        **inputs: tensors `[B, …]` by the names that they have in the signature.

    Raises:
        tf.errors.InvalidArgumentError: naming the first input that has not as many
            rows as the one before it.
    """
    (first, tensor), *others = inputs.items()
    rows = tf.shape(tensor)[0]
    checks = [
        require(
            tf.shape(other)[0] == rows,
            f"`{name}` must have as many rows as `{first}`. Received: rows of {name} "
            f"and {first}:",
            tf.shape(other)[0],
            rows,
        )
        for name, other in others
    ]
    return [checked(tensor, *checks) for tensor in inputs.values()]


def most_characters(
    tokenizer: keras_hub.tokenizers.Tokenizer, num_tokens: int, *spelled: str
) -> int:
    """The largest number of characters of so many tokens.

    A token stands for no more characters than its piece is spelled with, and a space
    before it, after Unicode's composition; before that, for four times as many. Bytes,
    of which `RobertaTokenizer`'s pieces are made, are not composed. What no piece is
    spelled with is not counted: a run of unknown characters, which is one token,
    further white space, and characters that a tokenizer drops.

    Args:
        tokenizer: of KerasHub.
        num_tokens: integer.
        *spelled: other strings that are one token each.
    """
    longest = max(map(len, [*tokenizer.get_vocabulary(), *spelled]))
    composed = 1 if isinstance(tokenizer, RobertaTokenizer) else _COMPOSED
    return composed * num_tokens * (longest + 1)


def few_characters(name: str, text: tf.Tensor, most: int) -> tf.Tensor:
    """The texts, once each is known to have at most so many characters.

    Args:
        name: of the input.
        text: string tensor `[B]`, valid UTF-8.
        most: integer, which may need 64 bits.

    Raises:
        tf.errors.InvalidArgumentError: naming the input, if one has more.
    """
    size = tf.cast(tf.strings.length(text, unit="UTF8_CHAR"), tf.int64)
    are_short = require(
        size <= most,
        f"`{name}` must have at most {most} characters. Received: one of so many:",
        tf.reduce_max(size),
    )
    return checked(text, are_short)


def short_words(
    name: str, words: tf.Tensor, tokenizer: keras_hub.tokenizers.Tokenizer
) -> list[tf.Operation]:
    """Operations as of `require` that fail where a word takes SentencePiece too long.

    Args:
        name: of the input.
        words: string tensor `[W]`, which the tokenizer does not join.
        tokenizer: that of the words. One that is not SentencePiece's takes words of any
            length, in a time in proportion to it: byte-level BPE some 60 µs for each
            letter of words of thousands of letters.
    """
    if not isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        return []
    size = tf.strings.length(words, unit="UTF8_CHAR")
    is_short = require(
        size <= _LONGEST_WORD,
        f"`{name}` must have no word of more than {_LONGEST_WORD} characters. "
        "Received: a word of so many:",
        tf.reduce_max(size),
    )
    return [is_short]


def spaces_in_words(tokenizer: keras_hub.tokenizers.Tokenizer) -> str:
    """The white space that can be within a run of unknown characters.

    It depends on the normalizer of a SentencePiece model, which makes one space of
    most white space, but removes some, or leaves all but the space as it is, and on
    whether there is a piece for a space. For other tokenizers it is empty.
    """
    if not isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        return ""
    known = set("".join(tokenizer.get_vocabulary()))
    unknown = next(c for c in map(chr, range(0xF0000, 0xFFFFE)) if c not in known)
    runs = tf.constant([unknown + space + unknown for space in ["", *_SPACES]])
    one, *sizes = sentence_piece(tokenizer).tokenize(runs).row_lengths().numpy()
    return "".join(space for space, size in zip(_SPACES, sizes) if size == one)


def valid(text: tf.Tensor) -> tf.Tensor:
    """The texts with U+FFFD in place of what is not UTF-8, else as they are."""
    return tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")


def first_characters(text: tf.Tensor, count: int) -> tf.Tensor:
    """The first `count` characters of each text, valid UTF-8."""
    # It is cut by bytes first: what is not UTF-8 can make one character of megabytes.
    text = valid(tf.strings.substr(text, 0, 4 * count))
    return tf.strings.substr(text, 0, count, unit="UTF8_CHAR")
