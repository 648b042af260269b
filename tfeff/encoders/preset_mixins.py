"""Mixins that save, load and check presets, for the encoder and for tokenizers."""

import json
import os

from tfeff.encoders.preset_digests import (
    add_version,
    check_beside,
    check_preset,
    check_settings_and_assets,
    of_another_version,
)
from tfeff.encoders.preset_layout import (
    CONFIGS,
    architecture_hint,
    belongs_to_tokenizer,
    checkpoint_hint,
    is_weights_file,
    preset_folder,
)
from tfeff.encoders.preset_writing import (
    check_no_heads,
    replaced_when_whole,
    reserve_weights,
)
from tfeff.storage.arguments import READ_MODEL, WRITE, paths
from tfeff.utils.reading import DAMAGE, is_unreadable


class EncoderFiles:
    """The mixin of `Encoder` that saves and loads presets."""

    @paths(preset_dir=WRITE)
    def save_to_preset(self, preset_dir, max_shard_size=10):
        """Writes the encoder to a folder, with the digests of its files.

        It replaces an encoder that the folder has, once the new one is whole: on a full
        disk the earlier one stays.

        Args:
            preset_dir: the folder; it is made if it is missing.
            max_shard_size: number of gigabytes beyond which the weights are written to
                several files.

        Raises:
            ValueError: if the folder has heads that were trained on another encoder.
        """
        check_no_heads(preset_dir)
        with replaced_when_whole(preset_dir) as whole:
            super().save_to_preset(whole, max_shard_size=max_shard_size)
            add_version(whole)

    def save_weights(self, filepath, *args, **kwargs):
        in_gigabytes = kwargs.get("max_shard_size")
        largest = in_gigabytes and max(int(in_gigabytes * 1e9), 1 << 20)
        reserve_weights(filepath, self.weights, largest)
        super().save_weights(filepath, *args, **kwargs)

    @classmethod
    @paths(preset=READ_MODEL)
    def from_preset(cls, preset, load_weights=True, **kwargs):
        """Reads an encoder from a preset.

        The files in a local folder are compared with its `SHA256SUMS`; a `UserWarning`
        says so if there is none. Names on a hub are left to the hub's own checks.

        Args:
            preset: a folder, that of a preset or of a run, or a preset of tfeff on a
                hub, such as `"hf://someone/some-shatter"`. Of other models on a hub
                `tfeff convert` makes one.
            load_weights: whether the weights are read, or initialised.
            **kwargs: arguments of the encoder that override the preset's.

        Raises:
            ValueError: if a file is missing or damaged, or a layer cannot be made; if
                it is a checkpoint of Hugging Face, or the name of an architecture.
            OSError: if the system refuses to read a file.
        """
        is_local = isinstance(preset, (str, os.PathLike)) and os.path.isdir(preset)
        hint = architecture_hint(preset)
        if is_local:
            preset = preset_folder(os.fspath(preset))
            hint = checkpoint_hint(os.listdir(preset))
        if hint:
            raise ValueError(
                "`preset` must be a preset of tfeff, a folder or on a hub. "
                f"Received: preset={os.fspath(preset)!r}{hint}"
            )
        if is_local:
            check_preset(preset, lambda name: name in CONFIGS)
        try:
            return super().from_preset(preset, load_weights, **kwargs)
        except DAMAGE as error:
            unreadable = isinstance(error, (json.JSONDecodeError, UnicodeDecodeError))
            has_message = isinstance(error, ValueError) and not unreadable
            of_arguments = kwargs and isinstance(error, (AttributeError, TypeError))
            if not is_local or has_message or of_arguments or is_unreadable(error):
                raise
            raise ValueError(
                f"{preset} cannot be loaded, as a file is damaged, or a layer of its "
                f"own fails{of_another_version(preset)}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def load_weights(self, filepath, *args, **kwargs):
        """Reads weights from a file; in a preset, compared with `SHA256SUMS`."""
        if is_weights_file(os.path.basename(filepath)):
            # KerasHub's own classes come here alone.
            check_beside(filepath, _is_encoder_file)
        return super().load_weights(filepath, *args, **kwargs)


def _is_encoder_file(name):
    return name in CONFIGS or is_weights_file(name)


class ReadsURL:
    """The mixin of KerasHub's classes that reads presets at URLs, too."""

    @classmethod
    @paths(preset=READ_MODEL)
    def from_preset(cls, preset, *args, **kwargs):
        """Reads a preset, as KerasHub's class does.

        Args:
            preset: a folder, a URL, or a preset on a hub.
            *args, **kwargs: as of KerasHub's class.

        Raises:
            ValueError: if a file differs from `SHA256SUMS`, where the folder has one.
        """
        check_settings_and_assets(preset)
        return super().from_preset(preset, *args, **kwargs)


class TokenizerFiles(ReadsURL):
    """The mixin of a tokenizer that saves and loads presets."""

    @paths(preset_dir=WRITE)
    def save_to_preset(self, preset_dir):
        """Writes the tokenizer to a folder, with the digests of its files.

        Args:
            preset_dir: the folder, which may have an encoder; or the URL of a new one.
        """
        with replaced_when_whole(preset_dir) as whole:
            super().save_to_preset(whole)

    def load_preset_assets(self, preset):
        if os.path.isdir(preset):
            check_preset(preset, belongs_to_tokenizer(self.config_file))
        super().load_preset_assets(preset)
