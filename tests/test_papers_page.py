"""docs/PAPERS.md: what it names exists, and what the papers number has a row."""

import ast
import functools
import importlib
import inspect
import re
import runpy
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

import tfeff
from tfeff.command import flags
from tfeff.command.main import COMMANDS, _load
from tfeff.encoders.stack import make_blocks
from tfeff.recipes.fields import fields_of

REPOSITORY = Path(__file__).resolve().parents[1]
PENDING = "TODO"
# What the documents number. The survey keeps the numbers of the papers it shows.
NUMBERED = {
    "Shatter": {
        "equation": [1, 2, 3, 4, 5, 6],
        "Table": [1, 2, 3, 4, 5, 6, 7],
        "Figure": [1, 2, 3, 4, 5],
    },
    "Huang et al.": {
        "equation": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17],
        "Table": [1, 2, 3, 4, 5],
        "Figure": [1, 2, 3, 4, 5],
    },
    "BlockBERT": {
        "equation": [1, 2, 3, 4],
        "Table": [1, 2, 3, 4, 5, 6, 7],
        "Figure": [1, 2, 3, 4, 5, 6],
    },
    "ConvBERT": {
        "equation": [1, 2, 3, 4, 5, 6, 7],
        "Table": [1, 2, 3, 4, 5, 6, 7, 8, 9],
        "Figure": [1, 2, 3, 4, 5, 6],
    },
    "The survey": {"Table": [2, 5, 6, 7], "Figure": [3], "Algorithm": [1]},
}
HEADER = ("place", "what it says", "in tfeff", "test or command")
HEADER += ("otherwise than printed",)
# What checks raise where a name is wrong.
WRONG = (AssertionError, AttributeError, ImportError, KeyError, OSError)
WRONG += (SyntaxError, TypeError, ValueError)


class Row(NamedTuple):
    document: str
    place: str
    says: str
    where: str
    proof: str
    otherwise: str


def text_of(page):
    return (REPOSITORY / "docs" / page).read_text(encoding="utf-8")


@functools.cache
def rows() -> list[Row]:
    found, document = [], None
    for line in text_of("PAPERS.md").splitlines():
        if line.startswith("## "):
            document = line[3:]
        if line.startswith("|"):
            cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
            assert len(cells) == len(HEADER), line
            if cells != HEADER and set(cells) != {"---"}:
                found.append(Row(document, *cells))
    return found


def names():
    """The code of both columns of names, each with its row."""
    for row in rows():
        if row.where != PENDING:
            for name in re.findall(r"`([^`]+)`", f"{row.where} {row.proof}"):
                yield name, row


def check_name(name):
    """Raises unless what the page names exists."""
    for pattern, check in {
        r"tfeff ": check_command,
        r"python ": check_program,
        r"tests/.*::": check_test,
        r"tfeff\.": check_object,
        r"\w+=": check_override,
        r".*/": check_file,
        r"": check_registered,
    }.items():
        if re.match(pattern, name):
            return check(name)


def check_object(name):
    module, *attributes = name.split(".")
    found = importlib.import_module(module)
    for attribute in attributes:
        module = f"{module}.{attribute}"
        if not hasattr(found, attribute):
            importlib.import_module(module)
        found = getattr(found, attribute)


def check_test(name):
    file, _, function = name.partition("::")
    assert function.rpartition("::")[2].startswith("test_")
    assert function in functions_of(file), f"there is no {function} in {file}"


@functools.cache
def functions_of(file):
    found = set()
    for node in ast.parse((REPOSITORY / file).read_text(encoding="utf-8")).body:
        is_class = isinstance(node, ast.ClassDef)
        for function in node.body if is_class else [node]:
            if isinstance(function, ast.FunctionDef):
                found.add(f"{node.name}::{function.name}" if is_class else node.name)
    return found


def check_file(name):
    assert (REPOSITORY / name).is_file(), f"there is no {name}"


