"""The commands and the code of docs/SENTENCES.md run, on toy files, as they stand."""

import json
import re
import runpy
import shlex

import pytest

import tfeff
from tests.checks.pages import REPOSITORY, printed_by, python_blocks
from tests.convert.conversions import copied
from tests.convert.sentence_models import write_sentence_model
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff.command import flags
from tfeff.command.main import main
from tfeff.recipes import EmbedSettings, FinetuneSettings

PAGE = "docs/SENTENCES.md"


def commands():
    text = (REPOSITORY / PAGE).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [shlex.split(line) for line in joined.splitlines() if line]


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
    published = copied("bert", folder / "published").rename(
        folder / "published/sentences"
    )
    write_sentence_model(published, "Normalize", pooling="cls", length=9)
    names = ("anchor", "positive", "negative")
    lines = [json.dumps(dict(zip(names, row))) for row in pairs]
    (folder / "triplets.jsonl").write_text("\n".join(lines))


def run(program, *arguments):
    """Runs a command of the page in this process, in the current folder."""
    if program == "tfeff":
        assert main(arguments) == 0
        return
    script, *arguments = arguments
    runpy.run_path(str(REPOSITORY / script))["main"](*arguments)


@pytest.mark.slow
def test_commands_and_code_of_the_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    make_files(tmp_path)
    for command in commands():
        run(*command)
        printed = capsys.readouterr().out
        if command[0] == "tfeff":
            served = {"embed": "sentence_embeddings", "finetune": "score"}[command[1]]
            assert f"text in, {served} out: " in printed
        else:
            question, *answers = printed.strip().splitlines()
            assert question == command[-1] and len(answers) == 3
    text = printed_by(python_blocks(PAGE), tmp_path)
    assert text.split("\n")[:-1] == [
        *("(3, 3)", "3", "['accuracy', 'loss']", "cls True", "3")
    ], text


def test_commands_of_the_page_have_flags_that_there_are():
    kinds = {"embed": EmbedSettings, "finetune": FinetuneSettings}
    parsed = [flags.parse(kinds[c[1]], c[2:]) for c in commands() if c[0] == "tfeff"]
    examples = {getattr(s, "examples", None) for s in parsed}
    assert examples == {None, "texts.txt", "pairs.tsv", "triplets.jsonl"}
