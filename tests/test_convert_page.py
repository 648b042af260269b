"""The code of docs/CONVERT.md runs as it stands, in its order, in an empty folder."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
CONVERT = REPOSITORY / "tests" / "convert"
# The folders that the page reads, each with the files of these golden checkpoints.
PUBLISHED = {
    "published/bert": ("head_goldens/bert_pretraining", "goldens/bert/vocab.txt"),
    "published/electra-discriminator": (
        "head_goldens/electra_discriminator",
        "goldens/bert/vocab.txt",
    ),
    "published/electra-generator": (
        "head_goldens/electra_generator",
        "goldens/bert/vocab.txt",
    ),
    "published/weather": ("head_goldens/bert_classifier", "goldens/bert/vocab.txt"),
}
PRINTED = ["True", "(1, 2)", "('cold', 'warm', 'hot')", "TokenClassifier ('O', 'B-PER'"]


def publish(folder):
    """Makes the folders of published checkpoints."""
    for name, (golden, *files) in PUBLISHED.items():
        shutil.copytree(CONVERT / golden, folder / name)
        for file in files:
            shutil.copy(CONVERT / file, folder / name)


def test_code_of_the_page(tmp_path):
    publish(tmp_path)
    text = (REPOSITORY / "docs" / "CONVERT.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) >= 2
    result = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    for expected in PRINTED:
        assert expected in result.stdout, result.stdout


def test_commands_of_the_page_print_what_it_says(tmp_path, capsys, monkeypatch):
    from tfeff.command.main import main

    publish(tmp_path)
    monkeypatch.chdir(tmp_path)
    text = (REPOSITORY / "docs" / "CONVERT.md").read_text(encoding="utf-8")
    commands = re.findall(
        r"^tfeff (convert published/.*?)\s+# (.*)$", text, re.MULTILINE
    )
    assert len(commands) >= 2
    for command, said in commands:
        assert main(command.split()) == 0
        assert f"{said}\n" in capsys.readouterr().out


def test_files_that_the_page_names_exist():
    text = (REPOSITORY / "docs" / "CONVERT.md").read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert (REPOSITORY / "docs" / target).exists(), target
