import subprocess
import sys

import pytest
from absl import app

import tfeff
from tests.benchmarks.scripts import FOLDER

REPOSITORY = FOLDER.parent
DOCUMENTS = [f"{i} green bottles\nhanging on the wall" for i in range(50)]


@pytest.fixture(scope="module")
def data(load):
    module = load("data.py")
    module["FLAGS"].mark_as_parsed()
    return module


@pytest.fixture(scope="module")
def tokenizer():
    return tfeff.data.train_tokenizer(DOCUMENTS, vocabulary_size=30)


@pytest.mark.slow
def test_all_make_the_same_tokens(data, tokenizer, tmp_path):
    expected = sum(len(tokenizer(document)) for document in DOCUMENTS)
    caching = data["Caching"](DOCUMENTS, tokenizer, tmp_path, 1, 16)
    assert [caching(), caching()] == [expected] * 2
    assert not list(tmp_path.iterdir())
    assert data["in_threads"](tokenizer.proto, DOCUMENTS, 2) == expected
    data["start_process"](tokenizer.proto)
    assert data["count_tokens"](DOCUMENTS) == expected
    cache = tfeff.data.build_cache(
        DOCUMENTS, tokenizer, tmp_path / "cache", 16, progress=False
    )
    assert data["read_batches"](cache, 8) == expected
    assert data["read_records"](cache, 8) == expected


def test_each_runs_in_every_round(data):
    calls = []
    runs = {name: (lambda name=name: calls.append(name) or 7) for name in "ab"}
    wall, cpu, tokens = data["in_turns"](runs, rounds=3)
    assert "".join(calls) == "ab" + "ab" + "ba" + "ab"
    assert tokens == {"a": 7, "b": 7}
    for seconds in (wall, cpu):
        assert {name: len(times) for name, times in seconds.items()} == {"a": 3, "b": 3}


def test_another_number_of_tokens_is_an_error(data):
    runs = {"ours": lambda: 7, "theirs": lambda: 8}
    with pytest.raises(RuntimeError, match="ours made 7 tokens, but theirs 8"):
        data["compare"](runs, {})


def test_processor_time_of_ended_processes_counts(data):
    before = data["processor_seconds"]()
    subprocess.run([sys.executable, "-c", "sum(range(3_000_000))"], check=True)
    assert data["processor_seconds"]() > before


def test_table(data):
    row = dict(
        contender="SentencePiece, threads",
        tokens_a_second="2500000",
        cpu_us_a_token="0.75",
        ratio="0.9",
        low="0.85",
        high="0.95",
        cpu_ratio="1.2",
    )
    assert data["table"]([row])[2:] == [
        "| SentencePiece, threads | 2.500 | 0.900 (0.850–0.950) | 0.750 | 1.200 |"
    ]


def test_where_text_comes_from(data, tmp_path, monkeypatch):
    monkeypatch.setattr(tfeff.data, "docstrings", lambda: ["Adds."])
    missing = str(tmp_path / "missing")
    assert data["find_text"](missing, required=False) == ("docstrings", ["Adds."])
    with pytest.raises(app.UsageError, match="missing holds no text"):
        data["find_text"](missing, required=True)
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("One.\n\nTwo.\n")
    source, documents = data["find_text"](str(tmp_path), required=True)
    assert (source, list(documents)) == ("text files", ["One.", "Two."])


@pytest.mark.slow
def test_rows_are_made_once(data, tmp_path):
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.txt").write_text("\n\n".join(DOCUMENTS))
    arguments = (
        f"--data={tmp_path} --results={tmp_path} --repeat=2 --vocabulary_size=30 "
        "--length=16 --rounds=2 --processes=2"
    )
    for _ in range(2):
        subprocess.run(
            [sys.executable, FOLDER / "data.py", *arguments.split()],
            cwd=REPOSITORY,
            env={"PYTHONPATH": str(REPOSITORY), "PATH": ""},
            check=True,
        )
        rows = data["read"](str(tmp_path / "data.csv"))
        assert [row["what"] for row in rows] == ["caching"] * 3 + ["reading"] * 2
        assert all(float(row["tokens_a_second"]) > 0 for row in rows)
    assert "| SentencePiece, processes |" in (tmp_path / "data.md").read_text()
