"""Imports point downwards; operations, layers and stacks of blocks need Keras alone."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tfeff

PACKAGE = Path(tfeff.__file__).parent
# From the ground up: a package imports itself and those before it.
FLOORS = [
    *("compat", "utils", "storage", "ops", "layers", "formats", "encoders", "plots"),
    *(
        "data",
        "datasets",
        "training",
        "objectives",
        "tasks",
        "convert",
        "export",
        "recipes",
        "command",
    ),
]
LIGHT = {"keras", "numpy", "tfeff", *sys.stdlib_module_names}


def imported_modules(path: Path) -> set[str]:
    """Absolute names of all modules that the source file imports, at any depth."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not used here"
            names.add(node.module)
            if node.module.split(".")[0] in ("tfeff", "tests"):
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def sources(*names: str) -> list[Path]:
    """The files of a module or of a package of tfeff."""
    found = []
    for name in names:
        module, package = PACKAGE / f"{name}.py", PACKAGE / name
        found += [module] if module.is_file() else sorted(package.glob("**/*.py"))
    assert len(found) >= len(names)
    return found


@pytest.mark.parametrize(
    "path",
    sources(
        *("compat", "utils/checks", "ops", "layers", "encoders/__init__"),
        *("encoders/attentions", "encoders/presets", "encoders/stack"),
    ),
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_what_is_light_imports_keras_alone(path):
    imported = {name.split(".")[0] for name in imported_modules(path)}
    # What Keras' operations lack is in one file, for each of its backends.
    backends = {"jax", "tensorflow", "torch"} if path.stem == "backends" else set()
    assert imported <= LIGHT | backends


def test_every_package_has_a_floor():
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    modules = {path.name for path in PACKAGE.glob("*.py")}
    assert packages == set(FLOORS)
    assert modules == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_point_downwards(floor):
    """Imports inside functions count, too."""
    below = FLOORS[: FLOORS.index(floor) + 1]
    for path in sources(floor):
        for name in imported_modules(path):
            if name.startswith("tfeff."):
                assert name.split(".")[1] in below, f"{path} imports {name}"


def test_the_page_on_architecture_shows_the_floors_and_files_that_exist():
    text = (PACKAGE.parent / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    picture = text.split("## What imports what")[1].split("```")[1]
    assert re.findall(r"^([a-z]+)  ", picture, re.MULTILINE)[::-1] == FLOORS
    files = set(re.findall(r"`(tfeff/[\w/.]+)`", text))
    assert files
    for file in files:
        assert (PACKAGE.parent / file).exists(), file


def test_folders_import_each_other_in_no_circle():
    """Down to the wings of a package: a folder is what its own files import."""
    folders = {path.parent for path in PACKAGE.glob("**/*.py")} - {PACKAGE}
    graph = {
        folder: {
            below
            for path in folder.glob("*.py")
            for name in imported_modules(path)
            for below in [home(name)]
            if below in folders - {folder}
        }
        for folder in folders
    }
    graphlib.TopologicalSorter(graph).prepare()


def test_modules_import_each_other_in_no_circle():
    """Imports inside functions count, too; names that are loaded lazily do not."""
    paths = {path for path in PACKAGE.glob("**/*.py") if path.name != "__init__.py"}
    graph = {
        path: {
            module
            for name in imported_modules(path)
            for module in [PACKAGE.parent.joinpath(*name.split(".")).with_suffix(".py")]
            if module in paths
        }
        for path in paths
    }
    graphlib.TopologicalSorter(graph).prepare()


def test_no_test_imports_from_another():
    """Helpers that several share stand in `tests/subjects`."""
    for path in Path(__file__).parent.glob("**/*.py"):
        for name in imported_modules(path):
            first, *rest = name.split(".")
            borrowed = first == "tests" and any(x.startswith("test_") for x in rest)
            assert not borrowed, f"{path} imports {name}"


def home(module: str) -> Path:
    """The folder of a module of tfeff, or of the name that is imported of one."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    while not path.is_dir():
        path = path.parent
    return path


def loaded_after(statement: str) -> set[str]:
    code = f"import sys; {statement}; "
    code += "print(*(name for name, module in sys.modules.items() if module))"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_importing_tfeff_loads_no_library():
    assert not {"keras", "tensorflow", "numpy"} & loaded_after("import tfeff")


@pytest.mark.slow
def test_importing_encoders_makes_them_known_to_keras():
    assert "keras_hub" in loaded_after(
        "import keras, tfeff.encoders; "
        "assert keras.saving.get_registered_object('tfeff>Encoder')"
    )


@pytest.mark.quick("import tfeff; tfeff.layers")
@pytest.mark.parametrize(
    "statement",
    [
        "import tfeff; tfeff.layers",
        # Without KerasHub, as on a machine with another backend.
        "sys.modules['keras_hub'] = None; import tfeff; "
        "tfeff.encoders.presets(), tfeff.encoders.attentions()",
        "sys.modules['keras_hub'] = None; "
        "from tfeff.encoders.stack import make_blocks; make_blocks(3, 2, 8, 16)",
    ],
)
def test_what_is_light_loads_neither_kerashub_nor_tensorflow_text(statement):
    loaded = loaded_after(statement)
    assert "keras" in loaded
    assert not {"keras_hub", "tensorflow_text"} & loaded


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="tfeff attribute nonsense"):
        _ = tfeff.nonsense
    assert {"layers", "training", "__version__"} <= set(dir(tfeff))
    assert not {"lazy_loader", "utils"} & set(dir(tfeff))
    assert {"Encoder", "build", "presets"} <= set(dir(tfeff.encoders))
