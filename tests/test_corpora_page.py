"""The code and the commands of docs/CORPORA_AT_SCALE.md, on a small corpus."""

import json
import shlex

import pytest

from tests.checks.pages import code_blocks, printed_by, python_blocks
from tests.subjects.corpus import make_documents
from tests.subjects.files import contents

PAGE = "docs/CORPORA_AT_SCALE.md"


def commands() -> list[list[str]]:
    """The page's commands of tfeff, without its name."""
    blocks = "".join(code_blocks(PAGE, "sh")).replace("\\\n", " ")
    return [shlex.split(line)[1:] for line in blocks.splitlines()]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "corpus").mkdir()
    for number in range(3):
        lines = [json.dumps({"text": d}) for d in make_documents(2000, 10, number)]
        (tmp_path / "corpus" / f"{number}.jsonl").write_text("\n".join(lines))
    return tmp_path


@pytest.mark.slow
def test_commands_on_one_machine(corpus):
    from tfeff.command.main import main

    cache, pretrain, *_ = commands()
    assert main(cache) == 0
    small = ["--steps=4", "--override=hidden_dim=16", "--override=intermediate_dim=32"]
    assert main([*pretrain, *small]) == 0


@pytest.mark.slow
def test_commands_and_code_by_beam(corpus):
    pytest.importorskip("apache_beam")
    from tfeff.command.main import main

    threads, _, direct, *_ = commands()
    assert main(threads) == main(direct) == 0
    assert contents("caches/direct") == contents("caches/english")
    printed = printed_by(python_blocks(PAGE), corpus)
    assert "caches/python', sequence_length=64" in printed


def test_flags_of_clusters_are_known():
    pytest.importorskip("apache_beam")
    from apache_beam.options.pipeline_options import PipelineOptions

    *_, flink, spark, dataflow = commands()
    for runner, command in {
        "FlinkRunner": flink,
        "SparkRunner": spark,
        "DataflowRunner": dataflow,
    }.items():
        dashes = command.index("--")
        flags = [f"--runner={runner}", *command[dashes + 1 :]]
        assert flags[0] in command[:dashes]
        parsers = []
        PipelineOptions(flags).get_all_options(add_extra_args_fn=parsers.append)
        assert parsers[0].parse_known_args(flags)[1] == []
