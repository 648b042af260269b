import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import keras_hub
import numpy as np
import tensorflow as tf

from tfeff.compat.tokenizers import add_special_token, find_special_tokens
from tfeff.data.arrays import check_int32
from tfeff.data.text.byte_pairs import MergeRules, byte_symbols, merge, words
from tfeff.data.text.flat import row_ids, rows_of, sums
from tfeff.encoders import Encoder
from tfeff.encoders.preset_mixins import TokenizerFiles
from tfeff.utils.checks import (
    check_bool,
    check_integer,
    check_mapping,
    check_ordered,
    is_integer,
)
from tfeff.utils.types import Config, Tensor

_LONG_WORD = 64  # in bytes
_VOCABULARY, _MERGES = "vocabulary.json", "merges.txt"


@keras.saving.register_keras_serializable(package="tfeff")
class RobertaTokenizer(TokenizerFiles, keras_hub.tokenizers.Tokenizer):
    """The byte-level BPE of RoBERTa and GPT-2, in TensorFlow graphs too.

    Text to ids, without special tokens; a special token within a text is plain text.
    The ids are those of Hugging Face's `tokenizers`, whatever the text, except that a
    word of more than 4,000 characters becomes several, since merging is quadratic.
    KerasHub's `RobertaTokenizer` differs where white space is not a single space, and
    calls `<s>` and `</s>` start and end.

    A word begins with the space before it, "Ġ" in its piece. Any text has ids: pieces
    are made of bytes, of which each is a piece.

    Rows of pairs have two separators between the texts, `<s> A </s></s> B </s>`, and
    one segment.

    Args:
        vocabulary: dict from pieces to their ids, 0 to V − 1.
        merges: the merge rules in their order, each two pieces, as `"Ġ t"` or a pair.
        add_prefix_space: whether a text gets a space before its first word.
        cls_token, sep_token, pad_token, mask_token: the special pieces.
        sequence_length: rows are cut and padded to so many ids; None for ragged rows.
        **kwargs: arguments of `keras_hub.tokenizers.Tokenizer`.

    Raises:
        TypeError: if an argument is of another type.
        ValueError: if ids are missing or doubled, a byte has no piece, a rule has
            pieces that are not in the vocabulary, a special piece is missing, or
            `sequence_length` is below 1.

    Example:

    >>> from tokenizers.pre_tokenizers import ByteLevel
    >>> special, one_byte = ["<s>", "<pad>", "</s>", "<mask>"], ByteLevel.alphabet()
    >>> pieces = [*special, *sorted(one_byte), "Ġa", "ba"]
    >>> tokenizer = RobertaTokenizer(
    ...     {piece: id for id, piece in enumerate(pieces)}, ["Ġ a", "b a"]
    ... )
    >>> [pieces[id] for id in tokenizer("ba a")]
    ['ba', 'Ġa']

    Reference:
        Liu et al., "RoBERTa: A Robustly Optimized BERT Pretraining Approach", 2019,
        section 4.4; Radford et al., "Language Models are Unsupervised Multitask
        Learners", 2019, section 2.2.
    """

    # KerasHub finds the tokenizer of a preset by the class of its backbone.
    backbone_cls = Encoder
    pair_separators = 2
    pair_segments = 1

    def __init__(
        self,
        vocabulary: Mapping[str, int] | None = None,
        merges: Iterable[str | tuple[str, str]] | None = None,
        add_prefix_space: bool = False,
        cls_token: str = "<s>",
        sep_token: str = "</s>",
        pad_token: str = "<pad>",
        mask_token: str = "<mask>",
        sequence_length: int | None = None,
        **kwargs: Any,
    ):
        super().__init__(**({"dtype": "int32"} | kwargs))
        self.add_prefix_space = check_bool("add_prefix_space", add_prefix_space)
        if sequence_length is not None:
            sequence_length = check_integer("sequence_length", sequence_length)
        self.sequence_length = sequence_length
        self.file_assets = [_VOCABULARY, _MERGES]
        self._ids: dict[str, int] = {}
        special = dict(cls=cls_token, sep=sep_token, pad=pad_token, mask=mask_token)
        for name, token in special.items():
            add_special_token(self, token, f"{name}_token")
        if vocabulary is not None:
            if merges is None:
                raise TypeError(
                    "`merges` must be given with `vocabulary`. Received: merges=None"
                )
            self.set_vocabulary(vocabulary, merges)

    def set_vocabulary(
        self, vocabulary: Mapping[str, int], merges: Iterable[str | tuple[str, str]]
    ) -> None:
        """Sets pieces and merge rules, as the constructor does."""
        check_mapping("vocabulary", vocabulary, "pieces to ids")
        check_ordered("merges", merges, "rules of two pieces each")
        for piece, id in vocabulary.items():
            if not isinstance(piece, str):
                raise TypeError(
                    f"`vocabulary` must have strings as pieces. Received: {piece!r:.80}"
                )
            if not is_integer(id):
                raise TypeError(
                    f"`vocabulary` must have integers as ids. Received: {id!r:.80} "
                    f"for {piece!r:.80}"
                )
        pieces = sorted(vocabulary, key=vocabulary.__getitem__)
        if [vocabulary[piece] for piece in pieces] != list(range(len(pieces))):
            raise ValueError(
                "`vocabulary` must have the ids 0 to V - 1, each once. Received: "
                f"{len(pieces)} pieces, of which {pieces[-1:]} has the last id, "
                f"{max(vocabulary.values())}"
            )
        ids = {piece: id for id, piece in enumerate(pieces)}
        symbols = byte_symbols()
        if missing := [symbol for symbol in symbols if symbol not in ids]:
            raise ValueError(
                "`vocabulary` must have a piece for each of the 256 bytes. Received: "
                f"{len(missing)} are missing, such as {missing[:5]}"
            )
        self._merges = [_pair(rule) for rule in merges]
        rules = []
        for left, right in self._merges:
            if unknown := {left, right, left + right} - ids.keys():
                raise ValueError(
                    "`merges` must be of pieces in `vocabulary`. Received: the rule "
                    f"{left!r} {right!r}, without {sorted(unknown)} in the vocabulary"
                )
            rules.append((ids[left], ids[right], ids[left + right]))
        if len(set(self._merges)) < len(self._merges):
            raise ValueError("`merges` must hold each rule once. Received: one twice")
        self._ids, self._pieces = ids, pieces
        self._rules = MergeRules(rules, len(pieces))
        self._byte_ids = np.array([ids[symbol] for symbol in symbols], np.int32)
        find_special_tokens(self)
        function = tf.function(
            self._encode,
            input_signature=[tf.TensorSpec([None], tf.string)],
            autograph=False,
        )
        # A function as an attribute would be in every SavedModel.
        self._in_graph = lambda text: function(text)

    def get_vocabulary(self) -> list[str]:
        """The pieces in the order of their ids."""
        self._check_vocabulary()
        return list(self._pieces)

    def get_merges(self) -> list[str]:
        """The merge rules in their order, each two pieces and a space between."""
        self._check_vocabulary()
        return [" ".join(rule) for rule in self._merges]

    def vocabulary_size(self) -> int:
        self._check_vocabulary()
        return len(self._pieces)

    def id_to_token(self, id: int) -> str:
        self._check_vocabulary()
        if not 0 <= id < len(self._pieces):
            raise ValueError(
                f"`id` must be from 0 to {len(self._pieces) - 1}. Received: id={id}"
            )
        return self._pieces[id]

    def token_to_id(self, token: str) -> int:
        self._check_vocabulary()
        if token not in self._ids:
            raise ValueError(
                f"`token` must be a piece of the vocabulary. Received: token={token!r}"
            )
        return self._ids[token]

    def piece_bytes(self) -> list[bytes]:
        """The bytes that each piece stands for; those of its name for a special one."""
        byte_of = {symbol: byte for byte, symbol in enumerate(byte_symbols())}
        return [
            bytes(byte_of[c] for c in piece)
            if byte_of.keys() >= set(piece)
            else piece.encode("utf-8")
            for piece in self.get_vocabulary()
        ]

    def tokenize(self, inputs: Tensor) -> Tensor:
        self._check_vocabulary()
        text = tf.convert_to_tensor(inputs)
        scalar = text.shape.rank == 0
        encode = self._encode if tf.inside_function() else self._in_graph
        ids = encode(tf.reshape(text, [-1]))
        if self.sequence_length is not None:
            ids = ids.to_tensor(self.pad_token_id, shape=[None, self.sequence_length])
        return ids[0] if scalar else ids

    def _encode(self, text):
        """Ids `[B, (T)]` of texts `[B]`."""
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        if self.add_prefix_space:
            has_none = tf.strings.regex_full_match(text, "(?s)[^ ].*")
            text = tf.where(has_none, tf.strings.join([" ", text]), text)
        points = tf.strings.unicode_decode(text, "UTF-8")
        begins = words(points)
        starts = tf.where(begins)[:, 0]
        rows = tf.RaggedTensor.from_row_starts(
            points.flat_values, starts, validate=False
        )
        # Each word is encoded once, however often it occurs.
        different, index = tf.unique(tf.strings.unicode_encode(rows, "UTF-8"))
        ids = self._encode_words(different)
        ids = tf.gather(ids, index)
        # Texts of no characters have no words.
        of_text = tf.gather(row_ids(points), starts)
        counts = sums(ids.row_lengths(), of_text, points.nrows())
        return tf.RaggedTensor.from_row_lengths(ids.flat_values, counts, validate=False)

    def _encode_words(self, different):
        """Ids `[W, (P)]` of words `[W]`.

        Short ones and long ones apart: a round of merges is over all words, and there
        are as many rounds as the longest one needs.
        """
        is_long = tf.cast(tf.strings.length(different) > _LONG_WORD, tf.int32)
        places = tf.dynamic_partition(tf.range(tf.size(different)), is_long, 2)
        ids = [self._merged(tf.gather(different, place)) for place in places]
        order = tf.math.invert_permutation(tf.concat(places, axis=0))
        return tf.gather(tf.concat(ids, axis=0), order)

    def _merged(self, different):
        sizes = tf.strings.length(different)
        joined = tf.strings.reduce_join(different)
        symbols = tf.gather(
            self._byte_ids, tf.cast(tf.io.decode_raw(joined, tf.uint8), tf.int32)
        )
        symbols, word = merge(symbols, rows_of(sizes), self._rules)
        return tf.RaggedTensor.from_value_rowids(
            symbols, word, tf.size(different, tf.int64), validate=False
        )

    def detokenize(self, inputs: Tensor) -> Tensor:
        """Texts of ids; bytes that are not UTF-8 become U+FFFD.

        Args:
            inputs: ids of one text or of several, a tensor, an array or lists.

        Raises:
            TypeError: in an eager call, if `inputs` are no integers.
            ValueError: in an eager call, if an id is out of range.
        """
        if isinstance(inputs, (list, tuple)):
            inputs = tf.ragged.constant(inputs, tf.int32)
        if tf.executing_eagerly():
            # A lookup beyond the pieces would be an error of TensorFlow's, or "".
            ids = check_int32("inputs", getattr(inputs, "flat_values", inputs))
            wrong = ids[(ids < 0) | (ids >= self.vocabulary_size())]
            if wrong.size:
                raise ValueError(
                    f"`inputs` must be ids from 0 to {self.vocabulary_size() - 1}. "
                    f"Received: {wrong.flat[0]}"
                )
        parts = tf.gather(self.piece_bytes(), tf.cast(inputs, tf.int32))
        text = tf.strings.reduce_join(parts, axis=-1)
        text = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", errors="replace")
        if not tf.executing_eagerly():
            return text
        # NumPy has one text as bytes, and several as an array.
        return tf.nest.map_structure(bytes.decode, np.asarray(text).tolist())

    def save_assets(self, dir_path: str) -> None:
        self._check_vocabulary()
        with open(os.path.join(dir_path, _VOCABULARY), "w", encoding="utf-8") as file:
            json.dump(self._ids, file, ensure_ascii=False)
        with open(os.path.join(dir_path, _MERGES), "w", encoding="utf-8") as file:
            file.writelines(f"{rule}\n" for rule in self.get_merges())

    def load_assets(self, dir_path: str) -> None:
        with open(os.path.join(dir_path, _VOCABULARY), encoding="utf-8") as file:
            vocabulary = json.load(file)
        with open(os.path.join(dir_path, _MERGES), encoding="utf-8") as file:
            merges = file.read().splitlines()
        self.set_vocabulary(vocabulary, merges)

    def get_config(self) -> Config:
        config = super().get_config()
        config.update(
            add_prefix_space=self.add_prefix_space,
            sequence_length=self.sequence_length,
            cls_token=self.cls_token,
            sep_token=self.sep_token,
            pad_token=self.pad_token,
            mask_token=self.mask_token,
        )
        return config

    def compute_output_spec(self, input_spec: Any) -> Tensor:
        shape = (*input_spec.shape, self.sequence_length)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def _check_vocabulary(self):
        if not self._ids:
            raise ValueError(
                "`vocabulary` and `merges` must be set first. Received: a tokenizer "
                "without them"
            )


def _pair(rule):
    if isinstance(rule, str):
        rule = rule.split(" ")
    pair = tuple(check_ordered("merges", rule, "rules of two pieces each"))
    if len(pair) != 2 or not all(isinstance(p, str) and p for p in pair):
        raise ValueError(
            f"`merges` must be of two pieces each. Received: the rule {rule!r}"
        )
    return pair


def with_prefix_space(
    tokenizer: RobertaTokenizer, add_prefix_space: bool
) -> RobertaTokenizer:
    """The same tokenizer, with or without a space before a text's first word."""
    vocabulary = {piece: id for id, piece in enumerate(tokenizer.get_vocabulary())}
    changes = {"vocabulary": vocabulary, "merges": tokenizer.get_merges()}
    return RobertaTokenizer.from_config(
        tokenizer.get_config() | changes | {"add_prefix_space": add_prefix_space}
    )
