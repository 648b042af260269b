"""The text of a pretraining: its tokenizer, its caches and their batches."""

import contextlib
import functools

import tensorflow as tf

import tfeff
from tfeff.data.cache.manifest import OtherTokenizer
from tfeff.recipes.corpora import (
    CACHES,
    build_caches,
    cached_manifest,
    check_cached,
    given_tokenizer,
    open_caches,
    train_and_validation,
    train_tokenizer,
)
from tfeff.recipes.data_record import examples_record, keep_caches
from tfeff.recipes.pretraining_model import objective
from tfeff.recipes.starting import has_checkpoint
from tfeff.tasks.run_tokenizer import (
    has_run_tokenizer,
    load_run_tokenizer,
    save_run_tokenizer,
    seal_run_tokenizer,
)
from tfeff.utils.naming import named_as
from tfeff.utils.paths import is_url
from tfeff.utils.run_files import CACHE


def make_data(run, settings):
    """The tokenizer and the caches of both texts, which an earlier start may have made.

    What an earlier start has made is compared, and used again.
    """
    given = _given_tokenizer(run, settings)
    length = settings.sequence_length
    if settings.cache_dir:
        tokenizer = _tokenizer(run, given, None, settings)
        with named_as(directory="cache_dir"), _other_tokenizer_named(settings):
            caches = open_caches(settings.cache_dir, tokenizer, length)
        source = f"cache_dir={settings.cache_dir!r}"
    else:
        texts = train_and_validation(settings)
        tokenizer = _tokenizer(run, given, texts[0], settings)
        caches = build_caches(
            run.path(CACHE),
            *texts,
            tokenizer,
            length,
            cross_documents=settings.cross_documents,
            of_validation=settings.of_validation,
        )
        source = f"corpus={list(settings.corpus)}"
    keep_caches(run, *caches, source, examples_record(objective(settings)))
    return tokenizer, *caches


def read_data(run, settings):
    """The tokenizer and caches that `make_data` of another process made or read."""
    tokenizer = load_run_tokenizer(run.directory)
    folder = settings.cache_dir or run.path(CACHE)
    length = settings.sequence_length
    return tokenizer, *open_caches(folder, tokenizer, length, verify=False)


def valid_batches(settings, valid, tokenizer):
    """Makes the batches to validate by."""
    return functools.partial(
        valid.batches,
        objective(settings).examples,
        settings.batch_size,
        shuffle=False,
        repeat=False,
        tokenizer=tokenizer,
    )


def check_cache(settings):
    """Raises where the caches of `cache_dir` do not fit the settings or each other."""
    cache_dir = settings.cache_dir
    if not cache_dir:
        return
    manifests = [cached_manifest(cache_dir, name) for name in CACHES]
    check_cached(*manifests, settings.sequence_length)
    is_of_pairs = isinstance(objective(settings).examples, tfeff.data.SentencePairs)
    if is_of_pairs and manifests[0].cross_documents:
        raise ValueError(
            "`cache_dir` must have sequences of one document each for pairs of "
            "sentences: those of tfeff cache without --cross_documents. Received: "
            f"cache_dir={cache_dir!r}, objective={settings.objective!r}"
        )


def check_cached_tokenizer(settings):
    """Raises where the sequences of `cache_dir` are of another tokenizer.

    Args:
        settings: of a new run, whose model has been made: `pretrained` is there.
    """
    if settings.cache_dir and settings.pretrained:
        tokenizer = tfeff.convert.load_tokenizer(settings.pretrained)
        with _other_tokenizer_named(settings):
            _compare_with_caches(tokenizer, settings)


@contextlib.contextmanager
def _other_tokenizer_named(settings):
    """Within it, another tokenizer than that of the caches is an error of settings."""
    try:
        yield
    except OtherTokenizer as error:
        name, whose = "run_dir", "this run, which another one cannot go on with"
        if settings.pretrained:
            name = "pretrained"
            whose = f"`pretrained`: `tfeff cache --tokenizer={settings.pretrained}`"
        raise ValueError(
            f"`cache_dir` must have sequences of the tokenizer of {whose}. Received: "
            f"cache_dir={settings.cache_dir!r}, {name}={getattr(settings, name)!r}"
        ) from error


