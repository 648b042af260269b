"""Token ids of a shard's documents, by any KerasHub tokenizer."""

import functools
from collections.abc import Callable

import keras_hub
import numpy as np
import sentencepiece
import tensorflow as tf

from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.tokenizers import restore_kernels

_DOCUMENTS_IN_A_CALL = 256


class Tokenization:
    """Converts documents to token ids.

    Args:
        tokenizer: a KerasHub tokenizer.
    """

    def __init__(self, tokenizer: keras_hub.tokenizers.Tokenizer):
        self._processor = _processor(tokenizer)
        self._tokenizer = self._call = tokenizer
        if isinstance(tokenizer, BertTokenizer):
            # As a graph it is several times as fast.
            self._call = tf.function(
                lambda texts: tokenizer(texts),
                input_signature=[tf.TensorSpec([None], tf.string)],
                autograph=False,
            )

    def ids(self, documents: list[str]) -> Callable[[], list[np.ndarray]]:
        """A function that returns the ids of each document, in any thread.

        A SentencePiece processor makes them then, any other tokenizer at once.
        """
        if self._processor is not None:
            return functools.partial(
                self._processor.encode, documents, return_type="numpy", num_threads=1
            )
        restore_kernels(self._tokenizer)
        arrays = []
        for start in range(0, len(documents), _DOCUMENTS_IN_A_CALL):
            ids = self._call(documents[start : start + _DOCUMENTS_IN_A_CALL])
            # KerasHub's tokenizers return ragged tensors or lists.
            rows = ids.to_list() if isinstance(ids, tf.RaggedTensor) else ids
            arrays += [np.asarray(row, np.int32) for row in rows]
        return lambda: arrays


def _processor(
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> sentencepiece.SentencePieceProcessor | None:
    if type(tokenizer) is keras_hub.tokenizers.AlbertTokenizer:
        return sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
    return None
