"""The commands and the code of docs/SENTENCES.md run, on toy files, as they stand."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest

import tfeff
from tests.checks.pages import REPOSITORY, printed_by, python_blocks
from tests.subjects.recipes import ENVIRONMENT
from tests.subjects.sentences import DOCUMENTS, tokenizer

PAGE = "docs/SENTENCES.md"


def commands():
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [shlex.split(line) for line in joined.splitlines()]


def make_files(folder):
    """What the page reads: a tiny encoder, texts, pairs, triplets, rated pairs."""
    encoder = tfeff.encoders.build(
        "bert_tiny",
        vocabulary_size=60,
        num_layers=1,
        hidden_dim=16,
        intermediate_dim=16,
        max_sequence_length=64,
        dropout=0.0,
    )
    tfeff.tasks.save_pretrained(encoder, tokenizer(), folder / "runs/pretrain/preset")
    (folder / "glue/STS-B").mkdir(parents=True)
    pairs = list(zip(DOCUMENTS, DOCUMENTS[1:], DOCUMENTS[2:]))
    rated = [f"{a}\t{b}\t{i % 5}" for i, (a, b, _) in enumerate(pairs)]
    for split in ("train", "dev"):
        lines = ["sentence1\tsentence2\tscore", *rated]
        (folder / f"glue/STS-B/{split}.tsv").write_text("\n".join(lines))
    (folder / "texts.txt").write_text("\n".join(DOCUMENTS))
    lines = ["anchor\tpositive", *(f"{a}\t{b}" for a, b, _ in pairs)]
    (folder / "pairs.tsv").write_text("\n".join(lines))
    names = ("anchor", "positive", "negative")
    lines = [json.dumps(dict(zip(names, row))) for row in pairs]
    (folder / "triplets.jsonl").write_text("\n".join(lines))


def run(command, folder):
    program, *arguments = command
    program = {"python": [], "tfeff": ["-m", "tfeff"]}[program]
    result = subprocess.run(
        [sys.executable, *program, *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, (command, result.stderr)
    return result.stdout


@pytest.mark.slow
def test_commands_and_code_of_the_page(tmp_path):
    make_files(tmp_path)
    (tmp_path / "examples").mkdir()
    shutil.copy(REPOSITORY / "examples/search.py", tmp_path / "examples")
    printed = {tuple(command): run(command, tmp_path) for command in commands()}
    for command, text in printed.items():
        if command[0] == "tfeff":
            assert "before training: dev_pearson" in text or "--split=train" in command
            assert "text in, sentence_embeddings out: " in text
        else:
            question, *answers = text.strip().splitlines()
            assert question == command[-1] and len(answers) == 3
    text = printed_by(python_blocks(PAGE), tmp_path)
    assert text.split("\n")[:-1] == ["(3, 3)", "3", "['accuracy', 'loss']", "3"], text


def test_commands_of_the_page_have_flags_that_there_are():
    from tfeff.command import flags
    from tfeff.recipes import EmbedSettings

    parsed = [flags.parse(EmbedSettings, c[2:]) for c in commands() if c[0] == "tfeff"]
    assert {s.examples for s in parsed} == {
        *(None, "texts.txt", "pairs.tsv", "triplets.jsonl")
    }
