"""A wheel and an sdist install and run where there is no checkout."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import lazy_loader
import pytest

import tfeff
from tests.checks.pages import REPOSITORY

BUILD = """
import sys
from setuptools import build_meta
print(getattr(build_meta, sys.argv[1])(sys.argv[2]))
"""
# What the build reads beside the package: files that other tools left are not there.
FILES = ("setup.cfg", "pyproject.toml", "MANIFEST.in", "docs/PYPI.md", "LICENSE")
IN_SDIST = ("CHANGELOG.md", "CITATION.cff", "SECURITY.md")
LIBRARIES = str(Path(lazy_loader.__file__).parents[1])


def build(what: str, source: Path, target: Path) -> Path:
    """The file that setuptools makes of a folder, as pip and `build` have it made."""
    target.mkdir()
    result = subprocess.run(
        [sys.executable, "-c", BUILD, what, str(target)],
        cwd=source,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return target / result.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sdist")
    clone = folder / "clone"
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(REPOSITORY / "tfeff", clone / "tfeff", ignore=skipped)
    shutil.copytree(REPOSITORY / "tests" / "checks", clone / "tests", ignore=skipped)
    (clone / "docs").mkdir()
    for file in (*FILES, *IN_SDIST):
        shutil.copy(REPOSITORY / file, clone / file)
    return build("build_sdist", clone, folder / "dist")


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel that the sdist makes."""
    folder = tmp_path_factory.mktemp("wheel")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    return build("build_wheel", next(folder.iterdir()), folder / "dist")


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """A virtual environment with the wheel, and this one's libraries behind it."""
    folder = tmp_path_factory.mktemp("environment")
    create = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(create, check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "libraries.pth").write_text(LIBRARIES + "\n")
    python = str(folder / "bin" / "python")
    install = ["--python", python, "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *install],
        check=True,
        capture_output=True,
    )
    return folder


def package_files() -> set[str]:
    """The files of the package, as in the checkout."""
    return {
        str(path.relative_to(REPOSITORY))
        for path in (REPOSITORY / "tfeff").glob("**/*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
def test_the_wheel_has_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = f"tfeff-{tfeff.__version__}.dist-info/"
        about = archive.read(metadata + "METADATA").decode()
    assert wheel.name == f"tfeff-{tfeff.__version__}-py3-none-any.whl"
    others = {name for name in names if name.startswith(metadata)}
    assert names - others == package_files()
    assert {"tfeff/py.typed", "tfeff/data/__init__.pyi"} <= names
    assert any(name.endswith("/LICENSE") for name in others)
    assert metadata + "entry_points.txt" in others
    assert "Project-URL: Changelog, " in about
    assert "\npip install --use-pep517 tfeff " in about


@pytest.mark.slow
def test_the_sdist_has_what_a_build_needs(sdist):
    root = f"tfeff-{tfeff.__version__}/"
    with tarfile.open(sdist) as archive:
        names = {m.name.removeprefix(root) for m in archive if m.isfile()}
    assert package_files() | {*FILES, *IN_SDIST} <= names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


@pytest.mark.slow
def test_the_installed_package_runs_in_an_empty_folder(environment, tmp_path):
    def run(*command):
        result = subprocess.run(
            [environment / "bin" / command[0], *command[1:]],
            cwd=tmp_path,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return result.stdout

    file = run("python", "-c", "import tfeff; print(tfeff.__file__)")
    assert Path(file.strip()).is_relative_to(environment)
    assert run("tfeff", "--version") == f"{tfeff.__version__}\n"
    assert "pretrain" in run("tfeff", "--help")
    assert "`shatter_base`" in run("tfeff", "presets")
    (tmp_path / "text.txt").write_text(
        "\n\n".join(f"{i} green bottles hanging on the wall" for i in range(200))
    )
    run(
        *("tfeff", "pretrain", "--run_dir=run", "--corpus=text.txt"),
        *("--vocabulary_size=40", "--validation_fraction=0.2", "--sequence_length=16"),
        *("--batch_size=4", "--steps=2", "--warmup_steps=1", "--learning_rate=1e-3"),
    )
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert 0 < metrics["loss"] < 5
    assert (tmp_path / "run" / "preset" / "config.json").is_file()
    load = (
        "import tfeff; print(tfeff.tasks.load_pretrained('run/preset')[0].hidden_dim)"
    )
    assert run("python", "-c", load).split()[-1] == "128"
