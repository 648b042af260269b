"""The code of docs/TOKENS.md runs as it stands, and its commands at toy size."""

import re
import shlex

import pytest

import tfeff
from tests.checks.pages import REPOSITORY, printed_by, python_blocks

PAGE = "docs/TOKENS.md"
FILES = {
    "wikiann_en": ("train.tsv", "dev.tsv"),
    "conll2000": ("train.txt", "test.txt"),
}
SENTENCE = {
    "wikiann_en": "Ada\tB-PER\nsaw\tO\n",
    "conll2000": "it PRP B-NP\nis VBZ B-VP\n",
}


def commands():
    """The page's commands of tfeff, each in one line."""
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("tfeff ")]


@pytest.mark.slow
def test_code_of_the_page(tmp_path):
    blocks = python_blocks(PAGE)
    assert len(blocks) == 5
    printed = printed_by([*blocks, *blocks], tmp_path)  # As cells are run again.
    for expected in ("('O', 'B-BIRD', 'I-BIRD')", "{'f1': ", "'(', 'sing', ')', '.'"):
        assert expected in printed, printed


@pytest.mark.slow
def test_commands_of_the_page(tmp_path, monkeypatch, capsys):
    from tfeff.command.main import main

    monkeypatch.chdir(tmp_path)
    for folder, names in FILES.items():
        (tmp_path / "ner" / folder).mkdir(parents=True)
        for name in names:
            text = "\n".join([SENTENCE[folder]] * 12)
            (tmp_path / "ner" / folder / name).write_text(text)
    tokenizer = tfeff.data.train_tokenizer(["Ada saw it is"] * 9, 13)
    encoder = tfeff.encoders.build(
        "bert_tiny", vocabulary_size=13, hidden_dim=8, max_sequence_length=8
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer, "runs/pretrain/preset")
    *finetuning, report = commands()
    assert len(finetuning) >= 2
    for command in finetuning:
        command = re.sub(r" --epochs=\d+", "", command)  # `--steps` stands for them.
        flags = shlex.split(command.replace("$DATA", str(tmp_path)))[1:]
        assert main([*flags, "--steps=2", "--batch_sizes=2"]) == 0
        assert "most-frequent-tag baseline" in capsys.readouterr().out
    assert main(shlex.split(report)[1:]) == 0
    printed = capsys.readouterr().out
    assert "| encoder | CoNLL-2000 | WikiANN |" in printed
    assert "| most-frequent-tag baseline | " in printed


def test_files_that_the_page_names_exist():
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        assert (REPOSITORY / "docs" / target).exists(), target
