import os
import subprocess
import sys

import pytest

from tests.benchmarks.scripts import FOLDER

SCRIPT = """
import os, sys
import environment
environment.ensure()
print(sys.argv[1:], environment.description())
"""


@pytest.mark.parametrize("given", [{}, {"MALLOC_ARENA_MAX": "2"}])
def test_the_program_starts_anew_with_what_is_missing(given, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    outside = {k: v for k, v in os.environ.items() if "MALLOC" not in k}
    result = subprocess.run(
        [sys.executable, "-u", str(script), "a b", "--c"],
        env={**outside, "PYTHONPATH": str(FOLDER), **given},
        capture_output=True,
        text=True,
        check=True,
    )
    arenas = given.get("MALLOC_ARENA_MAX", "1")
    assert result.stdout.startswith("['a b', '--c'] TF_ENABLE_ONEDNN_OPTS=1 ")
    assert f" MALLOC_ARENA_MAX={arenas} " in result.stdout
