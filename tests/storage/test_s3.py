"""A real S3 server: processes that are killed, buckets that are not there."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import threading

import pytest

import tfeff
from tests.checks.pages import REPOSITORY
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tfeff import storage
from tfeff.storage import lease
from tfeff.storage.lease import Lease
from tfeff.storage.manifest import NAME, UNFINISHED
from tfeff.storage.place import Place

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("bucket")]


def objects(bucket):
    client, name = bucket
    found = client.list_objects_v2(Bucket=name).get("Contents", ())
    return sorted(x["Key"].removeprefix("thing/") for x in found)


def process(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "tests.subjects.s3_run", *map(str, arguments)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **variables},
        capture_output=True,
        text=True,
    )


@pytest.fixture(name="folder")
def _folder(tmp_path):
    (tmp_path / "local").mkdir()
    for name in ("a", "b"):
        (tmp_path / "local" / name).write_text(name)
    return tmp_path / "local"


def restrict(bucket, monkeypatch):
    """Gives this process rights to list the bucket, and to what is below the URL."""
    import boto3
    import s3fs

    client, name = bucket
    iam = boto3.client("iam", endpoint_url=client.meta.endpoint_url)
    iam.create_user(UserName=name)
    arn = f"arn:aws:s3:::{name}"
    actions = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"]
    rights = [
        {"Effect": "Allow", "Action": actions, "Resource": f"{arn}/thing/*"},
        {"Effect": "Allow", "Action": ["s3:ListBucket"], "Resource": arn},
    ]
    iam.put_user_policy(
        UserName=name,
        PolicyName="below",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": rights}),
    )
    key = iam.create_access_key(UserName=name)["AccessKey"]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", key["AccessKeyId"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", key["SecretAccessKey"])
    s3fs.S3FileSystem.clear_instance_cache()
    boto3.DEFAULT_SESSION = None


@pytest.mark.parametrize("inside", ["", "/below"])
def test_rights_to_what_is_below_the_url_are_enough(
    inside, folder, url, bucket, monkeypatch
):
    authorization = pytest.importorskip("moto.core.authorization")
    restrict(bucket, monkeypatch)
    url = f"{url}{inside}"
    with authorization.enable_iam_authentication():
        storage.publish(folder, url)
        assert sorted(os.listdir(storage.fetch(url))) == ["a", "b"]
        assert pathlib.Path(storage.fetch(f"{url}/a")).read_text() == "a"
        for value in (1.0, 2.0):
            tfeff.training.write_metrics({"f1": value}, f"{url}/more/metrics.json")
        with pytest.raises(ValueError, match="`path` must be a file.*, a folder"):
            tfeff.training.write_metrics({"f1": 1.0}, f"{url}/more")
        for call in (storage.fetch, lambda other: storage.publish(folder, other)):
            with pytest.raises(ValueError, match="`url` must be a place that may be"):
                call(f"s3://{bucket[1]}/other")
        lease = Lease(Place("url", f"{url}/run"))
        lease.check()
        lease.release()


@pytest.mark.parametrize("killed_before", [UNFINISHED, "a", "b", NAME])
def test_a_process_killed_while_it_publishes(killed_before, folder, url, bucket):
    killed = process("publish", folder, url, killed_before)
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(ValueError, match="upload has not ended|where there is nothing"):
        storage.fetch(url)
    storage.publish(folder, url)
    assert objects(bucket) == ["a", "b", NAME]
    assert sorted(os.listdir(storage.fetch(url))) == ["a", "b"]


@pytest.mark.parametrize(
    ("step", "number", "lost"),
    [(3, 9, "step 2/8"), (4, 9, "step 2/8"), (7, 9, "step 6/8"), (7, 15, "step 6/8")],
)
def test_a_run_that_is_killed_goes_on_elsewhere(step, number, lost, url, tmp_path):
    whole = process(tmp_path / "whole", 0, 0)
    assert whole.returncode == 0, whole.stderr
    killed = process(url, step, number)
    assert killed.returncode == -number, killed.stderr
    saved = os.listdir(pathlib.Path(storage.fetch(url), "checkpoints"))
    assert (f"step-{step:08d}.keras" in saved) == (number == signal.SIGTERM)
    resumed = process(url, 0, 0, TFEFF_CACHE=str(tmp_path / "elsewhere"))
    assert resumed.returncode == 0, resumed.stderr
    assert lost not in resumed.stderr  # It went on from the checkpoint.
    assert resumed.stdout == whole.stdout
    name = "metrics.csv"
    fetched = pathlib.Path(storage.fetch(url), name).read_text()
    assert fetched == (tmp_path / "whole" / name).read_text()


def test_one_of_many_has_the_lease(url, monkeypatch):
    monkeypatch.setattr(lease, "SECONDS", 30.0)
    monkeypatch.setattr(lease, "_RENEWALS", 150)
    held, refused = [], []

    def start():
        try:
            held.append(Lease(Place("directory", url)))
        except ValueError:
            refused.append(1)

    threads = [threading.Thread(target=start) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(held), len(refused)) == (1, 4)
    held[0].release()


def test_presets_caches_and_corpora(url, bucket):
    client, name = bucket
    text = "\n\n".join(DOCUMENTS).encode()
    client.put_object(Bucket=name, Key="corpus/a.txt", Body=text)
    corpus = tfeff.data.text_files(f"s3://{name}/corpus/*.txt")
    assert list(corpus) == DOCUMENTS
    cache = tfeff.data.build_cache(corpus, tokenizer(), f"{url}/cache", 16)
    opened = tfeff.data.open_cache(f"{url}/cache", tokenizer())
    assert opened.directory == cache.directory
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=60, num_layers=1)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), f"{url}/preset")
    found, _ = tfeff.tasks.load_pretrained(f"{url}/preset")
    assert found.count_params() == encoder.count_params()


def test_buckets_that_are_not_there(folder):
    with pytest.raises(ValueError, match="`url` must be in a bucket .* that exists"):
        storage.publish(folder, "s3://no-such-bucket-here/thing")
    with pytest.raises(ValueError, match="where there is nothing"):
        storage.fetch("s3://no-such-bucket-here/thing")
    with pytest.raises(ValueError, match="`directory` must be in a bucket .* exists"):
        tfeff.training.RunDirectory("s3://no-such-bucket-here/run", {})


def test_missing_credentials(folder, url, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(ValueError, match="`url` needs credentials for s3://"):
        storage.publish(folder, url)
