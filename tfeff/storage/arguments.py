"""Arguments that take URLs beside paths: one table of what is read and written."""

import contextlib
import dataclasses
import functools
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ParamSpec, TypeVar

from tfeff.storage.fetching import fetch_folder, keep_copy
from tfeff.storage.local import local_of, local_path, local_run
from tfeff.storage.manifest import local_files, read_manifest
from tfeff.storage.naming import named_by_urls, split_url
from tfeff.storage.place import Place
from tfeff.storage.publishing import check_new, check_publishable, publish_folder
from tfeff.storage.staging import staged, staging_dir
from tfeff.utils.digests import FILE_NAME, SUFFIX, read_digests
from tfeff.utils.files import check_regular
from tfeff.utils.job_output import say
from tfeff.utils.partial import temporary_folder
from tfeff.utils.paths import check_path, is_hub_address, is_url
from tfeff.utils.run_files import BESIDE_MODEL, is_in

P = ParamSpec("P")
R = TypeVar("R")


@dataclasses.dataclass(frozen=True)
class Access:
    """How a function uses the file or folder that an argument names.

    Attributes:
        text: what is done, in a few words, for the table.
        open: takes the argument's name and a URL; a context manager with the local path
            to work on.
        writes: whether something is written there.
    """

    text: str
    open: Callable[[str, str], contextlib.AbstractContextManager[str]]
    writes: bool = False


