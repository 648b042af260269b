"""The pages of the documentation: their code, commands, links and headings."""

import os
import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = [
    *sorted(path.name for path in REPOSITORY.glob("*.md")),
    *sorted(f"docs/{path.name}" for path in REPOSITORY.glob("docs/*.md")),
    "docs/tutorials/README.md",
]
NOTEBOOKS = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in REPOSITORY.glob("docs/tutorials/*.ipynb")
)


def text_of(page: str) -> str:
    """The page's text."""
    return (REPOSITORY / page).read_text(encoding="utf-8")


def code_blocks(page: str, language: str) -> list[str]:
    """The page's blocks of code in a language, in their order."""
    return re.findall(rf"```{language}\n(.*?)```", text_of(page), re.DOTALL)


def python_blocks(page: str) -> list[str]:
    """The page's blocks of Python, in their order."""
    return code_blocks(page, "python")


def prose_of(page: str) -> str:
    """The page's text without its blocks of code."""
    return re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)


def links(page: str) -> list[str]:
    """The targets of the page's links to files of the repository."""
    prose = re.sub(r"`[^`\n]*`", "", prose_of(page))
    return [x for x in re.findall(r"\]\(([^)\s]+)\)", prose) if "://" not in x]


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in headings
    }


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
