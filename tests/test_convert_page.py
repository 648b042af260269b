"""The code of docs/CONVERT.md runs as it stands, in its order, in an empty folder."""

import re
import shlex
import shutil

import pytest

import tfeff
from tests.checks.pages import REPOSITORY, printed_by, python_blocks

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


@pytest.mark.slow
def test_code_of_the_page(tmp_path):
    publish(tmp_path)
    blocks = python_blocks("docs/CONVERT.md")
    assert len(blocks) >= 2
    printed = printed_by([*blocks, *blocks], tmp_path)  # As cells are run again.
    for expected in PRINTED:
        assert expected in printed, printed


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


@pytest.mark.slow
def test_pretraining_with_a_published_tokenizer(tmp_path, monkeypatch):
    from tests.subjects.sentences import DOCUMENTS
    from tfeff.command.main import main

    publish(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "text.txt").write_text("\n\n".join(DOCUMENTS * 4))
    text = (REPOSITORY / "docs" / "CONVERT.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^tfeff (pretrain .*?)\n```", text, re.MULTILINE | re.S)
    small = (
        "--vocabulary_size=400 --sequence_length=12 --batch_size=2 --steps=2 "
        "--preset=bert_tiny --override=hidden_dim=8 --override=num_heads=2 "
        "--override=intermediate_dim=8"
    )
    command = shlex.split(command.replace("\\\n", ""))
    assert main([*command, *small.split()]) == 0
    expected = tfeff.convert.load_tokenizer("published/bert")
    for source in ("runs/mine", "runs/mine/preset"):
        found = tfeff.convert.load_tokenizer(source)
        assert found.get_vocabulary() == expected.get_vocabulary()
    again = [*command, *small.split(), "--run_dir=runs/other"]
    assert main([*again, "--vocabulary_size=40"]) == 1
    assert main([*again, "--tokenizer=published/brt"]) == 1
