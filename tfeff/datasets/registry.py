"""The registry of data sets by name."""

from tfeff.datasets import conll, glue, mrqa, race, squad, superglue
from tfeff.datasets.aliases import ALIASES
from tfeff.datasets.dataset import Dataset
from tfeff.datasets.kinds import KINDS
from tfeff.utils.checks import check_choice
from tfeff.utils.definitions import refusal

_REGISTRY: dict[str, Dataset] = {}
OWN = set(ALIASES)


def register(dataset: Dataset) -> Dataset:
    """Registers a data set, so that `get` and the recipes find it by its name.

    A cell that is run again replaces what it had registered: a data set whose
    attributes are equal, and whose functions have the same names in their modules. Of
    `tsv_dataset`, `span_dataset` and `conll_dataset`, equal arguments give the same.

    Args:
        dataset: the data set.

    Returns:
        The data set.

    Raises:
        TypeError: if it is not a `Dataset`.
        ValueError: if a data set of tfeff, or another one, has the name.

    Example:
    ```python
    import os
    import tfeff

    weather = tfeff.datasets.tsv_dataset(
        "Weather",
        texts=("report",),
        label="sky",
        label_names=("dry", "wet"),
        metric_names=("f1", "accuracy"),
    )
    tfeff.datasets.register(weather)

    os.makedirs("data/Weather", exist_ok=True)
    with open("data/Weather/dev.tsv", "w") as file:
        file.write("report\\tsky\\nIt rains.\\twet\\nIt shines.\\tdry\\n")
    dev = tfeff.datasets.get("Weather").read("dev", "data")
    assert dev.first == ("It rains.", "It shines.")
    assert weather.metrics(dev, [1, 1]) == {"f1": 2 / 3, "accuracy": 0.5}
    ```
    """
    if not isinstance(dataset, Dataset):
        raise TypeError(
            f"`dataset` must be a `Dataset`. Received: dataset={dataset!r:.80}"
        )
    if advice := refusal(_REGISTRY, OWN, dataset.name, dataset):
        raise ValueError(
            "`dataset` must have a name of its own. Received: another data set with "
            f"the name {dataset.name!r}. {advice}"
        )
    _REGISTRY[dataset.name] = dataset
    return dataset


def get(name: str) -> Dataset:
    """The data set with a name.

    Args:
        name: one of `names()`; `"squad1"` and `"squad"` are SQuAD 1.1, `"squad2"` and
            `"squad_v2"` 2.0.

    Returns:
        The `Dataset`.

    Raises:
        ValueError: if there is none; the message names a near miss.

    Example:

    >>> import tfeff
    >>> mnli = tfeff.datasets.get("MNLI")
    >>> mnli.label_names
    ('entailment', 'neutral', 'contradiction')
    >>> mnli.dev_splits
    ('dev_matched', 'dev_mismatched')
    """
    if isinstance(name, str):
        name = ALIASES.get(name, name)
    return _REGISTRY[check_choice("name", name, names())]


def names(*kinds: type) -> list[str]:
    """The names of all data sets, or of those whose examples are of the kinds.

    Args:
        *kinds: classes of examples: `tfeff.data.TextExamples`, `ChoiceExamples`,
            `SpanExamples` or `TokenExamples`.

    Returns:
        The names, in the order in which they were registered.

    Raises:
        ValueError: if a kind is something else.

    Example:

    >>> import tfeff
    >>> tfeff.datasets.names(tfeff.data.ChoiceExamples)
    ['RACE']
    """
    for kind in kinds:
        if kind not in KINDS:
            known = ", ".join(known.__name__ for known in KINDS)
            raise ValueError(
                f"`kinds` must be among the classes {known}. Received: {kind!r}"
            )
    return [
        name
        for name, dataset in _REGISTRY.items()
        if not kinds or dataset.kind in kinds
    ]


for _module in (glue, superglue, race, squad, mrqa, conll):
    for _dataset in _module.DATASETS:
        register(_dataset)
OWN.update(_REGISTRY)
