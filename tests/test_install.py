"""An editable install is found from every folder, that of the clone included."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import lazy_loader

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = """
import sys
from setuptools import build_meta
build_meta.build_editable(sys.argv[1])
"""
IMPORT = """
import site, sys
site.addsitedir(sys.argv[1])
sys.path.append(sys.argv[2])
import tfeff
print(tfeff.__file__, tfeff.__version__)
"""
# What tfeff imports at once is found here; the tfeff of this environment is not.
LIBRARIES = str(Path(lazy_loader.__file__).parents[1])


def test_an_editable_install_is_found_beside_the_clone(tmp_path):
    clone, site = tmp_path / "tfeff", tmp_path / "site"
    (clone / "tfeff").mkdir(parents=True)
    (clone / "docs").mkdir()
    for file in ("setup.cfg", "pyproject.toml", "docs/PYPI.md", "LICENSE"):
        shutil.copy(REPOSITORY / file, clone / file)
    for file in (REPOSITORY / "tfeff").glob("__init__.py*"):
        shutil.copy(file, clone / "tfeff")
    shutil.copytree(REPOSITORY / "tfeff" / "utils", clone / "tfeff" / "utils")
    subprocess.run(
        [sys.executable, "-c", BUILD, str(tmp_path)],
        cwd=clone,
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    # In the folder that holds the clone, `tfeff/` without an `__init__.py` comes first.
    for folder in (tmp_path, clone, site):
        result = subprocess.run(
            [sys.executable, "-S", "-c", IMPORT, str(site), LIBRARIES],
            cwd=folder,
            env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        file, version = result.stdout.split()
        assert Path(file) == clone / "tfeff" / "__init__.py"
        assert version in wheel.name
