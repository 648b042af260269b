"""Text of the recipes: documents by name, and as caches of tokens."""

import itertools
import os
from collections.abc import Mapping, Sequence

import tfeff
from tfeff.data.cache.manifest import FILE_NAME, Manifest
from tfeff.data.text.corpus import Corpus, parts_of
from tfeff.data.text.records import JSON_LINES, PARQUET
from tfeff.recipes.unknown_tokens import print_unknown_in_corpus
from tfeff.storage.local import local_path
from tfeff.utils.naming import named_as
from tfeff.utils.paths import is_url

# The setting that gives what readers of text name so, also while it is read.
OF_TEXT = dict.fromkeys(("field", "column", "feature"), "text_field")
# To train on, and to validate by.
CACHES = ("train", "validation")


def corpus(names: Sequence[str], settings, setting: str = "corpus") -> Corpus:
    """Documents by the names that the settings named `corpus` take, in their order.

    A file that several names match is read once, at its first place.

    Args:
        names: the names.
        settings: they have `max_characters` and `text_field`.
        setting: the setting that has the names.
    """
    groups = [(kind, list(group)) for kind, group in itertools.groupby(names, _kind)]
    read = {
        "docstrings": lambda _: tfeff.data.docstrings(
            max_characters=settings.max_characters
        ),
        "tfds": lambda group: _each(
            group, lambda name: tfeff.data.tfds(name, feature=settings.text_field)
        ),
        "hf": lambda group: _each(
            group,
            lambda name: tfeff.data.hugging_face(_load(name), settings.text_field),
        ),
        "json_lines": lambda group: tfeff.data.json_lines(group, settings.text_field),
        "parquet": lambda group: tfeff.data.parquet(group, settings.text_field),
        "text": tfeff.data.text_files,
    }
    with named_as(patterns=setting, name=setting, **OF_TEXT):
        documents = _joined(read[kind](group) for kind, group in groups)
    return Corpus(_each_file_once(documents.parts))


def _each_file_once(parts):
    files = set()
    for part in parts:
        if part.file is None or part.file not in files:
            files.add(part.file)
            yield part


def _kind(name):
    if name == "docstrings":
        return name
    scheme = name.partition(":")[0]
    if scheme in ("tfds", "hf"):
        return scheme
    kind = name.lower().removesuffix(".gz")
    if kind.endswith(JSON_LINES):
        return "json_lines"
    return "parquet" if kind.endswith(PARQUET) else "text"


def _each(names, read):
    return _joined(read(name.partition(":")[2]) for name in names)


def _joined(corpora):
    return Corpus(part for documents in corpora for part in parts_of(documents))


def _load(name):
    """A Hugging Face data set: a folder of `save_to_disk`, or its training split."""
    try:
        import datasets
    except ImportError as error:
        raise ValueError(
            f"`name` needs Hugging Face's data sets for hf:{name}: pip install datasets"
        ) from error
    try:
        if os.path.isdir(name):
            return _training_split(datasets.load_from_disk(name), name)
        path, _, configuration = name.partition(":")
        return datasets.load_dataset(
            path, configuration or None, split="train", streaming=True
        )
    except Exception as error:  # Errors of many libraries.
        raise ValueError(
            "`name` must name a data set with a training split, or a folder of "
            f"`save_to_disk`. Received: hf:{name}: {error}"
        ) from error


def _training_split(dataset, name):
    """The data set of a folder, of several splits that to train on."""
    if not isinstance(dataset, Mapping):
        return dataset
    if "train" not in dataset:
        raise ValueError(
            f"it has the splits {', '.join(dataset)} and no train. Name one as its own "
            f"folder, such as hf:{os.path.join(name, next(iter(dataset), 'train'))}"
        )
    return dataset["train"]


def check_other_text(settings) -> None:
    """Raises if a data set is both to be trained on and to validate by."""
    for name in settings.validation:
        if name in settings.corpus and _kind(name) in ("docstrings", "hf", "tfds"):
            raise ValueError(
                "`validation` must be of other text than `corpus`, whose documents are "
                "trained on: of a data set both read the training split. Leave it out "
                f"to hold a part of `corpus` out. Received: {name} in both"
            )


def train_and_validation(settings):
    """Documents to train on and to validate by, as the settings name them.

    Args:
        settings: as of `split_corpus`; they have `corpus` and `validation`, too.

    Raises:
        ValueError: if a file is in both.
    """
    if not settings.validation:
        return split_corpus(settings.corpus, settings, ("other text as `validation`",))
    train, validation = (
        corpus(getattr(settings, name), settings, name)
        for name in ("corpus", "validation")
    )
    trained = {_real_file(part) for part in train.parts} - {None}
    for part in validation.parts:
        if _real_file(part) in trained:
            raise ValueError(
                "`validation` must be of other files than `corpus`, whose documents "
                f"are trained on. Received: {part.name} in both"
            )
    return train, validation


def _real_file(part):
    """The file of a part, behind all links; `None` of other documents."""
    is_local = part.file is not None and not is_url(part.file)
    return os.path.realpath(part.file) if is_local else part.file


def given_tokenizer(settings):
    """The tokenizer that the settings name as `tokenizer`; `None` if they name none."""
    if not settings.tokenizer:
        return None
    try:
        return tfeff.convert.load_tokenizer(settings.tokenizer)
    except ValueError as error:
        raise ValueError(
            f"`tokenizer` must be what tfeff.convert.load_tokenizer reads: {error}"
        ) from error


def train_tokenizer(documents, settings):
    """A new tokenizer of the settings' size and kind."""
    print(f"training a tokenizer of {settings.vocabulary_size:,} pieces")
    with named_as(documents="corpus", **OF_TEXT):
        return tfeff.data.train_tokenizer(
            documents,
            settings.vocabulary_size,
            kind=settings.tokenizer_kind,
            lowercase=settings.tokenizer_lowercase,
        )


def split_corpus(names: Sequence[str], settings, other_ways: Sequence[str] = ()):
    """Documents to train on and to validate by, of one corpus.

    Args:
        names: as of `corpus`.
        settings: as of `corpus`; they have `validation_fraction`, too.
        other_ways: what else than another fraction the error can advise.

    Raises:
        ValueError: if there are too few documents for both.
    """
    validation_fraction = settings.validation_fraction
    parts = tfeff.data.split(corpus(names, settings), validation_fraction)
    with named_as(**OF_TEXT):
        is_empty = any(next(iter(part), None) is None for part in parts)
        sizes = [sum(1 for _ in part) for part in parts] if is_empty else []
    if is_empty:
        hint = ""
        if sum(sizes) <= len(parts[0].parts):  # No more than one a file.
            hint += (
                " In text files a blank line ends a document, in JSON Lines (.jsonl) "
                "a line does."
            )
        ways = [f"a {'larger' if sizes[0] else 'smaller'} fraction"] * (sum(sizes) > 1)
        ways += other_ways
        if ways:
            hint += f" Give {' or '.join(ways)}."
        raise ValueError(
            "`validation_fraction` must leave documents to train on and to validate "
            f"by. Received: {validation_fraction=}, documents: {sum(sizes)}.{hint}"
        )
    return parts


def build_caches(
    folder: str,
    train,
    validation,
    tokenizer,
    sequence_length: int,
    *,
    cross_documents: bool = False,
    of_validation: str = "corpus",
    directory: str = "run_dir",
    beam_flags: Sequence[str] | None = None,
) -> tuple[tfeff.data.Cache, tfeff.data.Cache]:
    """Caches in a folder: of the text to train on, and of that to validate by.

    Args:
        folder: where both are made.
        train, validation: the documents, as of `train_and_validation`.
        tokenizer: that of the sequences.
        sequence_length, cross_documents: as of `tfeff.data.build_cache`.
        of_validation: the setting that names the documents to validate by.
        directory: the setting that names the folder.
        beam_flags: as of `tfeff.data.build_cache`.
    """
    with named_as(documents="corpus", **OF_TEXT):
        print_unknown_in_corpus(train, tokenizer)
    caches = []
    for name, documents, setting in zip(
        CACHES, (train, validation), ("corpus", of_validation)
    ):
        with named_as(documents=setting, directory=directory, **OF_TEXT):
            cache = tfeff.data.build_cache(
                documents,
                tokenizer,
                os.path.join(folder, name),
                sequence_length,
                cross_documents=cross_documents,
                beam_flags=beam_flags,
            )
        caches.append(cache)
    trained, validated = caches
    _report(trained, validated)
    return trained, validated


def open_caches(
    folder: str, tokenizer, sequence_length: int, verify: bool = True
) -> tuple[tfeff.data.Cache, tfeff.data.Cache]:
    """The caches that `build_caches` wrote; `verify` reads and reports them.

    Raises:
        ValueError: if they are damaged, or of another tokenizer or sequence length.
    """
    trained, validated = (
        tfeff.data.open_cache(os.path.join(folder, name), tokenizer, verify)
        for name in CACHES
    )
    check_cached(trained, validated, sequence_length)
    if verify:
        _report(trained, validated)
    return trained, validated


def check_cached(
    trained: tfeff.data.Cache | Manifest,
    validated: tfeff.data.Cache | Manifest,
    sequence_length: int,
) -> None:
    """Raises unless caches, or their manifests, are alike and of a sequence length."""
    if trained.sequence_length != sequence_length:
        raise ValueError(
            "`sequence_length` must be that of `cache_dir`, "
            f"{trained.sequence_length}. Received: sequence_length={sequence_length}"
        )
    for name in ("sequence_length", "cross_documents"):
        one, other = (getattr(cache, name) for cache in (trained, validated))
        if one != other:
            raise ValueError(
                f"`cache_dir` must have two caches of the same {name}. Received: "
                f"{one} of what to train on, {other} of what to validate by"
            )


def cached_manifest(folder: str, name: str = CACHES[0]) -> Manifest:
    """The manifest of a cache in a folder.

    Args:
        folder: as of `open_caches`; no more than a manifest is read of it.
        name: one of `CACHES`; by default the one to train on.

    Raises:
        ValueError: if there is none, or it is damaged; it names `cache_dir`.
    """
    path = local_path(
        "cache_dir",
        os.path.join(folder, name),
        whole=True,
        select=lambda _: [FILE_NAME],
    )
    with named_as(directory="cache_dir"):
        return Manifest.read(path)


def _report(trained, validated):
    print(
        f"training text: {trained.num_tokens:,} tokens; "
        f"validation text: {validated.num_tokens:,} tokens"
    )
