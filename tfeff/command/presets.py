"""`tfeff presets`."""

from tfeff.recipes.settings import Settings, settings


@settings
class PresetsSettings(Settings):
    """Prints the table of presets: names, papers, sizes."""


def print_presets(settings: PresetsSettings) -> None:
    """Prints the table."""
    from tfeff.encoders.preset_table import preset_table

    print(preset_table())