def check_command(name):
    command, *arguments = shlex.split(name)[1:]
    settings = _load(COMMANDS[command].settings)
    given = {re.split("[ =]", a.removeprefix("--"))[0] for a in arguments}
    for field in fields_of(settings):  # The page leaves out folders and files.
        if field.required and not field.positional and field.name not in given:
            arguments.append(f"--{field.name}=x")
    values = flags.parse(settings, arguments)
    for setting, known in {
        "preset": tfeff.encoders.presets(),
        "objective": tfeff.objectives.names(),
    }.items():
        assert getattr(values, setting, None) in (None, *known)
    if "task" in given:
        tfeff.datasets.get(values.task)


def check_program(name):
    file, *arguments = shlex.split(name)[1:]
    source = (REPOSITORY / file).read_text(encoding="utf-8")
    defined = re.findall(r'flags\.DEFINE_\w+\(\s*"(\w+)"', source)
    known = {
        "presets": tfeff.encoders.presets(),
        "cases": benchmark("cpu_cases")["CASES"],
        "sweeps": benchmark("sweep_table")["SWEEPS"],
    }
    for argument in arguments:
        flag, _, value = argument.removeprefix("--").partition("=")
        assert flag in defined, f"{file} has no --{flag}"
        for part in value.split(","):
            assert part in known.get(flag, [part]), part


@functools.cache
def benchmark(name):
    return runpy.run_path(str(REPOSITORY / "benchmarks" / f"{name}.py"))


def check_override(name):
    call = ast.parse(f"dict({name})", mode="eval").body
    values = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    assert set(values) <= set(inspect.signature(tfeff.encoders.Encoder).parameters)
    of_blocks = inspect.signature(make_blocks).parameters
    sizes = dict(num_layers=3, num_heads=12, hidden_dim=24, intermediate_dim=24)
    make_blocks(**sizes, **{k: v for k, v in values.items() if k in of_blocks})


def check_registered(name):
    known = {*tfeff.encoders.presets(), *tfeff.encoders.attentions()}
    known |= {*tfeff.objectives.names(), *tfeff.datasets.names()}
    assert name in known, f"nothing is registered as {name}"


def test_every_numbered_item_has_a_row_and_no_other_number():
    found = {document: {} for document in NUMBERED}
    for row in rows():
        for what, number in re.findall(r"(equation|[A-Z]\w+) (\d+)", row.place):
            found[row.document].setdefault(what, set()).add(int(number))
    expected = {
        document: {what: set(numbers) for what, numbers in items.items()}
        for document, items in NUMBERED.items()
    }
    assert found == expected


def test_rows_are_whole():
    code = r"`[^`]+`"
    for row in rows():
        assert row.place and row.says, row
        if row.where != PENDING:
            for cell in (row.where, row.proof):
                assert re.fullmatch(f"–|{code}(, {code})*", cell), row
            assert row.otherwise, row


def test_no_row_is_pending():
    pending = [f"{r.document}: {r.place}" for r in rows() if r.where == PENDING]
    assert not pending, "\n".join(pending)


def test_what_the_page_names_exists():
    wrong = []
    for name, row in names():
        try:
            check_name(name)
        except WRONG as error:
            reason = str(error).partition("\n")[0]
            wrong.append(f"{row.document}, {row.place}: `{name}`: {reason}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "name",
    [
        "tfeff.layers.SelfAtention",
        "tests/test_papers_page.py::test_nothing",
        "tests/test_nothing.py::test_nothing",
        "benchmarks/nothing.py",
        "shater_base",
        "tfeff pretrian --steps=1",
        "tfeff pretrain --step=1",
        "tfeff pretrain --steps=many",
        "tfeff pretrain --preset=shater_base",
        "tfeff finetune --task=CoLa",
        "python benchmarks/tpu.py --preset=bert_base",
        "python benchmarks/tpu.py --presets=brt_base",
        "python benchmarks/cpu.py --cases=block",
        "python benchmarks/campaign.py --cell=stacking",
        "python benchmarks/sweeps.py --sweeps=shatter",
        "tfeff pretrain --config=shater_base",
        'attention={"name": "mixed", "convolutions": "none"}',
        'attention={"name": "blockwise", "head_blocks": "9:2"}',
        "sharing_groups=3",
    ],
)
def test_what_does_not_exist_is_found(name):
    with pytest.raises(WRONG):
        check_name(name)
