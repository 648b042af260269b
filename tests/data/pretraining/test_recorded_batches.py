"""Batches of every kind of examples are those that they were, bit for bit."""

import hashlib
import itertools
import string

import keras_hub
import pytest

from tfeff.data import MaskedTokens, PermutedTokens, SentencePairs, build_cache

# SHA-256 of the third to sixth batches of 7, recorded in November 2026 from the methods
# of `Cache` that `Cache.batches` has replaced.
RECORDED = [
    (
        MaskedTokens(),
        None,
        "df06ab97a732ceaf65081474fc076f2adec71bbfc47b1e21a76a48ede5f83673",
    ),
    (
        MaskedTokens(0.3, mask_share=0.85, random_share=0.0),
        None,
        "1779481eac0791b7ccd9f761715cc520b5d881564fa271029ca491dde460a662",
    ),
    (
        MaskedTokens(0.3, "whole_word"),
        True,
        "a18d5a1b9b9b122716dfcf4ca5555624232446a44e2af3099a2d4d125b87511a",
    ),
    (
        MaskedTokens(0.3, "ngram"),
        True,
        "73ad1cdf02b3322b2e9aa8c9be4ac977006162af812725728b0f027fecb23084",
    ),
    (
        PermutedTokens(),
        None,
        "70e607dc88983cc323cd19b8654302adfefd19331a8bf2c47ad380dec13784b8",
    ),
    (
        SentencePairs(),
        None,
        "6ec52712080ee32e03fc71bcb0fd5feee3e947380efef019fd14f97e2def5461",
    ),
    (
        SentencePairs("order", MaskedTokens(0.3, "ngram")),
        True,
        "f67c8da00bef37227a1cac53ee7d976294ceda81a7e60d504584453652eda551",
    ),
    (
        SentencePairs("next"),
        True,
        "b5cc5e44edbbc6f67b5aa5253b17e940bfa027a3c440f12edde7f3c95438d9ec",
    ),
    (
        SentencePairs("next", masked=None),
        None,
        "283f16542f81368cf7ca19731c2258b3461ce26261cdeffb92069cf177c9a24d",
    ),
]


@pytest.fixture(scope="module")
def tokenizer():
    """Letters at the start of a word, and within one."""
    letters = string.ascii_lowercase
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    return keras_hub.tokenizers.BertTokenizer(pieces + [f"##{x}" for x in letters])


@pytest.fixture(scope="module")
def cache(tokenizer, tmp_path_factory):
    """Sequences of up to 18 letters, of 12 documents."""
    numbers = (str(7**n % 10**9) for n in range(12, 180))
    words = ["".join(string.ascii_lowercase[int(d)] for d in n) for n in numbers]
    documents = [" ".join(words[i : i + 14]) for i in range(0, len(words), 14)]
    path = tmp_path_factory.mktemp("recorded") / "cache"
    return build_cache(documents, tokenizer, path, 20, num_threads=1, progress=False)


def digest(dataset):
    """SHA-256 of all tensors of the first four batches, with their names and shapes."""
    found = hashlib.sha256()
    for batch in itertools.islice(dataset, 4):
        for part in batch:
            named = part if isinstance(part, dict) else {"": part}
            for name in sorted(named):
                value = named[name].numpy()
                found.update(f"{name} {value.dtype} {value.shape}".encode())
                found.update(value.tobytes())
    return found.hexdigest()


@pytest.mark.quick(
    "MaskedTokens-NoneType-str0",
    "PermutedTokens-NoneType-str",
    "SentencePairs-bool-str0",
)
@pytest.mark.parametrize(
    ("examples", "is_told_words", "expected"),
    RECORDED,
    ids=lambda value: type(value).__name__,
)
def test_batches_are_those_recorded(
    cache, tokenizer, examples, is_told_words, expected
):
    tokenizer = tokenizer if is_told_words else None
    batches = cache.batches(examples, 7, 3, tokenizer=tokenizer, skip_batches=2)
    assert digest(batches) == expected
