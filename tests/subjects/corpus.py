"""A small corpus and its tokenizer, which tests of several packages share."""

import random

import pytest
import tensorflow as tf

import tfeff
from tfeff.data.text.tokenizers import restore_kernels

_TEXT = (
    "the of and a to in is was he for it with as his on be at by i this had not are "
    "but from or have an they which one you were all her she there would their we him "
    "been has when who will no more if out so up said what its about than into them "
    "can only other time new some could these two may first then do any like my now"
)


def make_documents(count: int, longest: int, seed: int = 0) -> list[str]:
    """Documents of 1 to `longest` words, in several lines, some with odd text."""
    source, text = random.Random(seed), _TEXT.split()
    documents = []
    for index in range(count):
        words = source.choices(text, k=source.randint(1, longest))
        words.insert(source.randrange(len(words) + 1), str(index))
        breaks = source.choices([" ", "\n"], [9, 1], k=len(words))
        documents.append("".join(w + b for w, b in zip(words, breaks)))
    return documents


def token_lists(tokenizer, documents: list[str]) -> list[list[int]]:
    """What calling the tokenizer gives."""
    ids = tokenizer(documents)
    return ids.to_list() if isinstance(ids, tf.RaggedTensor) else ids


@pytest.fixture(scope="session")
def documents() -> list[str]:
    odd = ["[MASK] [CLS] <pad>", "Ünïcode ＦＵＬＬ ﬁ 漢字 \u0301", "\u200b", " \n\t"]
    return make_documents(150, 60) + odd


@pytest.fixture(scope="session")
def tokenizer(documents):
    return tfeff.data.train_tokenizer(documents, vocabulary_size=120)


@pytest.fixture(autouse=True)
def revived(request):
    """Tests that call the tokenizer may follow one that set the seed."""
    if "tokenizer" in request.fixturenames:
        restore_kernels(request.getfixturevalue("tokenizer"))
