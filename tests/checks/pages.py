"""The Python code of a page of the documentation."""

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def python_blocks(page: str) -> list[str]:
    """The page's blocks of Python, in their order."""
    text = (REPOSITORY / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def printed_by(blocks: list[str], folder) -> str:
    """What the blocks print, run one after another in a process in the folder."""
    result = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout
