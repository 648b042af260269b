"""A record of the data that a run reads, so that all its starts read the same.

The versions of the libraries are noted with it, and may change.
"""

import dataclasses
import glob
import hashlib
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tfeff
from tfeff.objectives.registry import is_of_tfeff
from tfeff.recipes.corpora import CACHES, cached_manifest
from tfeff.recipes.moved_data import has_moved_data
from tfeff.recipes.pretrain_settings import PretrainSettings
from tfeff.recipes.versions import note_versions
from tfeff.storage.arguments import READ, READ_MODEL, paths
from tfeff.tasks.pretrained import find_preset, split_step
from tfeff.training.checkpoint_file import load_notes
from tfeff.training.checkpoint_folder import checkpoint_steps, run_checkpoint
from tfeff.utils.digests import FILE_NAME as SHA256SUMS
from tfeff.utils.digests import read_digests, sha256, sha256_of
from tfeff.utils.files import write_text
from tfeff.utils.job_output import say
from tfeff.utils.json_files import read_object
from tfeff.utils.naming import named_as
from tfeff.utils.paths import is_url
from tfeff.utils.reading import is_there
from tfeff.utils.run_files import CELLS, CHECKPOINTS, INTERRUPTED, METRICS, READ_DATA

CROSS_DOCUMENTS = "cross_documents"
_EXAMPLES = "examples"


def keep_data(
    run: tfeff.training.RunDirectory,
    dataset: tfeff.datasets.Dataset,
    parts: Mapping[str, object],
    trained: str = os.path.join(CELLS, "*"),
    models: Sequence[str] = ("pretrained",),
    others: Mapping[str, str] = {},
) -> None:
    """Notes what a run reads; raises if it is not what the run has read before.

    What is trained is not trained again, so all models must be of one data set, and
    have begun as one encoder. As the record stays, recipes write it when nothing else
    can refuse a start.

    Args:
        run: its directory, which has `read_data.json` from now on.
        dataset: its labels and metrics.
        parts: the examples by the names of their parts.
        trained: a pattern of folders in the run; a model whose metrics are there is
            trained, and one that a signal has saved there in part.
        models: settings that name what it begins with; others that it has noted are
            not compared.
        others: the digests of what else it reads, by the settings that name it; as of
            `models`.

    Raises:
        ValueError: if labels, metrics or examples are others, or the encoder is; it
            names them.
    """
    labels = dataset.label_names
    found = {
        "label_names": None if labels is None else list(labels),
        "metric_names": list(dataset.metric_names),
        "examples": {
            part: examples_digest(examples) for part, examples in parts.items()
        },
    }
    found |= _digests_of_models(run.config, models) | dict(others)
    folders = os.path.join(glob.escape(run.directory), trained)
    has_trained = any(
        glob.glob(os.path.join(folders, name)) for name in (METRICS, f"{INTERRUPTED}*")
    )
    named = {*models, *others}
    there, changes = _noted(run, found, has_trained, named)
    changes = [name for name in changes if name in found or name in models]
    if changes and named.issuperset(changes):
        raise _changed_model(run, changes[0], changes[0] in models)
    if changes:
        parts = _changed_parts(there.get("examples"), found["examples"])
        names = [f"{n}{parts}" if n == "examples" else n for n in changes]
        raise ValueError(
            "`run_dir` must be a new folder where the data have changed. Received: "
            f"run_dir={run.shown(run.directory)!r}, which has read other "
            f"{', '.join(names)} than there are now for {dataset.name}, unless "
            f"{READ_DATA}, which has their digests, is damaged"
        )
    found = {**there, **found}
    if there != found:
        write_text(run.path(READ_DATA), json.dumps(found, indent=2))
    note_versions(run)


def _changed_model(run, name, is_encoder=True):
    """The error of a run whose setting `name` names another model than at its begin."""
    what = f"the encoder of `{name}`" if is_encoder else f"what `{name}` names"
    return ValueError(
        f"`run_dir` must be a new folder where {what} has changed. Received: "
        f"run_dir={run.shown(run.directory)!r}, which has begun with another "
        f"{name}={run.config[name]!r} than there is now, unless {READ_DATA}, which has "
        "its digest, is damaged"
    )


def _changed_parts(there, found):
    """The parts whose examples have changed, in brackets; nothing if none is known."""
    if not isinstance(there, Mapping):
        return ""
    parts = [part for part in found if there.get(part) != found[part]]
    return f" ({', '.join(parts)})" if parts else ""


@paths(path=READ)
def file_digest(path: str) -> str:
    """The digest of a file, for the record of a run that reads it."""
    return sha256(path)


def _noted(run, found, has_trained, models):
    """The record of a run that has trained, and the names of what differs now.

    That of one whose data lie elsewhere counts, too. Of the `models` a record may lack
    some, as those whose files had no digests.
    """
    path = run.path(READ_DATA)
    has_moved = has_moved_data(run)
    counts = (has_trained or has_moved) and is_there(path)
    there = read_object(path, run.directory) if counts else {}
    # Moved data are known by what is noted alone.
    moved = [name for name in found if name not in models] if has_moved else []
    names = dict.fromkeys([*there, *moved])
    return there, [name for name in names if there.get(name) != found.get(name)]


def _digests_of_models(config, models):
    """The digests of the files of the models that trainings begin with, by setting."""
    found = {}
    for model in [name for name in models if name in config]:
        path = config[model]
        steps = config.get("pretrained_steps") or ()
        paths = [f"{path}@{step}" for step in steps] or [path]
        digests = {x: digest for path in paths for x, digest in _digests(path).items()}
        if digests:
            found[model] = digests
    return found


