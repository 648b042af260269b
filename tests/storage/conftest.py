"""A folder and the scheme `store://`, and a real S3 server for those who ask for it."""

import pytest

from tests.subjects.folders import write
from tests.subjects.stores import make_store


@pytest.fixture(name="store")
def _store(tmp_path, monkeypatch):
    return make_store(tmp_path / "store", monkeypatch)


@pytest.fixture(name="folder")
def _folder(tmp_path):
    return write(tmp_path / "local", {"a.txt": "one", "below/b.txt": "two"})


@pytest.fixture(scope="package", name="endpoint")
def _endpoint():
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server")
    running = server.ThreadedMotoServer(port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    yield f"http://{host}:{port}"
    running.stop()


@pytest.fixture(name="bucket")
def _bucket(endpoint, tmp_path, monkeypatch, request):
    """A client and the name of a new bucket, with credentials for it."""
    import boto3
    import s3fs

    for name, value in {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
        "TFEFF_CACHE": str(tmp_path / "copies"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    client = boto3.client("s3", endpoint_url=endpoint)
    name = f"bucket-{abs(hash(request.node.name))}"
    client.create_bucket(Bucket=name)
    yield client, name
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(name="url")
def _url(bucket):
    return f"s3://{bucket[1]}/thing"
