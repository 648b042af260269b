"""A tokenizer as bytes, which other processes and machines make it of again."""

import os
from typing import NamedTuple

import keras
import keras_hub

from tfeff.data.text.tokenizers import tokenizer_fingerprint
from tfeff.utils.disks import system_folder


class PackedTokenizer(NamedTuple):
    """A tokenizer's configuration, its files and its fingerprint."""

    config: dict
    files: dict[str, bytes]
    fingerprint: str

    @classmethod
    def of(cls, tokenizer: keras_hub.tokenizers.Tokenizer) -> "PackedTokenizer":
        """Packs a tokenizer."""
        with system_folder() as folder:
            tokenizer.save_assets(folder)
            files = {}
            for name in os.listdir(folder):
                with open(os.path.join(folder, name), "rb") as file:
                    files[name] = file.read()
        config = keras.saving.serialize_keras_object(tokenizer)
        return cls(config, files, tokenizer_fingerprint(tokenizer))

    def unpack(self) -> keras_hub.tokenizers.Tokenizer:
        """The tokenizer.

        Raises:
            ValueError: if it is another one here, as with other versions of libraries.
        """
        tokenizer = keras.saving.deserialize_keras_object(self.config)
        with system_folder() as folder:
            for name, content in self.files.items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(content)
            tokenizer.load_assets(folder)
        found = tokenizer_fingerprint(tokenizer)
        if found != self.fingerprint:
            raise ValueError(
                "`tokenizer` must be the same in all workers. In this one it has the "
                f"hash {found}, not {self.fingerprint}: install the same versions of "
                "tfeff and its libraries everywhere"
            )
        return tokenizer