@paths(pretrained=READ_MODEL)
def _digests(pretrained):
    """The digests of a preset, or of a checkpoint, by the names of files.

    There are none of a preset without `SHA256SUMS`. An encoder that is saved again
    has the same ones: `metadata.json`, with its date, and the names of objects do not
    count, and of a checkpoint the weights alone do.
    """
    folder, step = split_step(pretrained)
    if step is not None:
        with named_as(step="pretrained", run_dir="pretrained"):
            file, _ = run_checkpoint(folder, step)
        load_notes(file)  # Damage is named.
        with (
            zipfile.ZipFile(file) as archive,
            archive.open("model.weights.h5") as weights,
        ):
            return {os.path.basename(file): sha256_of(weights)}
    preset = find_preset(folder)
    if not is_there(os.path.join(preset, SHA256SUMS)):
        return {}
    digests = read_digests(preset)
    digests.pop("metadata.json", None)
    for name in [name for name in digests if name.endswith(".json")]:
        content = read_object(os.path.join(preset, name))
        if isinstance(config := content.get("config"), dict):
            config.pop("name", None)
        text = json.dumps(content, sort_keys=True)
        digests[name] = hashlib.sha256(text.encode()).hexdigest()
    return digests


def caches_record(train: tfeff.data.Cache, validation: tfeff.data.Cache) -> dict:
    """The digests that identify the caches of a pretraining, by the caches' names."""
    noted = ("corpus_hash", "num_sequences", "tokenizer_hash")
    return {
        name: {attribute: getattr(cache, attribute) for attribute in noted}
        for name, cache in zip(CACHES, (train, validation))
    }


def keep_caches(
    run: tfeff.training.RunDirectory,
    train: tfeff.data.Cache,
    validation: tfeff.data.Cache,
    source: str,
    examples: Mapping = {},
    models: Sequence[str] = (),
) -> None:
    """Notes the data of a pretraining; raises if it has begun with others.

    A run without a note, which somebody has deleted, resumes with the caches that there
    are.

    Args:
        run: its directory, which has `read_data.json` from now on. It has begun where
            it has a checkpoint.
        train, validation: the caches.
        source: the setting that names them, and its value, for messages.
        examples: from `examples_record`.
        models: settings that name models on disk which each start reads.

    Raises:
        ValueError: if a cache is of other text, or of other sequences or tokens of it,
            or the examples or a model are others.
    """
    found = caches_record(train, validation) | dict(examples)
    found[CROSS_DOCUMENTS] = train.cross_documents
    found |= _digests_of_models(run.config, models)
    has_trained = bool(checkpoint_steps(run.path(CHECKPOINTS)))
    there, changes = _noted(run, found, has_trained, models)
    if changes and set(changes) <= set(models):
        raise _changed_model(run, changes[0])
    if changes == [_EXAMPLES]:
        raise ValueError(
            "`run_dir` must be a new folder where the examples of its objective have "
            f"changed. Received: run_dir={run.shown(run.directory)!r}, which has "
            f"trained with {json.dumps(there[_EXAMPLES])}, not with "
            f"{json.dumps(found.get(_EXAMPLES))}"
        )
    if changes:
        raise ValueError(
            "`run_dir` must be a new folder where the text or the tokenizer has "
            "changed. Received: "
            f"run_dir={run.shown(run.directory)!r}, which has "
            f"{'trained with' if has_trained else 'read'} other "
            f"caches ({', '.join(changes)}) than those of {source} now"
        )
    if there != found:
        write_text(run.path(READ_DATA), json.dumps(found, indent=2))
    note_versions(run)


def examples_record(objective: tfeff.objectives.PretrainingObjective) -> dict:
    """The settings that identify a registered objective's examples, by its name.

    Nothing of tfeff's own objectives, whose settings are in the run's configuration.
    """
    if is_of_tfeff(objective.name):
        return {}
    return {_EXAMPLES: _described(objective.examples)}


def _described(value):
    """A value as JSON; of what JSON does not have, such as functions, its type."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"type": type(value).__qualname__, **_described(fields)}
    if isinstance(value, Mapping):
        return {str(name): _described(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_described(item) for item in value]
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return type(value).__qualname__


@paths(run_dir=READ_MODEL)
def crosses_documents(run_dir: str, settings: PretrainSettings) -> bool:
    """Whether the sequences of a pretraining may span documents.

    Args:
        run_dir: the run.
        settings: its settings, which do not tell it of a `cache_dir`: then it is in the
            run's note or, where that is deleted, in the cache.
    """
    if settings.cache_dir is None:
        return settings.cross_documents
    path = os.path.join(run_dir, READ_DATA)
    note = read_object(path, run_dir) if is_there(path) else {}
    if CROSS_DOCUMENTS in note:
        return note[CROSS_DOCUMENTS]
    try:
        # A run may be a stranger's, and nobody else names the URL.
        if is_url(settings.cache_dir):
            raise ValueError(f"{settings.cache_dir} is not asked")
        return cached_manifest(settings.cache_dir).cross_documents
    except (OSError, ValueError) as error:
        say(
            "sequences are taken to end with their documents, as the run does not tell "
            f"how its cache_dir was cut: {error}"
        )
        return False


def examples_digest(examples: Any) -> str:
    """Digest of all columns but those of what was left out."""
    digest = hashlib.sha256()
    for field in dataclasses.fields(examples):
        if field.name in ("skipped", "mismatched"):
            continue
        values = getattr(examples, field.name)
        for value in values if isinstance(values, tuple) else (values,):
            digest.update(json.dumps(value, default=_plain).encode() + b"\n")
    return digest.hexdigest()


def _plain(value):
    if dataclasses.is_dataclass(value):
        return dataclasses.astuple(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else str(value)