# Files that tell together which tokenizer it is.
_BESIDE = (
    *("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "tokenizer.json"),
    *("tokenizer_config.json", "special_tokens_map.json", "config.json"),
    *("added_tokens.json", "30k-clean.model", "sentencepiece.bpe.model"),
)
# The use of each public function's arguments: `{"module.function": {name: Access}}`.
TABLE: dict[str, dict[str, Access]] = {}


def paths(**accesses: Access) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function whose arguments of these names may be URLs.

    The function itself works on local paths.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)
        TABLE[f"{function.__module__}.{function.__qualname__}"] = accesses

        @functools.wraps(function)
        def with_local_paths(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # It says what is wrong.
            urls: dict[str, str] = {}
            written: dict[str, str] = {}
            with contextlib.ExitStack() as stack:
                for name, access in accesses.items():
                    value: Any = given.arguments.get(name)
                    if not is_url(value) or _hub(value):
                        continue
                    if access.writes and (local := local_of(value)):
                        given.arguments[name] = local
                        continue
                    if access.writes and given.arguments.get("overwrite"):
                        raise ValueError(
                            f"`overwrite` must be False where `{name}` is a URL: what "
                            "is whole there is not replaced. Give a new URL. Received: "
                            f"overwrite=True, {name}={value!r}"
                        )
                    path = stack.enter_context(access.open(name, value))
                    given.arguments[name] = path
                    urls[path] = value
                    if access.writes:
                        written[path] = value
                with named_by_urls(urls):
                    result = function(*given.args, **given.kwargs)
                return _with_urls(result, written)

        return with_local_paths

    return decorate


def check_replaceable(name: str, value: str) -> None:
    """Raises where no file can be written or replaced, before there is one to write."""
    if is_url(value) and not local_of(value):
        place = Place(name, value)
        _is_file(place)
        place.check_writable()
        return
    path = os.path.abspath(local_of(value) or check_path(name, value))
    try:
        check_regular(path)
        tempfile.TemporaryFile(dir=os.path.dirname(path)).close()
    except OSError as error:
        raise ValueError(
            f"`{name}` must be a file that can be written. Received: "
            f"{name}={value!r}: {error.strerror}"
        ) from error


def check_keeps_inputs(name: str, value: str, inputs: Iterable[str]) -> None:
    """Raises if a file that is to be written would replace one that is read.

    Args:
        name: the argument's name.
        value: the path or URL that is to be written.
        inputs: paths and URLs of the files and folders that are read. A folder here may
            take a file that is none of its own; one at a URL takes none.
    """
    output = _one_name(name, value)
    for given in inputs:
        if is_url(output) != (is_url(given) and not local_of(given)) or _hub(given):
            continue
        own = _one_name(name, given)
        is_within = output.startswith(f"{own}/")
        if output == own or is_within and _is_own(own, output):
            raise ValueError(
                f"`{name}` must not replace what is read. Received: {name}={value!r}, "
                + (f"in {given!r}" if is_within else "which is read")
            )


def _one_name(name, value):
    """A path or URL by the one name that all spellings of it share."""
    if is_url(value) and not local_of(value):
        return Place(name, value).one_url.rstrip("/")
    return os.path.realpath(local_of(value) or value)


def _is_own(folder, path):
    """Whether a path within a folder is of a file that belongs to it."""
    if is_url(folder):
        return True  # What is published is a whole.
    try:
        digests = read_digests(folder)
    except FileNotFoundError:
        return os.path.lexists(path)
    name = os.path.relpath(path, folder)
    return name in digests or name.endswith(SUFFIX) or FILE_NAME in name


def _hub(url):
    """Whether a URL names a preset for KerasHub to download."""
    schemes = ("hf://", "kaggle://", "modelscope://")
    return url.startswith(schemes) or is_hub_address(url)


def _with_urls(result, urls):
    """The result of a function, with the URLs that were given in place of paths."""
    if type(result) in (list, tuple):
        return type(result)(_with_urls(part, urls) for part in result)
    if isinstance(result, str):
        for path, url in urls.items():
            if result == path or result.startswith(f"{path}{os.sep}"):
                return url.rstrip("/") + result[len(path) :]
    return result


@contextlib.contextmanager
def _reading(name: str, url: str, **options: Any) -> Iterator[str]:
    yield local_path(name, url, **options)


@contextlib.contextmanager
def _reading_model(name: str, url: str, newest: bool = False) -> Iterator[str]:
    run, step = split_url(url)
    if step:
        yield f"{local_run(name, run, int(step))}@{step}"
    else:
        yield local_run(name, url, newest=newest)


@contextlib.contextmanager
def _reading_tokenizer(name: str, url: str) -> Iterator[str]:
    run, step = split_url(url)
    if step:
        yield f"{local_path(name, run, select=_of_tokenizer)}@{step}"
        return
    place = Place(name, url)
    above = place.parent
    if above is None or not place.is_file():
        yield local_path(name, url, select=_of_tokenizer)
        return
    folder, _, last = url.rpartition("/")
    names = [last, *_BESIDE] if last in _BESIDE or last.endswith(".json") else [last]
    found = [x for x in names if x == last or above.info(x) is not None]
    copies = {x: local_path(name, f"{folder}/{x}") for x in dict.fromkeys(found)}
    with tempfile.TemporaryDirectory() as together:
        for x, path in copies.items():
            shutil.copyfile(path, os.path.join(together, x))
        yield os.path.join(together, last)


def _of_tokenizer(names: Iterable[str]) -> list[str]:
    """Of a run, the files without its checkpoints; of others, all but weights."""
    weights = (".h5", ".safetensors", ".bin", ".ckpt", ".pt", ".msgpack", ".keras")
    names = [x for x in names if not x.endswith(weights)]
    return [x for x in names if not is_in(x, *BESIDE_MODEL)]


def _of_results(names: Iterable[str]) -> list[str]:
    return [name for name in names if name.endswith((".json", "SHA256SUMS"))]


@contextlib.contextmanager
def _writing(name: str, url: str, replace: bool = False) -> Iterator[str]:
    """A path for a new file or folder; with `replace`, of a file that may be there."""
    place = Place(name, url)
    is_file = replace and _is_file(place)
    if is_file:
        place.check_writable()
    else:
        check_new(place)
    with _work(url) as path:
        if is_file:
            place.get("", path)
        yield path
        with _kept_where_it_fails(path):
            if os.path.isdir(path):
                publish_folder(place, local_files(path))
            elif os.path.exists(path):
                place.put(path, "")


def _is_file(place):
    """Whether there is a file; raises where there is a folder."""
    if place.is_file():
        return True
    if place.is_folder():
        raise ValueError(
            f"`{place.name}` must be a file, or new. Received: "
            f"{place.name}={place.url!r}, a folder"
        )
    return False


@contextlib.contextmanager
def written_or_reused(name: str, url: str) -> Iterator[str]:
    """The path of a new folder to publish; or of the copy of the one that is there."""
    if local := local_of(url):
        yield local
        return
    place = Place(name, url)
    if read_manifest(place) is not None:
        yield fetch_folder(name, url, whole=True)
        return
    check_publishable(place)
    with _work(url) as path:
        yield path
        with _kept_where_it_fails(path):
            manifest = publish_folder(place, local_files(path))
        keep_copy(place, manifest, path)


@contextlib.contextmanager
def _adding(name: str, url: str, replace: bool = False) -> Iterator[str]:
    """A path for files in a folder that may have others, or with `replace` the same."""
    place = Place(name, url)
    place.check_writable()
    with _work(url) as path:
        yield path
        added = local_files(path)
        with _kept_where_it_fails(path):
            for file in added:
                if not replace and place.info(file) is not None:
                    raise ValueError(
                        f"`{name}` must not hold {file} yet. Received: {name}={url!r}"
                    )
            for file in added:
                place.put(added[file], file)


@contextlib.contextmanager
def _work(url: str) -> Iterator[str]:
    """A path to write to, with the URL's last name, in a folder for it alone."""
    parent, last = os.path.split(staged("written", url))
    os.makedirs(parent, exist_ok=True)
    with temporary_folder(parent) as folder:
        yield os.path.join(folder, last)


@contextlib.contextmanager
def _kept_where_it_fails(path: str) -> Iterator[None]:
    """Keeps what was written on this machine where it cannot be uploaded."""
    try:
        yield
    except (OSError, ValueError) as error:
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"{error}. {_set_aside(path)}") from error
    except BaseException:  # Such as Ctrl-C, and the SystemExit of a command's SIGTERM.
        say(_set_aside(path))
        raise


def _set_aside(path):
    """Moves what was not uploaded to where it stays; the sentence that says so."""
    kept = tempfile.mkdtemp(prefix="not-uploaded-", dir=staging_dir())
    kept = os.path.join(kept, os.path.basename(path))
    os.rename(path, kept)
    return f"What was to be uploaded is in {kept}"


READ = Access("read", _reading)
READ_WHOLE = Access("read, with its manifest", functools.partial(_reading, whole=True))
READ_MODEL = Access(
    "read, with its manifest: of a run, the model alone", _reading_model
)
# The preset of a run of pretraining is an encoder without heads.
READ_HEADS = Access(
    "read, with its manifest: of a run, the model and its newest checkpoint",
    functools.partial(_reading_model, newest=True),
)
READ_TOKENIZER = Access("read: the tokenizer alone", _reading_tokenizer)
READ_RESULTS = Access(
    "read, with its manifest: of a run, the JSON files and digests",
    functools.partial(_reading, whole=True, select=_of_results),
)
WRITE = Access("written", _writing, True)
REPLACE = Access("written or replaced", functools.partial(_writing, replace=True), True)
ADD = Access("written to", _adding, True)
ADD_OR_REPLACE = Access(
    "written or replaced in", functools.partial(_adding, replace=True), True
)
