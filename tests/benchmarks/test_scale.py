"""The model of cost, and the page's tables, which are what it gives."""

import math

import pytest

import tfeff
from tests.benchmarks.scripts import FOLDER
from tests.checks.pages import text_of


@pytest.fixture(scope="module")
def model(load):
    return load("scale_model.py")


@pytest.fixture(scope="module")
def step(model):
    return model["Step"](seconds=0.1, sequences=16, length=512, weights=400_000_000)


def test_the_page_has_the_tables(load):
    found = load("scale.py")["tables"](str(FOLDER / "results"))
    page = text_of("docs/SCALE.md")
    for title, lines in found.items():
        assert "\n".join(["", *lines, ""]) in page, title


def test_tokens_of_a_slice(model, step):
    """400 MB go twice over 3/4 of the ring, by two links of 70 GB/s."""
    between = 2 * 4e8 * 3 / 4 / 140e9
    assert model["collective_seconds"](step, "v3", 4) == pytest.approx(between)
    share = model["share_of_collectives"](step, "v3", 4)
    assert share == pytest.approx(between / (0.1 + between))
    tokens = model["tokens_a_second"](step, "v3", 4)
    assert tokens == pytest.approx(8 * 16 * 512 / (0.1 + between))
    assert model["tokens_a_second"](step, "v3", 1) == pytest.approx(2 * 8192 / 0.1)
    assert model["smaller"](step, 4).seconds == pytest.approx(0.025)


def test_checkpoints(model, load):
    rows = load("rows.py")["read"](str(FOLDER / "results" / "scale.csv"))
    (saved,) = (row["value"] for row in rows if row["what"] == "checkpoint: bytes")
    pods = load("rows.py")["read"](str(FOLDER / "results" / "pods.csv"))
    weights = next(row["weights"] for row in pods if row["preset"] == "bert_base")
    # Weights and AdamW's two moments.
    assert 3 * int(weights) == pytest.approx(float(saved), 0.01)
    assert model["share_of_checkpoints"](10, 100, 0.1) == 0.5


def test_a_cache_has_the_bytes_and_sequences(model, tmp_path):
    words = [f"w{i}" for i in range(40)]
    documents = [" ".join(words[i % 40 :] + words[: i % 40]) for i in range(50)]
    tokenizer = tfeff.data.train_tokenizer(documents, vocabulary_size=45)
    of_document = [len(tokenizer(document)) for document in documents]
    cache = tfeff.data.build_cache(
        documents, tokenizer, tmp_path / "cache", 18, progress=False
    )
    sequences = sum(math.ceil(count / 16) for count in of_document)
    assert cache.num_sequences == sequences
    size = sum(path.stat().st_size for path in (tmp_path / "cache").glob("*.tfrecord"))
    frame, record = model["RECORD_FRAME"], model["RECORD_BYTES"]
    assert size == 4 * (sum(of_document) + frame * sequences) + record * sequences
    assert (tmp_path / "cache" / "lengths.npy").stat().st_size == pytest.approx(
        model["LENGTH_BYTES"] * sequences + 128
    )


def test_input_and_hours(model):
    assert model["input_bytes_a_second"](512, 512) == 4 * 513 + 16
    hours = model["caching_hours"](3600e6, 1e6, 2)
    assert hours == pytest.approx(model["BEAM_FACTOR"] / 2)
