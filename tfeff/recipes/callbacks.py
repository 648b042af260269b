"""Keras callbacks of users, by name or as objects, in every training of a recipe."""

import ast
import contextlib
import functools
import importlib
import inspect
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence

import keras

from tfeff.training.other_weights import check_class_leaves_weights
from tfeff.utils.files import write_text
from tfeff.utils.near_misses import near_miss
from tfeff.utils.reading import is_there

_EXAMPLE = "package.Class or package.Class(name=value)"
_WANDB_ID = "wandb_id.txt"
_SET_RATES = (
    keras.callbacks.LearningRateScheduler,
    keras.callbacks.ReduceLROnPlateau,
)


class Callbacks:
    """The callbacks that settings name, and those that a caller gives beside them.

    Args:
        settings: they have `callbacks`, the names.
        given: callbacks, or functions and classes that make one when they are called
            without arguments: a new one for each training.

    Raises:
        ValueError: if a name is not of a class that can be imported and called with
            its arguments; if a callback would set the learning rate, or put other
            weights in place of those that are trained.
        TypeError: if something is no Keras callback.
    """

    def __init__(
        self,
        settings,
        given: Sequence[keras.callbacks.Callback | Callable] = (),
    ):
        if isinstance(given, keras.callbacks.Callback) or not isinstance(
            given, Sequence
        ):
            raise TypeError(
                f"`callbacks` must be a list. Received: callbacks={given!r}"
            )
        for one in given:
            _check_callback(one)
        self._given = list(given)
        self._made = [find_callback(text) for text in settings.callbacks]

    @contextlib.contextmanager
    def of_training(
        self,
        folder: str,
        config: Mapping,
        is_chief: bool = True,
        id_file: str | None = None,
        name: str | None = None,
    ) -> Iterator[list[keras.callbacks.Callback]]:
        """The callbacks of one training.

        Callbacks of Weights & Biases log to the run of the folder, unless this process
        has begun a run already. Of several workers the chief alone has them.

        Args:
            folder: the folder of the run, or of the cell of a grid.
            config: the settings, for Weights & Biases.
            is_chief: whether this process writes the folder.
            id_file: where the identifier for Weights & Biases is kept; `None` means
                in the folder.
            name: the name for Weights & Biases; `None` means the folder's.
        """
        id_file = id_file or os.path.join(folder, _WANDB_ID)
        of_wandb = [
            make.func.__module__.partition(".")[0] == "wandb" for make in self._made
        ]
        uses_wandb = any(of_wandb) and is_chief
        of_folder = _wandb_run(name or folder, config, id_file) if uses_wandb else None
        with of_folder or contextlib.nullcontext():
            made = [
                make() for make, of in zip(self._made, of_wandb) if is_chief or not of
            ]
            given = [
                one if isinstance(one, keras.callbacks.Callback) else one()
                for one in self._given
            ]
            for one in given:
                _check_callback(one, is_made=True)
            yield [*made, *given]


def find_callback(text: str) -> functools.partial:
    """A function that makes the callback of a text: a class and its arguments.

    The arguments are Python literals: numbers, strings, lists, `None` and the like.
    Nothing else of the text is evaluated.

    Args:
        text: `"package.Class"` or `"package.Class(name=value)"`.

    Raises:
        ValueError: if the text is another one; if there is no such package or class, or
            it has no such arguments; if the class sets the learning rate or weights.
        TypeError: if it is no class of Keras callbacks.
    """
    name, args, kwargs = _parse(text)
    module, _, attribute = name.rpartition(".")
    try:
        found = importlib.import_module(module)
    except ImportError as error:
        package = (getattr(error, "name", None) or module).partition(".")[0]
        own = module.partition(".")[0] == package
        raise ValueError(
            f"`callbacks` must name a class that can be imported. Received: {text!r}: "
            f"{error}. "
            + (
                "Set PYTHONPATH to the folder of a module of your own, or pip install "
                f"{package}"
                if own
                else f"{module} needs {package}"
            )
        ) from error
    cls = getattr(found, attribute, None)
    if cls is None:
        known = [name for name, value in vars(found).items() if _is_callback(value)]
        raise ValueError(
            f"`callbacks` must name a class of {module}. Received: {text!r}."
            f"{near_miss(attribute, known)}"
        )
    if not _is_callback(cls):
        raise TypeError(
            "`callbacks` must name classes of Keras callbacks "
            f"(keras.callbacks.Callback). Received: {text!r}, which is {cls!r}"
        )
    _check_sets_no_rate(cls, text)
    try:
        bound = inspect.signature(cls).bind(*args, **kwargs)
    except TypeError as error:
        raise ValueError(
            f"`callbacks` must have the arguments of {name}"
            f"{inspect.signature(cls)}. Received: {text!r}: {error}"
        ) from error
    check_class_leaves_weights(cls, bound.arguments, text)
    return functools.partial(cls, *args, **kwargs)


def _parse(text):
    """The dotted name, and the arguments by position and by name."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
        args, kwargs = [], {}
        if isinstance(node, ast.Call):
            args = [ast.literal_eval(value) for value in node.args]
            kwargs = {
                str(keyword.arg): ast.literal_eval(keyword.value)
                for keyword in node.keywords
            }
            node = node.func
        name = ast.unparse(node)
        parts = name.split(".")
        if len(parts) < 2 or not all(part.isidentifier() for part in parts):
            raise ValueError("it has no package and class")
    except (SyntaxError, TypeError, ValueError) as error:
        raise ValueError(
            f"`callbacks` must be {_EXAMPLE}, with literal values: numbers, strings in "
            f"quotes, lists, None. Received: {text!r}: {error}"
        ) from error
    return name, args, kwargs


def _check_callback(one, is_made=False):
    is_callback = isinstance(one, keras.callbacks.Callback)
    if not is_callback and (is_made or not callable(one)):
        raise TypeError(
            "`callbacks` must be Keras callbacks, or functions that make one. "
            f"Received: {one!r}"
        )
    cls = one if isinstance(one, type) else type(one)
    _check_sets_no_rate(cls, one)
    check_class_leaves_weights(cls, vars(one) if is_callback else {}, one)


def _is_callback(value):
    return isinstance(value, type) and issubclass(value, keras.callbacks.Callback)


def _check_sets_no_rate(cls, given):
    if issubclass(cls, _SET_RATES):
        raise ValueError(
            "`callbacks` must not set the learning rate: the recipe has a schedule for "
            "it, and Keras would end the run when a callback replaces it. Received: "
            f"{given!r}"
        )


@contextlib.contextmanager
def _wandb_run(name, config, id_file):
    """A run of Weights & Biases, which all starts of a training share."""
    import wandb

    if wandb.run is not None:
        yield
        return
    with wandb.init(
        name=os.environ.get("WANDB_NAME", name),
        config=dict(config),
        id=os.environ.get("WANDB_RUN_ID") or _wandb_id(id_file),
        # Without a connection there is nothing to go on with.
        resume=None if os.environ.get("WANDB_MODE") == "offline" else "allow",
    ):
        yield


def _wandb_id(path):
    """The identifier that the file keeps; a new one at first."""
    if not is_there(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_text(path, secrets.token_hex(4))
    with open(path, encoding="utf-8") as file:
        return file.read().strip()
