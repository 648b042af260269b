"""The named configurations of the recipes, and how one is found."""

from tfeff.recipes import papers
from tfeff.recipes.configuration import Configuration
from tfeff.utils.near_misses import near_miss

_OF_PAPERS = (
    *papers.shatter(),
    *papers.bert(),
    *papers.huang(),
    *papers.blockbert(),
    *papers.convbert(),
    *papers.albert(),
)
# Those of pretraining come first.
CONFIGURATIONS = {
    c.name: c for c in sorted(_OF_PAPERS, key=lambda c: c.recipe != "pretrain")
}


def known(name: str) -> Configuration | None:
    """The configuration of a name, `None` if there is none.

    Of pretraining, `_pretrain` may be left out. Encoders whose names begin with the
    same word are fine-tuned by the same settings, so these have the name of each of
    them, too: `blockbert_n2_finetune_squad` is `blockbert_finetune_squad`.
    """
    encoder, _, task = name.partition("_finetune_")
    if f"{encoder}_pretrain" in CONFIGURATIONS and task:
        name = f"{encoder.split('_')[0]}_finetune_{task}"
    return CONFIGURATIONS.get(name) or CONFIGURATIONS.get(f"{name}_pretrain")


def find(recipe: str, name: str) -> Configuration:
    """The configuration of a recipe with a name that is `known`.

    Raises:
        TypeError: if the name is no string.
        ValueError: if the recipe has none of this name.
    """
    if not isinstance(name, str):
        raise TypeError(f"`config` must be a name. Received: config={name!r}")
    found = known(name)
    if found is not None and found.recipe == recipe:
        return found
    own = [c.name for c in CONFIGURATIONS.values() if c.recipe == recipe]
    raise ValueError(
        "`config` must be one of those that `tfeff configs` lists for "
        f"`tfeff {recipe}`. Received: config={name!r}"
        f"{f', which is of `tfeff {found.recipe}`' if found else ''}."
        f"{near_miss(name, own)}"
    )
