"""Token ids of many texts."""

from collections.abc import Sequence

import keras_hub
import tensorflow as tf
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff.data.text.tokenizers import restore_kernels


def encode(
    tokenizer: keras_hub.tokenizers.Tokenizer, texts: Sequence[str]
) -> tf.RaggedTensor:
    """Ids `[N, (T)]`; a text that occurs often, as passages do, is encoded once."""
    restore_kernels(tokenizer)
    index_of = {text: index for index, text in enumerate(dict.fromkeys(texts))}
    # In a graph all of KerasHub's tokenizers return tensors.
    texts_once = tf.data.Dataset.from_tensors(tf.constant(list(index_of)))
    (ids,) = texts_once.map(tokenizer)
    return tf.gather(tf.cast(ids, tf.int32), [index_of[text] for text in texts])


def unknown_id(tokenizer: keras_hub.tokenizers.Tokenizer) -> int | None:
    """The id of the unknown token; `None` if the tokenizer has none."""
    if isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        return int(tokenizer.token_to_id(tokenizer.oov_token))
    if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        return ModelProto.FromString(tokenizer.proto).trainer_spec.unk_id
    return None
