"""The command `tfeff COMMAND --flag=value ...`."""

import importlib
import shutil
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import tfeff
from tfeff.command import flags
from tfeff.recipes import next_commands
from tfeff.utils.near_misses import near_miss


class Command(NamedTuple):
    """A command: its settings, and the function that they are given to.

    Attributes:
        settings: the settings class, as `module:name`; the module imports no library.
            The first line of its docstring says what the command does.
        function: the function, as `module:name`.
    """

    settings: str
    function: str


COMMANDS = {
    "answer": Command(
        "tfeff.recipes.answer_settings:AnswerSettings",
        "tfeff.recipes.answering:answer",
    ),
    "cache": Command(
        "tfeff.recipes.cache_settings:CacheSettings",
        "tfeff.recipes.caching:cache",
    ),
    "configs": Command(
        "tfeff.command.configs:ConfigsSettings",
        "tfeff.command.configs:print_configs",
    ),
    "convert": Command(
        "tfeff.command.convert:ConvertSettings",
        "tfeff.command.convert:convert",
    ),
    "embed": Command(
        "tfeff.recipes.embed_settings:EmbedSettings",
        "tfeff.recipes.embedding:embed",
    ),
    "evaluate": Command(
        "tfeff.recipes.evaluate_settings:EvaluateSettings",
        "tfeff.recipes.evaluating:evaluate",
    ),
    "finetune": Command(
        "tfeff.recipes.finetune_settings:FinetuneSettings",
        "tfeff.recipes.finetuning:finetune",
    ),
    "distill": Command(
        "tfeff.recipes.distill_settings:DistillSettings",
        "tfeff.recipes.distilling:distill",
    ),
    "pretrain": Command(
        "tfeff.recipes.pretrain_settings:PretrainSettings",
        "tfeff.recipes.pretraining:pretrain",
    ),
    "stack": Command(
        "tfeff.recipes.stack_settings:StackSettings",
        "tfeff.recipes.stacking:stack",
    ),
    "report": Command(
        "tfeff.recipes.report_settings:ReportSettings",
        "tfeff.recipes.reporting:report",
    ),
    "presets": Command(
        "tfeff.command.presets:PresetsSettings",
        "tfeff.command.presets:print_presets",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: the command line after `tfeff`; `None` means the process's own.

    Returns:
        The exit status: 0, 1 after an error of input or of a run, which takes one line
        on standard error, 2 for a command line that cannot be read.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        arguments = _import_modules(arguments)
        return _run(*(arguments or ["--help"]))
    except BrokenPipeError:  # The reader of the output has ended.
        raise
    except (ArithmeticError, ImportError, OSError, TypeError, ValueError) as error:
        if not _is_ours(error):
            raise
        return _error(error, 1)


def _import_modules(arguments):
    """The arguments without `--import=MODULE`, when these modules are imported."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    rest, imported, words = [], [], iter(arguments[:end])
    for word in words:
        name, is_given, module = word.partition("=")
        if name != "--import":
            rest.append(word)
            continue
        module = module if is_given else next(words, "")
        imported.append(f"--import={module}")
        try:
            importlib.import_module(module)
        except (ImportError, TypeError, ValueError) as error:
            raise ValueError(
                "`--import` must name a module that can be imported; PYTHONPATH is the "
                f"folder of one of your own. Received: --import={module}: {error}"
            ) from error
    next_commands.repeat(imported)
    return rest + arguments[end:]


def _run(name, *rest):
    if name == "help" and rest:
        name, rest = rest[0], ("--help",)
    if name in ("--help", "-h", "help"):
        print(_overview())
        return 0
    if name in ("--version", "version"):
        print(tfeff.__version__)
        return 0
    if name not in COMMANDS:
        return _error(f"there is no command {name!r}.{near_miss(name, COMMANDS)}", 2)
    command = COMMANDS[name]
    settings = _load(command.settings)
    if {"--help", "-h"} & set(rest):
        columns = shutil.get_terminal_size((flags.WIDTH, 24)).columns
        width = max(40, min(flags.WIDTH, columns))
        print(flags.usage(name, settings, width))
        return 0
    try:
        values = flags.parse(settings, rest)
    except (TypeError, ValueError) as error:
        return _error(f"{error} See: tfeff {name} --help", 2)
    _load(command.function)(values)
    return 0


def _overview():
    width = max(map(len, COMMANDS))
    lines = []
    for name, command in sorted(COMMANDS.items()):
        first, *_ = _load(command.settings).__doc__.splitlines()
        lines.append(f"  {name:{width}}  {first}")
    return "\n".join(
        [
            "usage: tfeff COMMAND [--flag=value ...]",
            "",
            "Efficient Transformer encoders: from text to a served model.",
            "",
            *lines,
            "",
            "tfeff COMMAND --help lists a command's flags. Each takes --import=MODULE,",
            "once for each module of your own that registers attentions, objectives,",
            "data sets or classes.",
        ]
    )


def _load(name):
    module, name = name.split(":")
    return getattr(importlib.import_module(module), name)


def _is_ours(error):
    """Whether an error was raised by this library, or is the system's about a file."""
    if isinstance(error, OSError) and error.filename is not None:
        return True
    *_, frame = traceback.walk_tb(error.__traceback__)
    file = Path(frame[0].f_code.co_filename)
    return Path(tfeff.__file__).parent in file.parents


def _error(message, status):
    print(f"error: {message}", file=sys.stderr)
    return status
