"""Data that lie elsewhere than where a run has read them, and are the same."""

import os
from collections.abc import Mapping

import tfeff
from tfeff.recipes.fields import fields_of
from tfeff.recipes.settings import Settings
from tfeff.storage.fetching import published_files
from tfeff.utils.json_files import read_object
from tfeff.utils.paths import is_url
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import CONFIG, READ_DATA


def moved(settings: Settings, run_dir: str, config: Mapping) -> dict:
    """The settings that name another place of data than a run's configuration does.

    A run that has noted the digests of its data compares these, and the place of the
    same data does not matter to it.

    Args:
        settings: those of this start.
        run_dir: the run.
        config: what its `config.json` holds.

    Returns:
        By name, the places of this start. None of a run without a note.
    """
    now = settings.config()
    names = [field.name for field in fields_of(type(settings)) if field.by_content]
    # Text in place of caches, or the reverse, is another setting.
    names = [x for x in names if now[x] and config.get(x) and now[x] != config[x]]
    return {name: now[name] for name in names} if names and _has_note(run_dir) else {}


def has_moved_data(run: tfeff.training.RunDirectory) -> bool:
    """Whether a run goes on with data at another place than in its `config.json`."""
    there = read_object(run.path(CONFIG), run.directory)
    return any(there[name] != run.config[name] for name in there.keys() & run.config)


def _has_note(run_dir):
    if is_url(run_dir):
        return READ_DATA in published_files("run_dir", run_dir)
    return is_there(os.path.join(run_dir, READ_DATA))
