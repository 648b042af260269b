"""Uses of private names of KerasHub's tokenizers and preprocessors."""

from typing import Any


class OpenWordPiece:
    """Mixin of KerasHub's WordPiece tokenizers, with public names for their steps.

    KerasHub calls them while it sets the vocabulary, in graphs, and outside of these.
    """

    _token_to_id_map: dict[str, int]

    def make_fast_word_piece(self) -> Any:
        """tensorflow-text's tokenizer of words, which graphs use."""
        raise NotImplementedError

    def pieces_of_word(self, word: str) -> list[str]:
        """The pieces of a word, outside of graphs."""
        raise NotImplementedError

    def has_piece(self, piece: str) -> bool:
        """Whether the vocabulary has a piece."""
        return piece in self._token_to_id_map

    def set_vocabulary(self, vocabulary: Any) -> None:
        super().set_vocabulary(vocabulary)  # type: ignore[misc]
        # Earlier versions of KerasHub have no such step: they take their own.
        if vocabulary is not None and not hasattr(super(), "_set_vocabulary_tf"):
            self._set_vocabulary_tf()

    def _set_vocabulary_tf(self):
        self._fast_word_piece = self.make_fast_word_piece()

    def _tokenize_word_python(self, word):
        return self.pieces_of_word(word)


def add_special_token(tokenizer, token: str, name: str) -> None:
    """Declares a special token of a KerasHub tokenizer, as its own classes do."""
    tokenizer._add_special_token(token, name)


def find_special_tokens(tokenizer) -> None:
    """Sets the ids of a KerasHub tokenizer's special tokens by its vocabulary.

    Raises:
        ValueError: if the vocabulary lacks one.
    """
    tokenizer._update_special_token_ids()


def sentence_piece(tokenizer):
    """tensorflow-text's tokenizer within KerasHub's, which also returns offsets."""
    return tokenizer._sentence_piece


def has_vocabulary(tokenizer) -> bool:
    """Whether a SentencePiece tokenizer of KerasHub has its vocabulary out of kernels.

    They have it so since KerasHub 0.30.
    """
    return hasattr(tokenizer, "_sentence_piece_spm")


class LengthOfPreset:
    """Mixin of KerasHub's preprocessors: rows as long as a preset's encoder reads.

    KerasHub makes rows of 512 tokens of any preset that has no preprocessor of its own.
    """

    @classmethod
    def check_before_loading(cls, loader: Any) -> None:
        """Is called with KerasHub's loader before the preset's tokenizer is read."""

    @classmethod
    def _add_missing_kwargs(cls, loader, kwargs):
        cls.check_before_loading(loader)
        length = loader.config["config"]["max_sequence_length"]
        kwargs = {"sequence_length": length, **kwargs}
        return super()._add_missing_kwargs(loader, kwargs)
