"""Numbers of NumPy are numbers wherever Python's are; True is none."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from tests.subjects.encoders import tiny
from tfeff.data import (
    MaskedTokens,
    PermutedTokens,
    Question,
    TextExamples,
    mask_tokens,
    permute_targets,
    train_tokenizer,
)
from tfeff.datasets import glue_average, squad_v2_metrics
from tfeff.datasets.glue import SCORED_TASKS
from tfeff.objectives import MaskedLM
from tfeff.objectives.generator import generator_for
from tfeff.tasks import augment

TEXTS = [f"{i} green bottles" for i in range(9)]


def answered(probability):
    question = Question("1", "Who?", "Somebody wrote it.")
    return squad_v2_metrics([question], {"1": ""}, {"1": probability})


@cache
def model_and_tokenizer():
    tokenizer = train_tokenizer(TEXTS * 9, vocabulary_size=40, kind="wordpiece")
    encoder = tiny("bert_base", vocabulary_size=tokenizer.vocabulary_size())
    return MaskedLM(encoder), tokenizer


def augmented(rate):
    examples = TextExamples(TEXTS[:1], None, [0], ("x",), ["1"])
    return augment(examples, *model_and_tokenizer(), rate=rate, copies=1)


def masked(**settings):
    MaskedTokens(**settings)
    ids = np.arange(12).reshape(2, 6)
    special = {"vocabulary_size": 12, "mask_token_id": 1, "special_token_ids": [0, 1]}
    mask_tokens(ids, 0, max_masks=3, **special, **settings)


def permuted(rate):
    PermutedTokens(mask_rate=rate)
    ids = np.arange(12).reshape(2, 6)
    permute_targets(ids, 0, special_token_ids=[0], max_targets=3, mask_rate=rate)


FUNCTIONS = {
    "mask_rate": lambda x: masked(mask_rate=x),
    "mask_rate of permutations": permuted,
    "mask_share": lambda x: masked(mask_share=x),
    "random_share": lambda x: masked(random_share=x, mask_share=0.1),
    "ratio": lambda x: generator_for(tiny("bert_base"), x),
    "rate": augmented,
    "no_answer_probabilities": answered,
    "scores": lambda x: glue_average(dict.fromkeys(SCORED_TASKS, x)),
}


@pytest.mark.quick(*FUNCTIONS.keys() - {"rate"})
@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name):
    numbers = (np.float16(0.5), np.float32(0.5), np.float64(0.5), Fraction(1, 2))
    for number in (0.5, *numbers):
        FUNCTIONS[name](number)
    argument = name.partition(" ")[0]
    for other in (True, "0.5", None):
        with pytest.raises((TypeError, ValueError), match=f"`{argument}` must"):
            FUNCTIONS[name](other)
