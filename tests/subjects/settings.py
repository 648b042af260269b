"""A recipe's settings that have every type of value."""

from tfeff.recipes.fields import setting
from tfeff.recipes.settings import Settings, settings


@settings
class Example(Settings):
    """An example of all kinds of settings."""

    command = "example"

    folder: str = setting("Where.", fixed=False)
    kind: str = setting("Which.", "a", choices=["a", "b"])
    steps: int = setting("How many.", 10, minimum=1)
    every: int | None = setting("How often; by default at the end.", None, minimum=1)
    rate: float = setting("How fast.", 0.5, minimum=0.0, maximum=1.0)
    share: float = setting("Which part.", 0.5, above=0.0, below=1.0)
    sizes: tuple[int, ...] = setting("How large.", (16, 32), minimum=1)
    names: tuple[str, ...] = setting("Called.", ())
    exact: bool = setting("Whether.", False)
    override: dict[str, object] = setting("More arguments.", {})
