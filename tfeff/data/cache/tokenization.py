"""Token ids of a shard's documents, by any KerasHub tokenizer."""

import keras_hub
import numpy as np
import sentencepiece
import tensorflow as tf

from tfeff.data.text.bert_tokenizer import BertTokenizer
from tfeff.data.text.tokenizers import restore_kernels

_DOCUMENTS_IN_A_CALL = 256


class Tokenization:
    """What makes ids of documents.

    Attributes:
        processor: the SentencePiece processor, if its ids are the tokenizer's output;
            it works in any thread. Else None, and `ids` calls the tokenizer.

    Args:
        tokenizer: a KerasHub tokenizer.
    """

    def __init__(self, tokenizer: keras_hub.tokenizers.Tokenizer):
        self.processor = _processor(tokenizer)
        self._tokenizer = self._call = tokenizer
        if isinstance(tokenizer, BertTokenizer):
            # As a graph it is several times as fast.
            self._call = tf.function(
                lambda texts: tokenizer(texts),
                input_signature=[tf.TensorSpec([None], tf.string)],
                autograph=False,
            )

    def ids(self, documents: list[str]) -> list[np.ndarray]:
        """The ids of each document; empty if they are the processor's to make."""
        if self.processor is not None:
            return []
        restore_kernels(self._tokenizer)
        arrays = []
        for start in range(0, len(documents), _DOCUMENTS_IN_A_CALL):
            ids = self._call(documents[start : start + _DOCUMENTS_IN_A_CALL])
            # KerasHub's tokenizers return ragged tensors or lists.
            rows = ids.to_list() if isinstance(ids, tf.RaggedTensor) else ids
            arrays += [np.asarray(row, np.int32) for row in rows]
        return arrays


def _processor(
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> sentencepiece.SentencePieceProcessor | None:
    plain = type(tokenizer) is keras_hub.tokenizers.AlbertTokenizer
    if plain and not (tokenizer.add_bos or tokenizer.add_eos):
        return sentencepiece.SentencePieceProcessor(model_proto=tokenizer.proto)
    return None
