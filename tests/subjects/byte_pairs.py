"""A byte-level BPE that the `tokenizers` library trains, and tfeff's of its file."""

import functools
import json
from pathlib import Path

import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from tests.subjects.characters import CORPUS
from tfeff.data import RobertaTokenizer

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


@functools.cache
def library(add_prefix_space=False):
    """The library's tokenizer, trained on a page of the documents."""
    words = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = words
    trainer = trainers.BpeTrainer(
        vocab_size=1500,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    page = Path(__file__).parents[2] / "docs" / "DECISIONS.md"
    lines = page.read_text("utf-8").splitlines()
    trained.train_from_iterator([*lines, *CORPUS], trainer)
    values = json.loads(trained.to_str()) | {"added_tokens": []}
    return tokenizers.Tokenizer.from_str(json.dumps(values))


@functools.cache
def tokenizer(add_prefix_space=False):
    model = json.loads(library(add_prefix_space).to_str())["model"]
    return RobertaTokenizer(model["vocab"], model["merges"], add_prefix_space)
