"""The pieces of a tokenizer's vocabulary: their spelling, and which begin words."""

import keras_hub
import numpy as np

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


def word_starts(tokenizer: keras_hub.tokenizers.Tokenizer) -> np.ndarray:
    """The ids that begin a word.

    These are SentencePiece's pieces that begin with "▁", byte-level BPE's whose first
    byte is white space, and WordPiece's that do not begin with "##". In BERT's
    WordPiece each punctuation mark is a word. Byte-level BPE has a line break as a
    piece of its own, which begins a word that goes on with the letters behind it.

    Args:
        tokenizer: a SentencePiece or WordPiece tokenizer of KerasHub, or a
            `tfeff.data.RobertaTokenizer`.

    Returns:
        [V] bool.

    Raises:
        TypeError: if the tokenizer is of another kind.
        ValueError: if none of its pieces begins a word.

    Example:
    ```python
    import keras_hub
    import tfeff

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "play", "##ing"]
    tokenizer = keras_hub.tokenizers.BertTokenizer(pieces)
    starts = tfeff.data.word_starts(tokenizer)
    assert starts[5] and not starts[6]
    ```
    """
    if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        restore_vocabulary(tokenizer)
        # Not of the model's own pieces: KerasHub's XLMRobertaTokenizer has other ids.
        starts = [piece.startswith(SPACE) for piece in tokenizer.get_vocabulary()]
    elif isinstance(tokenizer, RobertaTokenizer):
        starts = [piece[:1].isspace() for piece in tokenizer.piece_bytes()]
    elif isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        inner = tokenizer.suffix_indicator
        starts = [not piece.startswith(inner) for piece in tokenizer.get_vocabulary()]
    else:
        raise TypeError(
            "`tokenizer` must be a SentencePiece or WordPiece tokenizer of KerasHub, "
            "or a RobertaTokenizer, whose pieces mark the starts of words. Received: "
            f"tokenizer of type {type(tokenizer).__name__}"
        )
    if not any(starts):
        raise ValueError(
            "`tokenizer` must have pieces that begin a word. Received: a tokenizer "
            f"with {len(starts)} pieces, none of which does"
        )
    return np.array(starts)
