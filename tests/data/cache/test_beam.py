"""Caches that Apache Beam's workers write: the same bytes as those of threads."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tfeff
from tests.subjects.beam import DIRECT, PROCESSES, write_corpus
from tests.subjects.corpus import make_documents
from tests.subjects.files import contents
from tfeff.data import build_cache, sample
from tfeff.data.cache import layout
from tfeff.data.text.corpus import Corpus, Part

pytest.importorskip("apache_beam")


@pytest.fixture
def small_shards(monkeypatch):
    monkeypatch.setattr(layout, "SIZES", layout.ShardSizes(first=2000))


@pytest.fixture
def corpus(documents, tmp_path):
    (tmp_path / "corpus").mkdir()
    return write_corpus(tmp_path / "corpus", documents, 5)


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("kind", ["sentencepiece", "wordpiece"])
def test_the_same_bytes(corpus, tokenizer, tmp_path, small_shards, kind, cross):
    if kind == "wordpiece":
        tokenizer = tfeff.data.train_tokenizer(corpus, 160, kind=kind)
    build = [corpus, tokenizer]
    threads = build_cache(*build, tmp_path / "t", 16, cross)
    beam = build_cache(*build, tmp_path / "b", 16, cross, beam_flags=DIRECT)
    assert len(contents(tmp_path / "t")) > 6
    assert contents(tmp_path / "b") == contents(tmp_path / "t")
    assert beam.corpus_hash == threads.corpus_hash
    assert sorted(os.listdir(tmp_path)) == ["b", "corpus", "t"]


def test_parts_of_a_split_and_lists(corpus, tokenizer, tmp_path, small_shards):
    training, _ = tfeff.data.split(corpus, 0.3)
    for number, documents in enumerate([training, list(corpus)]):
        folders = [tmp_path / f"{kind}{number}" for kind in "tb"]
        build_cache(documents, tokenizer, folders[0], 16)
        build_cache(documents, tokenizer, folders[1], 16, beam_flags=DIRECT)
        assert contents(folders[0]) == contents(folders[1])


def test_a_matching_cache_is_reused(corpus, tokenizer, tmp_path, small_shards):
    build_cache(corpus, tokenizer, tmp_path / "c", 16)
    before = contents(tmp_path / "c")
    build_cache(corpus, tokenizer, tmp_path / "c", 16, beam_flags=DIRECT)
    others = Corpus(corpus.parts[1:])
    with pytest.raises(ValueError, match="corpus_hash is .*documents differ"):
        build_cache(others, tokenizer, tmp_path / "c", 16, beam_flags=DIRECT)
    assert contents(tmp_path / "c") == before
    assert sorted(os.listdir(tmp_path)) == ["c", "corpus"]


@pytest.mark.parametrize("num_bytes", [1, 3000, 10**9])
def test_the_same_sample(corpus, tmp_path, num_bytes):
    drawn = sample(corpus, num_bytes, beam_flags=DIRECT, shared_folder=tmp_path / "s")
    assert drawn == sample(corpus, num_bytes)
    assert not os.listdir(tmp_path / "s")


def test_a_sample_of_one_long_document_among_many(tmp_path):
    """The share that workers keep first may lack it."""
    documents = [f"{i}" for i in range(300)] + ["long " * 20_000]
    drawn = sample(documents, 300, beam_flags=DIRECT, shared_folder=tmp_path)
    assert drawn == sample(documents, 300)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\n\n\xff", "file .*bad.* must be UTF-8.*0xff at offset 6"),
        (b"\n\n", "file .*bad.* must hold text.*blank lines"),
    ],
)
def test_a_damaged_file_is_named(corpus, tokenizer, tmp_path, content, message):
    (tmp_path / "bad").write_bytes(content)
    parts = [*corpus.parts, *tfeff.data.text_files(tmp_path / "bad").parts]
    with pytest.raises(ValueError, match=message):
        build_cache(Corpus(parts), tokenizer, tmp_path / "c", 16, beam_flags=DIRECT)
    assert sorted(os.listdir(tmp_path)) == ["bad", "corpus"]


class Growing:
    """A part that has one document more each time that it is read."""

    def __init__(self, path):
        self.path = path

    def __call__(self):
        with open(self.path, "a") as file:
            file.write("more\n")
        with open(self.path) as file:
            yield from file.read().split("\n")


def test_a_file_that_changes_meanwhile_is_named(tokenizer, tmp_path):
    growing = Corpus([Part("the log", Growing(str(tmp_path / "log")))])
    with pytest.raises(ValueError, match="the same in each reading. the log had"):
        build_cache(growing, tokenizer, tmp_path / "c", 16, beam_flags=DIRECT)
    assert os.listdir(tmp_path) == ["log"]


@pytest.mark.parametrize(
    ("flags", "error", "message"),
    [
        ("--runner=DirectRunner", TypeError, "list of flags. Received: one string"),
        ([3], TypeError, "`beam_flags` must be strings. Received: 3"),
        (["runner"], ValueError, "--name=value or --name. Received: 'runner'"),
        (["--runner=DirctRunner"], ValueError, "must be one of .*Did you mean 'Direct"),
        (["--runner=InteractiveRunner"], ImportError, "extra of the package apache-b"),
        (["--runner=no.such.Runner"], ImportError, "--runner=no.such.Runner needs"),
        (["--runner=PortableRunner"], ValueError, "must specify a --job_endpoint"),
        (
            [
                "--runner=PortableRunner",
                "--job_endpoint=localhost:1",
                "--job_server_timeout=1",
            ],
            OSError,
            "job server of PortableRunner cannot be started or reached",
        ),
        (["--direct_num_worker=2"], ValueError, "num_worker. Did you mean '--direct_n"),
        (["--direct_num_workers=two"], ValueError, "direct_num_workers: invalid int"),
    ],
)
def test_bad_flags(documents, tokenizer, tmp_path, flags, error, message):
    with pytest.raises(error, match=message):
        build_cache(documents, tokenizer, tmp_path / "a" / "c", beam_flags=flags)
    with pytest.raises(error, match=message):
        sample(documents, 9, beam_flags=flags, shared_folder=tmp_path / "s")
    assert not os.listdir(tmp_path)


def test_bad_arguments(documents, tokenizer, tmp_path):
    with pytest.raises(ValueError, match="`num_threads` must be left out"):
        build_cache(
            documents, tokenizer, tmp_path / "c", num_threads=2, beam_flags=DIRECT
        )

    class Locked(list):
        lock = property(lambda self: None)

        def __reduce__(self):
            raise TypeError("it holds a lock")

    with pytest.raises(TypeError, match="`documents` must be a corpus, which can be"):
        build_cache(Locked(documents), tokenizer, tmp_path / "c", beam_flags=DIRECT)
    with pytest.raises(ValueError, match="`documents` must hold text.* 2 documents"):
        build_cache([" ", ""], tokenizer, tmp_path / "c", beam_flags=DIRECT)
    assert not os.listdir(tmp_path)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Files of 4 MB in all, which fill several shards of the usual size."""
    folder = tmp_path_factory.mktemp("large")
    return write_corpus(folder, make_documents(16_000, 120), 6)


