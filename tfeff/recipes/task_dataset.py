"""The data set of a task: one that is registered, described by a file, or given."""

import contextlib
import glob
import os
from typing import Any

import tfeff
from tfeff.datasets import registry
from tfeff.datasets.aliases import ALIASES
from tfeff.datasets.described import DESCRIPTION
from tfeff.storage.place import Place
from tfeff.utils.checks import check_best_metric, check_choice
from tfeff.utils.definitions import same_definition
from tfeff.utils.naming import named_as
from tfeff.utils.near_misses import closest, near_miss
from tfeff.utils.paths import is_url


def find_dataset(
    task: str,
    *kinds: type,
    given: tfeff.datasets.Dataset | None = None,
    data: str | None = None,
) -> tfeff.datasets.Dataset:
    """The data set of a task; raises unless its examples are of one of the kinds.

    Args:
        task: its name.
        *kinds: classes of examples.
        given: the data set itself; `None` for the one that is registered, or that a
            file in `data` describes.
        data: the folder of the files; `None` where no description is looked for.
    """
    if given is not None and not isinstance(given, tfeff.datasets.Dataset):
        raise TypeError(
            f"`dataset` must be a `Dataset`. Received: dataset={given!r:.80}"
        )
    if given is not None and given.name != task:
        raise ValueError(
            "`task` must be the name of `dataset`. Received: "
            f"task={task!r}, a data set with the name {given.name!r}"
        )
    dataset = given or _named_dataset(task, kinds, data)
    if dataset.kind not in kinds:
        raise ValueError(
            f"`task` must be one of {tfeff.datasets.names(*kinds)} here. "
            f"Received: task={task!r}, a data set of `{dataset.kind.__name__}`"
        )
    return dataset


def _named_dataset(task, kinds, data):
    """The data set that is registered as `task`, or described in `data`."""
    is_own = data is not None and _is_described(task, data)
    if task in registry.OWN and is_own:
        raise ValueError(
            f"`task` must be another name than that of a data set of tfeff, which "
            f"{data}/{task}/{DESCRIPTION} cannot change. Received: task={task!r}"
        )
    registered = described = None
    if task in (*tfeff.datasets.names(), *ALIASES):
        registered = tfeff.datasets.get(task)
    if is_own:
        with named_as(name="task", folder="data"):
            described = tfeff.datasets.described_dataset(task, data)
    if registered and described and not same_definition(registered, described):
        raise ValueError(
            "`task` must be the name of one data set: another one is registered than "
            f"{data}/{task}/{DESCRIPTION} describes. Received: task={task!r}"
        )
    if found := registered or described:
        return found
    fitting = [*_described(data, kinds), *tfeff.datasets.names(*kinds)]
    near = closest(task, fitting)
    fitting.sort(key=lambda name: name != near)  # The closest name is first.
    own, advice = "", near_miss(task, fitting)
    if data is not None:
        own = f", or be described by {data}/{task}/{DESCRIPTION}"
        if not is_url(data) and os.path.isfile(os.path.join(data, DESCRIPTION)):
            above = os.path.dirname(os.path.abspath(data))
            advice = f" `data` must be the folder above, {above}."
        elif not is_url(data) and not os.path.isdir(data):
            advice += f" There is no folder {data}."
    raise ValueError(
        f"`task` must be one of {fitting}{own}. Received: task={task!r}.{advice}"
    )


def _described(data, kinds):
    """The names of the data sets that are described in a folder of this machine."""
    if data is None or is_url(data):
        return []
    names = []
    for path in sorted(glob.glob(os.path.join(glob.escape(data), "*", DESCRIPTION))):
        name = os.path.basename(os.path.dirname(path))
        with contextlib.suppress(TypeError, ValueError):  # Another one is wanted.
            if tfeff.datasets.described_dataset(name, data).kind in kinds:
                names.append(name)
    return names


def _is_described(task, data):
    if is_url(data):
        return Place("data", data).info(f"{task}/{DESCRIPTION}") is not None
    return os.path.isfile(os.path.join(data, task, DESCRIPTION))


def best_metric(settings: Any, dataset: tfeff.datasets.Dataset) -> str:
    """The name of the data set's metric that tells the best: the highest is."""
    if settings.metric is None:
        return dataset.metric_names[0]
    return check_best_metric(
        "metric", check_choice("metric", settings.metric, dataset.metric_names)
    )
