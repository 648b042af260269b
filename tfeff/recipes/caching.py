"""Caches that are built before a training, by this process or by Apache Beam."""

import contextlib
import json
import os

import tfeff
from tfeff.recipes.cache_settings import CacheSettings
from tfeff.recipes.corpora import (
    CACHES,
    build_caches,
    check_other_text,
    given_tokenizer,
    train_and_validation,
    train_tokenizer,
)
from tfeff.recipes.corpus_settings import (
    OF_TRAINED,
    check_no_fraction,
    check_no_training,
)
from tfeff.recipes.next_commands import print_next
from tfeff.recipes.runs import upgraded
from tfeff.recipes.settings import check_settings
from tfeff.storage.arguments import written_or_reused
from tfeff.tasks.run_tokenizer import (
    RUN_TOKENIZER,
    has_run_tokenizer,
    load_run_tokenizer,
    save_run_tokenizer,
    seal_run_tokenizer,
)
from tfeff.utils.beam import BeamJobs
from tfeff.utils.checks import differences
from tfeff.utils.files import make_folder, write_text
from tfeff.utils.job_output import job_output
from tfeff.utils.json_files import read_object
from tfeff.utils.naming import named_as
from tfeff.utils.paths import is_url
from tfeff.utils.run_files import CONFIG


@job_output()
def cache(settings: CacheSettings) -> tuple[tfeff.data.Cache, tfeff.data.Cache]:
    """Writes the tokenizer and the caches that the settings describe.

    Args:
        settings: see `CacheSettings`.

    Returns:
        The caches of the text to train on, and of that to validate by.

    Raises:
        TypeError: if `settings` are not `CacheSettings`.
        ValueError: if settings do not fit each other, the folder is of others, or Beam
            does not know the runner or a flag.
        ImportError: if Beam, or what its runner needs, is not installed.
        OSError: if a pipeline of Beam fails; no partial cache remains.

    Example:
    ```python
    from tfeff.recipes import CacheSettings, cache

    settings = CacheSettings(
        cache_dir="english",
        max_characters=200_000,
        validation_fraction=0.3,
        vocabulary_size=300,
    )
    train, validation = cache(settings)
    assert train.num_tokens > validation.num_tokens
    ```
    """
    check_settings(settings, CacheSettings)
    check_no_fraction(settings)
    if not os.path.exists(os.path.join(settings.cache_dir, CONFIG)):
        check_other_text(settings)
    jobs = _beam_jobs(settings)
    if settings.tokenizer:
        check_no_training(
            settings, (*OF_TRAINED, "tokenizer_sample", "vocabulary_size")
        )
    tokenizer = given_tokenizer(settings)
    train, validation = train_and_validation(settings)
    with _settings_folder(settings.cache_dir) as folder:
        make_folder("cache_dir", folder)
        with _begun(folder, settings):
            if tokenizer is None and not has_run_tokenizer(folder):
                sample = _sample(train, settings, jobs)
                tokenizer = train_tokenizer(sample, settings)
            # Another process may have begun, been interrupted or ended meanwhile.
            _claim(folder, settings)
            if has_run_tokenizer(folder):
                tokenizer = _kept_tokenizer(folder, tokenizer, settings)
                with contextlib.suppress(OSError):  # It need not be written to.
                    seal_run_tokenizer(folder)
            else:
                save_run_tokenizer(tokenizer, folder)
                seal_run_tokenizer(folder)
    caches = build_caches(
        settings.cache_dir,
        train,
        validation,
        tokenizer,
        settings.sequence_length,
        cross_documents=settings.cross_documents,
        of_validation=settings.of_validation,
        directory="cache_dir",
        beam_flags=jobs,
    )
    print_next(
        "a training on them",
        *("pretrain", "--run_dir=RUN", f"--cache_dir={settings.cache_dir}"),
        f"--sequence_length={settings.sequence_length}",
        f"--vocabulary_size={tokenizer.vocabulary_size()}",
    )
    return caches


def _settings_folder(cache_dir: str) -> contextlib.AbstractContextManager[str]:
    """Where the settings and the tokenizer are written; a copy of what is at a URL."""
    if is_url(cache_dir):
        return written_or_reused("cache_dir", cache_dir)
    return contextlib.nullcontext(cache_dir)


def _kept_tokenizer(folder, given, settings):
    """The tokenizer of an earlier start, which the given one must be again."""
    kept = load_run_tokenizer(folder)
    if not settings.tokenizer:
        print("the tokenizer is that of an earlier start")
        return kept
    fingerprint = tfeff.data.tokenizer_fingerprint
    if fingerprint(kept) != fingerprint(given):
        raise ValueError(
            "`cache_dir` must be a new folder where the tokenizer that `tokenizer` "
            f"names has changed. Received: cache_dir={settings.cache_dir!r}, which has "
            f"kept another one than that of tokenizer={settings.tokenizer!r} now"
        )
    return kept


@contextlib.contextmanager
def _begun(folder, settings):
    """Within it, the folder is one of these settings, or is made one.

    They are written before the work, so that a process with others is refused; a new
    folder's are removed where the work fails, so that it can be begun with others.
    """
    is_new = _claim(folder, settings)
    try:
        yield
    except BaseException:
        if is_new and not has_run_tokenizer(folder):
            with contextlib.suppress(OSError, ValueError):
                _compare(folder, settings)  # Another process may have begun since.
                os.remove(os.path.join(folder, CONFIG))
        raise


def _claim(folder, settings):
    """Writes the settings of a folder that has none; returns whether it has.

    Raises:
        ValueError: if the folder has others, or files and no settings.
    """
    config = os.path.join(folder, CONFIG)
    if not os.path.lexists(config):
        _check_new(folder, settings)
        write_text(config, json.dumps(settings.config(), indent=1))
        return True
    _compare(folder, settings)
    return False


def _beam_jobs(settings):
    """The runner of the pipelines; `None` if the settings have none."""
    if settings.runner is None:
        if settings.beam_flags:
            raise ValueError(
                "`runner` must be given with flags of Beam. Received: "
                f"{' '.join(settings.beam_flags)}"
            )
        return None
    return BeamJobs([f"--runner={settings.runner}", *settings.beam_flags])


def _check_new(folder, settings):
    """Raises where a folder without settings has files that would be written."""
    names = (*RUN_TOKENIZER, *CACHES)
    found = [name for name in names if os.path.lexists(os.path.join(folder, name))]
    if found:
        raise ValueError(
            "`cache_dir` must be a new folder, or one that was begun with the same "
            f"settings. Received: {settings.cache_dir!r}, which has "
            f"{', '.join(found)} and no {CONFIG}"
        )


def _compare(folder, settings):
    """Raises where the folder's settings are not these."""
    config = read_object(os.path.join(folder, CONFIG))
    with named_as(directory="cache_dir"):
        found = upgraded(CacheSettings, folder, config)
    others = [
        f"{name} is {there!r}, not {wanted!r}"
        for name, there, wanted in differences(found, settings.config())
    ]
    if others:
        raise ValueError(
            "`cache_dir` must be a new folder, or begun with the same settings. "
            f"Received: {settings.cache_dir!r}, where {'; '.join(others)}. Choose "
            "another folder, or delete this one"
        )


def _sample(documents, settings, jobs):
    """The documents that a tokenizer is trained on."""
    if settings.tokenizer_sample is None:
        return documents
    return tfeff.data.sample(
        documents,
        settings.tokenizer_sample,
        beam_flags=jobs,
        shared_folder=None if jobs is None else settings.cache_dir,
    )
