"""A sentence embedding model serves its own embeddings of texts."""

import numpy as np
import pytest

import tfeff
from tests.checks import randomize
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.serving import make_encoder, serve

BLOCKWISE = {"name": "blockwise", "head_blocks": "3:1"}
TEXTS = [DOCUMENTS[0], "zebras", "Zebra ÉTÉ 日本 🦓 [MASK]", " ".join(DOCUMENTS[:4])]


def served(tmp_path, pooling, **kwargs):
    model = tfeff.tasks.SentenceEmbedding(make_encoder(**kwargs), pooling)
    randomize({w.path: w for w in model.weights if "seed" not in w.path}, scale=0.3)
    path = tmp_path / "export"
    tfeff.export.save_for_serving(model, tokenizer(), path, sequence_length=20)
    return model, path


@pytest.mark.parametrize(
    ("pooling", "attention"),
    [
        ("mean", "self"),
        pytest.param("layerwise", "self", marks=pytest.mark.slow),
        pytest.param("cls", BLOCKWISE, marks=pytest.mark.slow, id="cls-blockwise"),
    ],
)
def test_serves_what_the_model_gives(tmp_path, pooling, attention):
    model, path = served(tmp_path, pooling, attention=attention)
    expected = model.embed(TEXTS, tokenizer(), sequence_length=20)
    embeddings = serve(path, "sentence_embeddings", TEXTS)["embeddings"]
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(embeddings, expected, atol=1e-5)
    # No text is no error here: nobody is there to read it.
    assert serve(path, "sentence_embeddings", ["", "a"])["embeddings"].shape == (2, 16)
    assert serve(path, "sentence_embeddings", [])["embeddings"].shape == (0, 16)


def test_refuses_the_last_token(tmp_path):
    with pytest.raises(ValueError, match="`model` must not pool the last token"):
        served(tmp_path, "last")
