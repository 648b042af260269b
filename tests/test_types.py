"""Type checkers see the public names, and what functions take and return."""

import ast
import importlib
import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tfeff
from tests.checks.pages import REPOSITORY

PACKAGES = [*sorted(set(tfeff.__all__) - {"__version__"}), "ops.kernels"]
# What a user writes, and what is wrong with it as mypy says.
PROGRAM = """
import tfeff
import tfeff.layers
from tfeff.recipes import PretrainSettings, pretrain

documents = tfeff.data.docstrings(["keras"], max_characters=400_000)
train_text, valid_text = tfeff.data.split(documents, validation_fraction=0.1)
tokenizer = tfeff.data.train_tokenizer(train_text, vocabulary_size=1000)
train = tfeff.data.build_cache(train_text, tokenizer, "cache", sequence_length=64)
encoder = tfeff.encoders.build("shatter_tiny", vocabulary_size=1000)
model = tfeff.objectives.MaskedLM(encoder)
model.compile(optimizer=tfeff.training.adamw(1e-3, warmup_steps=5, total_steps=20))
model.fit(train.batches(tfeff.data.MaskedTokens(mask_rate=0.15), batch_size=16))
layer = tfeff.layers.SelfAttention(num_heads=2, dropout=0.1, name="attention")
sst2: tfeff.datasets.Dataset = tfeff.datasets.get("SST-2")
sst2.read("dev", "glue", skip_malformed=True)
pretrain(PretrainSettings.named("shatter_base", run_dir="run"))
steps: int = PretrainSettings(run_dir="run").steps
reveal_type(encoder.get_config())  # dict[str, Any]
reveal_type(tfeff.tasks.load_task("preset"))  # tuple[tfeff.objectives.objective.Objec
reveal_type(tfeff.ops.t5_boundaries(32, 128))  # list[int]
tfeff.encoders.build(3)  # incompatible type "int"
tfeff.data.build_caches  # Module has no attribute "build_caches"
PretrainSettings(rundir="run")  # did you mean "run_dir"?
tfeff.layers.SelfAttention("four")  # incompatible type "str"
tfeff.tasks.Classifier(encoder, 2, label_names=3)  # incompatible type "int"
"""


@pytest.mark.parametrize("package", PACKAGES)
def test_public_functions_and_methods_are_annotated(package):
    module = importlib.import_module(f"tfeff.{package}")
    bare = [
        f"{name}: {argument}"
        for symbol in module.__all__
        for name, function in functions_of(symbol, getattr(module, symbol))
        for argument in unannotated(function)
    ]
    assert not bare


def functions_of(name, symbol):
    """The function, or the public methods that a class defines itself."""
    if not inspect.isclass(symbol):
        return [(name, symbol)] if callable(symbol) else []
    own = {k: inspect.unwrap(_function(v)) for k, v in vars(symbol).items()}
    return [
        (f"{name}.{method}", function)
        for method, function in own.items()
        if inspect.isfunction(function)
        # `dataclasses` and `Protocol` write other constructors, in no file.
        and function.__code__.co_filename == inspect.getfile(symbol)
        and (method == "__init__" or not method.startswith("_"))
    ]


def _function(member):
    if isinstance(member, property):
        return member.fget
    return getattr(member, "__func__", member)


def unannotated(function):
    """The names of the arguments without a type, and `return`."""
    signature = inspect.signature(function)
    for argument in signature.parameters.values():
        if argument.annotation is argument.empty and argument.name not in (
            "self",
            "cls",
        ):
            yield argument.name
    if (
        signature.return_annotation is signature.empty
        and function.__name__ != "__init__"
    ):
        yield "return"


def test_stubs_name_what_is_imported_at_first_use():
    """They are all that there is to read of a lazy package: each name is there."""
    for stub in REPOSITORY.glob("tfeff/**/*.pyi"):
        module = importlib.import_module(
            ".".join(stub.parent.relative_to(REPOSITORY).parts)
        )
        nodes = ast.parse(stub.read_text(encoding="utf-8")).body
        imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        names = [alias.name for node in imports for alias in node.names]
        assert sorted(names) == sorted(set(module.__all__) - {"__version__"})
        for alias in (alias for node in imports for alias in node.names):
            assert alias.asname == alias.name, "type checkers take it for private"
            assert getattr(module, alias.name) is not None


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed"
)
def test_mypy_checks_a_program_of_a_user(tmp_path):
    """After `make types` this takes seconds: it has filled the cache."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", f"--config-file={REPOSITORY / 'setup.cfg'}"]
        + [f"--cache-dir={REPOSITORY / '.mypy_cache'}", str(program)],
        cwd=tmp_path,
        env={"MYPYPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    told = {}
    for line in result.stdout.splitlines():
        if found := re.match(r".*program\.py:(\d+): (error|note): (.*)", line):
            told.setdefault(int(found[1]), []).append(found[3])
    expected = {
        number: line.partition("  # ")[2]
        for number, line in enumerate(PROGRAM.splitlines(), start=1)
        if "  # " in line
    }
    assert set(told) == set(expected), result.stdout + result.stderr
    for number, part in expected.items():
        assert part in " ".join(told[number]), told[number]


def test_the_package_says_that_it_has_types():
    assert (Path(tfeff.__file__).parent / "py.typed").read_text() == ""
