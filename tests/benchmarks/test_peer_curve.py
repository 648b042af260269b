import csv
import json

import numpy as np
import pytest

import tfeff
from tests.benchmarks.scripts import run

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Documents in two parts and their tokenizer, as the campaign has them."""
    folder = tmp_path_factory.mktemp("texts")
    random = np.random.default_rng(0)
    words = [f"w{index}" for index in range(30)]
    documents = [" ".join(random.choice(words, 40)) for _ in range(60)]
    for part, own in (("train", documents[10:]), ("final", documents[:10])):
        lines = (f"{json.dumps({'text': text})}\n" for text in own)
        (folder / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")
    tokenizer = tfeff.data.train_tokenizer(documents, 36)
    tfeff.data.save_tokenizer(tokenizer, str(folder / "tokenizer.spm"))
    return folder


def test_a_curve_has_its_points_and_can_be_repeated(texts, tmp_path):
    for name in ("a.csv", "b.csv"):
        result = run(
            "peer_curve.py",
            *(f"--texts={texts}", f"--out={tmp_path / name}", "--rate=0.01"),
            *("--steps=20", "--eval_every=10", "--length=16", "--batch_size=4"),
            *("--width=16", "--layers=1"),
        )
        assert result.returncode == 0, result.stderr
    first, second = (
        list(csv.DictReader((tmp_path / name).open(encoding="utf-8")))
        for name in ("a.csv", "b.csv")
    )
    assert [row["tokens"] for row in first] == ["640", "1280"]
    assert float(first[1]["val_loss"]) < float(first[0]["val_loss"]) < 4.0
    assert [row["val_loss"] for row in first] == [row["val_loss"] for row in second]
    assert "--rate=0.01" in first[0]["command"] and first[0]["machine"]


def test_masks_are_those_of_bert(load):
    script = load("peer_curve.py")
    first, size = 5, 1000
    random = np.random.default_rng(0)
    tokens = random.integers(first, size, (500, 400))
    tokens[:, 0], tokens[:, -1] = 2, 0
    seen, labels = (
        tensor.numpy() for tensor in script["masked"](tokens, first, size, random)
    )
    chosen = labels != script["NOTHING"]
    assert not chosen[:, [0, -1]].any()
    assert chosen.mean() == pytest.approx(0.15, abs=0.005)
    np.testing.assert_array_equal(labels[chosen], tokens[chosen])
    np.testing.assert_array_equal(seen[~chosen], tokens[~chosen])
    assert (seen[chosen] == first - 1).mean() == pytest.approx(0.8, abs=0.01)
    assert (seen[chosen] == tokens[chosen]).mean() == pytest.approx(0.1, abs=0.01)
    assert seen[chosen].min() == first - 1 and seen.max() < size
