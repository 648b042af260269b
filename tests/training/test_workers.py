"""What workers agree on, in one process; `test_killed_workers` has several."""

import errno
import json
import os
import re
import zipfile

import numpy as np
import pytest
import tensorflow as tf

from tfeff.training import (
    LostWorker,
    RunDirectory,
    agreement,
    lost_workers_named,
    make_strategy,
    workers,
)
from tfeff.training.checkpoint_folder import checkpoint_path

A, B = [["model.weights.h5", 1]], [["model.weights.h5", 2]]  # Checksums.


@pytest.mark.parametrize(
    ("chief", "other", "message"),
    [
        (A, A, None),
        (None, None, "path is truncated or corrupted. Delete it"),
        ("No", A, "worker 0, the chief, cannot read path: No"),
        (A, None, "path as worker 0, the chief, does. Received: worker 1 cannot"),
        (A, "No", "path as worker 0, the chief, does. Received: worker 1 cannot"),
        (A, B, "path as worker 0, the chief, does. Received: worker 1 cannot"),
    ],
)
def test_a_checkpoint_that_all_see(chief, other, message):
    everyone = {"worker 0": chief, "worker 1": other, "worker 2": chief}
    told = agreement._disagreement("path", everyone, "worker 0")
    assert message in told if message else told is None


def test_differences_are_named():
    everyone = {
        "worker 0": {"seed": 0, "data": "a"},
        "worker 1": {"seed": 1, "data": "a"},
        "worker 2": {"seed": 1, "data": "a", "steps": [1]},
    }
    assert agreement._differences(everyone) == [
        "seed: worker 0 has 0, worker 1 has 1, worker 2 has 1",
        "steps: worker 0 has 'nothing', worker 1 has 'nothing', worker 2 has [1]",
    ]


def test_checksums_of_checkpoints(tmp_path, monkeypatch):
    for step, weights in ((2, b"some weights"), (4, b"others"), (6, b"others")):
        path = tmp_path / f"step-{step:08d}.keras"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model.weights.h5", weights)
            archive.writestr("metadata.json", str(step))
    content = bytearray(path.read_bytes())
    content[content.index(b"others")] ^= 1
    path.write_bytes(content)
    (tmp_path / "step-00000008.keras").write_bytes(b"")
    found = [agreement._checksum(checkpoint_path(tmp_path, n)) for n in (2, 4, 6, 8, 9)]
    assert found[0] != found[1] and found[0][0][0] == "model.weights.h5"
    assert found[2:] == [None] * 3

    def refuse(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("zipfile.ZipFile.testzip", refuse)
    assert agreement._checksum(checkpoint_path(tmp_path, 2)) == "Too many open files"


def test_digests_of_data():
    def digest(values, policy=tf.data.experimental.AutoShardPolicy.DATA, **kwargs):
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = policy
        dataset = tf.data.Dataset.from_tensor_slices({"x": values, **kwargs})
        return agreement.data_digest(dataset.with_options(options).batch(2))

    values = np.arange(4)
    assert digest(values) == digest(values.copy())
    others = [values + 1, values.astype("float32"), ["a", "b"], ["a", "c"]]
    assert len({digest(values), digest(values, y=values), *map(digest, others)}) == 6
    assert digest(values, tf.data.experimental.AutoShardPolicy.OFF) is None
    assert agreement.data_digest(None) is None


@pytest.mark.parametrize("strategy", ["default", "mirrored"])
def test_a_worker_alone_reads_no_data_and_keeps_its_checkpoints(strategy, tmp_path):
    run = RunDirectory(str(tmp_path / "run"), {})
    os.mkdir(run.path("checkpoints"))
    damaged = run.path("checkpoints", "step-00000002.keras")
    open(damaged, "x").close()
    with make_strategy(strategy).scope():
        assert not workers.several_workers()
        agreement.check_equal_settings({"seed": 0})
        assert workers.is_chief() and workers.from_chief(lambda: 3) == 3
        assert agreement.agree_on_checkpoint(run) == (damaged, 2)
    assert os.listdir(run.path("checkpoints")) == ["step-00000002.keras"]


def test_a_worker_says_that_it_waits(monkeypatch, capsys):
    cluster = {"chief": ["one:1"], "worker": ["two:2"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    monkeypatch.setattr(tf.distribute, "MultiWorkerMirroredStrategy", lambda: "made")
    assert make_strategy("multi_worker") == "made"
    expected = "worker 0: waiting until all of one:1, two:2 have started.\n"
    assert capsys.readouterr().err == expected
    monkeypatch.delenv("TF_CONFIG")
    make_strategy("multi_worker")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "text",
    [
        "{'cluster': {}}",
        '{"cluster": 1}',
        '{"cluster": {"worker": ["a:1"]}, "task": 3}',
        "3",
        "",
    ],
)
def test_what_is_no_tf_config_is_named(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match=f"TF_CONFIG must .*={re.escape(repr(text))}"):
        make_strategy("multi_worker")


@pytest.mark.parametrize(
    "error",
    [
        tf.errors.UnavailableError(
            None,
            None,
            "Graph execution error:\nCollective ops is aborted by: Socket closed\n"
            "while calling /job:worker/replica:0/task:1 \nThe error could be from",
        ),
        tf.errors.DeadlineExceededError(
            None, None, "Collective ops is aborted by: Deadline Exceeded\nRPC: Beat"
        ),
        tf.errors.UnavailableError(
            None,
            None,
            "failed to connect to all addresses\nAdditional GRPC error information "
            "from remote target /job:worker/replica:0/task:1 while calling "
            "/tensorflow.CoordinationService/InsertKeyValue:\n:UNKNOWN:Error",
        ),
    ],
)
def test_a_lost_worker_is_one_sentence(error):
    expected = pytest.raises(LostWorker, match="start all workers again")
    with expected as raised, lost_workers_named():
        raise error
    assert raised.value.__suppress_context__ and "\n" not in str(raised.value)
    assert ("worker 1 has ended" in str(raised.value)) == ("task:1" in error.message)


def test_other_errors_stay_as_they_are():
    error = tf.errors.InternalError(
        None, None, "Collective ops is aborted by: joining a group with size3, but"
    )
    with (
        pytest.raises(ValueError, match="TF_CONFIG must name the same"),
        lost_workers_named(),
    ):
        raise error
    error = tf.errors.ResourceExhaustedError(None, None, "out of memory")
    with pytest.raises(tf.errors.ResourceExhaustedError), lost_workers_named():
        raise error
