"""`tfeff presets`."""

from tfeff.recipes.settings import Settings, settings


@settings
class PresetsSettings(Settings):
    """Prints the table of presets: names, papers, sizes."""


def print_presets(settings: PresetsSettings) -> None:
    """Prints the table."""
    from tfeff.encoders.systems import systems_table

    print(systems_table())
