"""Arguments of encoders that a recipe's `override` may not give, or only in part."""

from collections.abc import Mapping

from tfeff.recipes.settings import DTYPES
from tfeff.utils.checks import check_choice


def check_override(
    override: Mapping[str, object],
    given: Mapping[str, object],
    least: Mapping[str, int],
    name: str = "override",
) -> None:
    """Raises where an override breaks the run, does nothing, or contradicts a setting.

    Args:
        override: arguments of `tfeff.encoders.Encoder`.
        given: the arguments that have settings of their own, with the values of these;
            `None` where the setting is left out, and the argument may stand here.
        least: the least values of others.
        name: the setting that the override is.

    Raises:
        ValueError: if an argument is none of those that a recipe overrides.
    """
    for argument, value in override.items():
        received = f"Received: {name}={dict(override)!r}"
        if argument in ("name", "trainable"):
            raise ValueError(
                f"`{name}` must leave out `{argument}`, on which no training depends. "
                f"{received}"
            )
        if given.get(argument) is not None:
            raise ValueError(
                f"`{name}` must leave out `{argument}`, which `{argument}` gives. "
                f"{received}, {argument}={given[argument]!r}"
            )
        if argument == "dtype":
            check_choice("dtype", value, DTYPES)
        if isinstance(value, int) and value < least.get(argument, value):
            raise ValueError(
                f"`{name}` must have a `{argument}` of at least {least[argument]}. "
                f"{received}"
            )