@pytest.fixture
def job_server(tmp_path):
    """Flags of Beam's own portable job server; it and its worker are processes."""
    port_file = tmp_path / "port"
    module = "apache_beam.runners.portability.local_job_service_main"
    server = subprocess.Popen(
        [sys.executable, "-m", module, "--port=0", f"--port_file={port_file}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not (port_file.exists() and port_file.read_text()):
        assert server.poll() is None
        time.sleep(0.1)
    worker = f"{sys.executable} -m apache_beam.runners.worker.sdk_worker_main"
    yield [
        "--runner=PortableRunner",
        f"--job_endpoint=localhost:{port_file.read_text()}",
        "--environment_type=beam:env:harness_subprocess_python:v1",
        f"--environment_config={worker}",
    ]
    server.terminate()
    server.wait()


def workers(parent: int) -> list[int]:
    """Python processes of Beam's workers below a process."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            above = int(name)
            while above not in (0, parent):
                stat = Path(f"/proc/{above}/stat").read_text()
                above = int(stat.rpartition(")")[2].split()[1])
        except OSError:  # It has ended.
            continue
        is_worker = b"apache_beam.runners.worker.sdk_worker_main" in command
        if above == parent and is_worker:
            found.append(int(name))
    return found


class Killer(threading.Thread):
    """Kills a worker as soon as a shard is written."""

    def __init__(self, folder: Path):
        super().__init__(daemon=True)
        self.folder = folder
        self.seen: list[int] = []

    def run(self):
        while not list(self.folder.glob(".partial-*/c/shard-*")):
            time.sleep(0.01)
        self.seen = workers(os.getpid())
        os.kill(self.seen[-1], signal.SIGKILL)


# Of the runner's threads, which read from the worker.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("runner", ["direct", "portable"])
def test_processes_of_which_one_is_killed(large, tokenizer, tmp_path, runner, request):
    portable = runner == "portable"
    flags = request.getfixturevalue("job_server") if portable else PROCESSES
    build_cache(large, tokenizer, tmp_path / "t", 64)
    assert len(contents(tmp_path / "t")) > 5
    killer = Killer(tmp_path)
    killer.start()
    with pytest.raises(OSError, match=r"Beam pipeline failed.*, while writing .*/c"):
        build_cache(large, tokenizer, tmp_path / "c", 64, beam_flags=flags)
    killer.join()
    assert len(killer.seen) == (1 if portable else 2)
    assert sorted({*os.listdir(tmp_path)} - {"port"}) == ["t"]
    build_cache(large, tokenizer, tmp_path / "c", 64, beam_flags=flags)
    assert contents(tmp_path / "c") == contents(tmp_path / "t")
    assert sorted({*os.listdir(tmp_path)} - {"port"}) == ["c", "t"]
