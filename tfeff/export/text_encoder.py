import re

import keras_hub
import tensorflow as tf
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff.data.finetuning.packing import pack, padded_inputs
from tfeff.data.sampling import isin
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer, with_prefix_space
from tfeff.data.text.tokenizers import restore_kernels
from tfeff.export.parts import longest
from tfeff.export.request_texts import (
    check_equal_rows,
    first_characters,
    most_characters,
)

MASK = "[MASK]"
_SPACE_BEFORE_MASK = rf"[\s\p{{Z}}]+{re.escape(MASK)}"
_BEGINS_WITH_SPACE = r"(?s)[\s\p{Z}].*"


class TextEncoder(tf.Module):
    """Turns strings into the inputs of an encoder, inside a TensorFlow graph.

    A text becomes `[CLS] tokens [SEP]`, its tokens cut so that the whole has at most
    `sequence_length` ids; a batch is padded to its longest text, or, where an encoder
    depends on the padded length, to `sequence_length`. Of each text, no more than
    `most_characters` is tokenized, so that time and memory are bounded.

    Args:
        tokenizer: a KerasHub tokenizer with the ids `cls_token_id`, `sep_token_id`,
            `pad_token_id` and `mask_token_id`.
        sequence_length: integer, most ids of a text, `[CLS]` and `[SEP]` included.
        length_dependent: whether the encoder depends on the padded length.

    Attributes:
        padded_length: `sequence_length`, or None where rows are as long as the longest.
        most_characters: integer, characters that are read of a text: as many as
            `sequence_length` tokens can stand for.
    """

    def __init__(
        self,
        tokenizer: keras_hub.tokenizers.Tokenizer,
        sequence_length: int,
        length_dependent: bool = False,
    ):
        super().__init__()
        restore_kernels(tokenizer)
        self.tokenizer = tokenizer
        self.sequence_length = sequence_length
        self.padded_length = sequence_length if length_dependent else None
        self.mask = tokenizer.id_to_token(tokenizer.mask_token_id)
        self.most_characters = most_characters(tokenizer, sequence_length, MASK)
        self.word_continuation = _without_word_start(tokenizer)

    def read(self, text: tf.Tensor) -> tf.Tensor:
        """The part of texts `[B]` that is read: first characters, as valid UTF-8."""
        return first_characters(text, self.most_characters)

    def tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids `[B, (T)]` of texts `[B]`, at most `sequence_length` of each."""
        return self.tokenizer(self.read(text))[:, : self.sequence_length]

    def plain(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids `[B, (T)]` of texts `[B]`; `[MASK]` in a text is six characters."""
        return self._framed(self.tokens(text))

    def with_masks(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Ids `[B, (T)]` of texts `[B]`; each literal `[MASK]` is the mask's id.

        So is the tokenizer's own mask, such as `<mask>`.
        """
        text = tf.strings.regex_replace(self.read(text), re.escape(self.mask), MASK)
        # White space before a mask is no token, as in Hugging Face's RoBERTa.
        text = tf.strings.regex_replace(text, _SPACE_BEFORE_MASK, MASK)
        parts = tf.strings.split(text, MASK)
        part, index = parts.flat_values, tf.ragged.range(parts.row_lengths())
        # Right behind a mask, as the point in "a [MASK].", a word goes on: without
        # this, it would get the mark with which SentencePiece begins a word.
        begins_word = tf.logical_or(
            index.flat_values == 0,
            tf.strings.regex_full_match(part, _BEGINS_WITH_SPACE),
        )
        tokens = tf.concat(
            [
                self.tokenizer(tf.where(begins_word, part, "")),
                self.word_continuation(tf.where(begins_word, "", part)),
                tf.fill([tf.size(part), 1], self.tokenizer.mask_token_id),
            ],
            axis=1,
        )
        # Each part of a text has a mask behind it now, the last one wrongly.
        joined = tf.RaggedTensor.from_row_splits(tokens, parts.row_splits)
        return self._framed(joined.merge_dims(1, 2)[:, :-1])

    def _framed(self, tokens: tf.RaggedTensor) -> tf.RaggedTensor:
        return pack(tokens, None, self.tokenizer, self.sequence_length)[0]

    def width(self, ids: tf.RaggedTensor) -> tf.Tensor | int:
        """The tokens of each of these rows once they are padded."""
        return self.padded_length or longest(ids)

    def inputs(self, ids: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        """The encoder's inputs, int32 tensors `[B, T]`."""
        lengths = tf.cast(ids.row_lengths(), tf.int32)  # There is no second segment.
        return self.packed_inputs(ids, lengths)

    def packed_inputs(
        self, rows: tf.RaggedTensor, starts: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        """The encoder's inputs, int32 tensors `[B, T]`, of what `pack` returns."""
        return padded_inputs(
            rows, starts, self.tokenizer.pad_token_id, self.padded_length
        )

    def is_special(self, token_ids: tf.Tensor) -> tf.Tensor:
        """True where an id is `[CLS]`, `[SEP]`, padding or the mask."""
        ids = (
            self.tokenizer.cls_token_id,
            self.tokenizer.sep_token_id,
            self.tokenizer.pad_token_id,
            self.tokenizer.mask_token_id,
        )
        return isin(token_ids, ids)


def text_function(answer, text_encoder: TextEncoder, pairs: bool):
    """Turns `answer`, of packed rows, into a function of texts `[B]` or of pairs."""
    tokenizer, length = text_encoder.tokenizer, text_encoder.sequence_length

    def from_text(text):
        return answer(*pack(text_encoder.tokens(text), None, tokenizer, length))

    def from_pair(text, text_pair):
        texts = check_equal_rows(text=text, text_pair=text_pair)
        return answer(*pack(*map(text_encoder.tokens, texts), tokenizer, length))

    return from_pair if pairs else from_text


def _without_word_start(tokenizer):
    """The tokenizer with which a text does not begin a new word."""
    if isinstance(tokenizer, RobertaTokenizer) and tokenizer.add_prefix_space:
        return with_prefix_space(tokenizer, False)
    if not isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        return tokenizer
    model = ModelProto.FromString(tokenizer.proto)
    model.normalizer_spec.add_dummy_prefix = False
    return type(tokenizer)(proto=model.SerializeToString())
