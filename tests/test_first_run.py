"""`make pretrain`: its flags, and what docs/PRETRAINING.md shows of it."""

import json
import re
import shlex
import subprocess
import sys

import pytest

from tests.checks.pages import REPOSITORY, text_of
from tests.subjects.recipes import ENVIRONMENT


def flags() -> list[str]:
    """The flags of `tfeff pretrain` in the Makefile."""
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert "\t$(venv)/tfeff pretrain $(PRETRAIN_FLAGS)\n" in makefile
    value = re.search(r"^PRETRAIN_FLAGS \?= ((?:.*\\\n)*.*)$", makefile, re.M)[1]
    return shlex.split(value.replace("\\\n", " "))


def shown() -> tuple[list[str], list[str]]:
    """The words of the page's command, and the lines of its output."""
    section = text_of("docs/PRETRAINING.md").partition("\n## A first run\n")[2]
    command, output = re.findall(r"^```(?:sh)?\n(.*?)^```$", section, re.M | re.S)[:2]
    return shlex.split(command.replace("\\\n", " ")), output.splitlines()


def without_numbers(line: str) -> str:
    return re.sub(r"\d[\d,.:]*", "0", line)


def test_the_page_has_the_command_of_the_makefile():
    assert shown()[0] == ["tfeff", "pretrain", *flags()]


@pytest.mark.slow
def test_the_loss_ends_a_nat_below_the_unigram_entropy(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "tfeff", "pretrain", *flags()],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert result.returncode == 0, result.stdout
    found = r"^unigram entropy of the validation text: ([\d.]+) nats a token$"
    entropy = float(re.search(found, result.stdout, re.M)[1])
    path = tmp_path / "runs" / "pretrain" / "metrics.json"
    assert json.loads(path.read_text())["loss"] <= entropy - 1
    # The page has other numbers in the same lines.
    printed = set(map(without_numbers, result.stdout.splitlines()))
    assert printed >= set(map(without_numbers, shown()[1]))
