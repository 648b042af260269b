"""The setting of callbacks, which every recipe that trains has."""

from tfeff.recipes.settings import Settings, setting, settings


@settings
class CallbackSettings(Settings):
    """Settings of what watches a training."""

    callbacks: tuple[str, ...] = setting(
        "A Keras callback by the name of its class, with arguments: "
        "package.Class(name=value). Once for each.",
        (),
        fixed=False,
        repeated=True,
    )
