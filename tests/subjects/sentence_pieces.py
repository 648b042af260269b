"""SentencePiece models that tfeff's own training does not make."""

import io
from collections.abc import Iterable

import keras_hub
import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from tfeff.data import train_tokenizer

# The pieces of Hugging Face's classes that stand for no text.
SPECIAL = {
    "albert": dict(
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        pad_piece="<pad>",
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
    ),
    "xlnet": dict(
        unk_id=0,
        bos_id=1,
        eos_id=2,
        control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
    ),
}


def trained(texts: Iterable[str], size: int, **options) -> bytes:
    """The proto of a model with `size` pieces; options as of SentencePiece."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=size,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


def with_pieces(pieces: Iterable[str]) -> keras_hub.tokenizers.AlbertTokenizer:
    """tfeff's tokenizer with these pieces, the likelier ones first."""
    proto = ModelProto.FromString(train_tokenizer(["a b"], vocabulary_size=8).proto)
    special = [piece for piece in proto.pieces if piece.type != piece.NORMAL]
    del proto.pieces[:]
    proto.pieces.extend(special)
    for index, piece in enumerate(pieces):
        proto.pieces.add(piece=piece, score=-1 - index / 10)
    return keras_hub.tokenizers.AlbertTokenizer(proto=proto.SerializeToString())
