"""Apache Beam's workers at a real S3 server: the corpus, a sample and a cache on it."""

import os

import pytest

from tests.subjects.beam import PROCESSES
from tests.subjects.corpus import make_documents
from tests.subjects.files import contents
from tfeff.data import build_cache, sample, text_files, train_tokenizer

pytest.importorskip("apache_beam")
pytestmark = pytest.mark.slow
DOCUMENTS = make_documents(2000, 60)


@pytest.fixture(name="corpus")
def _corpus(bucket):
    client, name = bucket
    for number in range(4):
        text = "\n\n".join(DOCUMENTS[500 * number : 500 * (number + 1)])
        client.put_object(Bucket=name, Key=f"{number}.txt", Body=text.encode())
    return text_files(f"s3://{name}/*.txt")


def test_a_sample_by_processes(bucket, corpus):
    scratch = f"s3://{bucket[1]}/scratch"
    drawn = sample(corpus, 3000, beam_flags=PROCESSES, shared_folder=scratch)
    assert drawn == sample(corpus, 3000)
    assert {key.split("/")[0] for key in keys(bucket)} == {f"{n}.txt" for n in range(4)}


def test_a_cache_by_processes(bucket, corpus, url, tmp_path):
    tokenizer = train_tokenizer(DOCUMENTS[:200], vocabulary_size=150)
    build_cache(corpus, tokenizer, tmp_path / "t", 16)
    built = build_cache(corpus, tokenizer, url, 16, beam_flags=PROCESSES)
    assert contents(built.directory) == contents(tmp_path / "t")
    found = keys(bucket)
    own = [key for key in found if key.startswith("thing/")]
    assert len(own) == len(os.listdir(tmp_path / "t")) + 1  # Its manifest.
    assert len(found) == len(own) + 4


def keys(bucket) -> list[str]:
    client, name = bucket
    return [x["Key"] for x in client.list_objects_v2(Bucket=name)["Contents"]]
