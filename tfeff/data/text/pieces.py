"""The spelling of the pieces of a tokenizer's vocabulary."""

import keras_hub

from tfeff.data.text.characters import SPACE
from tfeff.data.text.roberta_tokenizer import RobertaTokenizer
from tfeff.data.text.tokenizers import restore_vocabulary


def spelled_pieces(tokenizer: keras_hub.tokenizers.Tokenizer) -> list[str]:
    """The letters that each piece stands for in a text, by its id.

    Pieces of SentencePiece and byte-level BPE that begin a word begin with a space.
    Those inside a word begin with WordPiece's mark. Bytes that are no characters are
    U+FFFD.

    Args:
        tokenizer: any KerasHub tokenizer with a vocabulary.
    """
    if isinstance(tokenizer, RobertaTokenizer):
        return [part.decode("utf-8", "replace") for part in tokenizer.piece_bytes()]
    restore_vocabulary(tokenizer)
    pieces = tokenizer.get_vocabulary()
    if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        return [
            " " + piece[1:] if piece.startswith(SPACE) else piece for piece in pieces
        ]
    return list(pieces)
