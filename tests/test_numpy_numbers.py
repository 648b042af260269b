"""Numbers of NumPy are numbers wherever Python's are; True is none."""

import numpy as np
import pytest

from tests.subjects.encoders import tiny
from tfeff.data import MaskedTokens, Question, TextExamples, train_tokenizer
from tfeff.datasets import glue_average, squad_v2_metrics
from tfeff.datasets.glue import SCORED_TASKS
from tfeff.objectives import MaskedLM
from tfeff.objectives.generator import generator_for
from tfeff.tasks import augment

TEXTS = [f"{i} green bottles" for i in range(9)]


def answered(probability):
    question = Question("1", "Who?", "Somebody wrote it.")
    return squad_v2_metrics([question], {"1": ""}, {"1": probability})


def augmented(rate):
    tokenizer = train_tokenizer(TEXTS * 9, vocabulary_size=40, kind="wordpiece")
    model = MaskedLM(tiny("bert_base", vocabulary_size=tokenizer.vocabulary_size()))
    examples = TextExamples(TEXTS[:1], None, [0], ("x",), ["1"])
    return augment(examples, model, tokenizer, rate=rate, copies=1)


FUNCTIONS = {
    "mask_rate": lambda x: MaskedTokens(mask_rate=x),
    "mask_share": lambda x: MaskedTokens(mask_share=x),
    "random_share": lambda x: MaskedTokens(random_share=x, mask_share=0.1),
    "ratio": lambda x: generator_for(tiny("bert_base"), x),
    "rate": augmented,
    "no_answer_probabilities": answered,
    "scores": lambda x: glue_average(dict.fromkeys(SCORED_TASKS, x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name):
    for number in (0.5, np.float32(0.5), np.float64(0.5)):
        FUNCTIONS[name](number)
    for other in (True, "0.5", None):
        with pytest.raises((TypeError, ValueError), match=f"`{name}` must"):
            FUNCTIONS[name](other)