def check_some_word_fits(settings, batches):
    """Raises where words or n-grams are masked and all are larger than the budget.

    Most often the first batch has a target, and is all that is read.
    """
    if settings.masking == "token":
        return
    for _, _, weights in batches:
        if isinstance(weights, dict):  # Pairs of sentences are targets, too.
            weights = weights.get("masked_lm", 1.0)
        if tf.reduce_any(weights > 0):
            return
    raise ValueError(
        "`masking` must be 'token' for text in which no word fits into the share "
        "`mask_rate` of a sequence's tokens, such as text without spaces: a model "
        "would learn nothing. As the settings of `run_dir` are fixed, another folder "
        f"is needed. Received: masking={settings.masking!r}, "
        f"mask_rate={settings.mask_rate}, validation text without a token to predict"
    )


def _tokenizer(run, given, documents, settings):
    """The run's tokenizer: from an earlier start, the given one, or trained now."""
    if not has_run_tokenizer(run.directory):
        if given is None:
            given = train_tokenizer(documents, settings)
        save_run_tokenizer(given, run.directory)
    seal_run_tokenizer(run.directory)
    return load_run_tokenizer(run.directory) if given is None else given


def _given_tokenizer(run, settings):
    """The tokenizer that the settings name; `None` where the run has its own.

    An encoder to start from has the run's, too, until the training has begun.
    """
    is_kept = has_run_tokenizer(run.directory)
    has_begun = is_kept and has_checkpoint(run.directory)
    if settings.pretrained and not has_begun:
        _, tokenizer = tfeff.tasks.load_pretrained(settings.pretrained)
        if is_kept:
            _check_kept(run, tokenizer, settings)
        return tokenizer
    if is_kept:
        if not has_begun:
            print("the tokenizer is that of an earlier start")
        return None
    if settings.cache_dir:
        folder = settings.cache_dir
        if not (is_url(folder) or has_run_tokenizer(folder)):
            raise ValueError(
                "`cache_dir` must be of `tfeff cache`, with the tokenizer beside the "
                f"sequences. Received: cache_dir={folder!r}, without one"
            )
        tokenizer = load_run_tokenizer(folder)
        _check_cached(tokenizer, settings)
    else:
        tokenizer = given_tokenizer(settings)
    if tokenizer is None:
        return None
    if tokenizer.vocabulary_size() > settings.vocabulary_size:
        raise ValueError(
            "`vocabulary_size` must be at least the tokenizer's "
            f"{tokenizer.vocabulary_size()}. Received: "
            f"vocabulary_size={settings.vocabulary_size}"
        )
    return tokenizer


def _check_cached(tokenizer, settings):
    """Raises where the tokenizer beside the caches has not cut their sequences."""
    try:
        _compare_with_caches(tokenizer, settings)
    except OtherTokenizer as error:
        raise ValueError(
            "`cache_dir` must have the tokenizer that has cut its sequences: the one "
            "there is damaged, or another one. "
            f"Received: cache_dir={settings.cache_dir!r}"
        ) from error


def _compare_with_caches(tokenizer, settings):
    """Raises `OtherTokenizer` where the caches are of another one."""
    fingerprint = tfeff.data.tokenizer_fingerprint(tokenizer)
    for name in CACHES:
        cached_manifest(settings.cache_dir, name).check_tokenizer(fingerprint)


def _check_kept(run, tokenizer, settings):
    """Raises where the run's tokenizer is not that of the encoder to start from."""
    fingerprint = tfeff.data.tokenizer_fingerprint
    if fingerprint(load_run_tokenizer(run.directory)) != fingerprint(tokenizer):
        raise ValueError(
            "`run_dir` must be a new folder where the tokenizer of `pretrained` has "
            f"changed. Received: run_dir={run.shown(run.directory)!r}, which has kept "
            f"another one than pretrained={settings.pretrained!r} has now"
        )
