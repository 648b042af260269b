"""The answers of a model to questions, and the scores of its answers."""

import math

import numpy as np

import tfeff
from tfeff.datasets.squad import withhold


def check_answered(name, path, questions):
    """Raises if no question has an answer: a file without them is one to predict."""
    if not any(question.answers or question.spans for question in questions):
        raise ValueError(
            f"`{name}` must hold `answers` to questions. Received: {path}, with none "
            f"to any of {len(questions):,}"
        )


def asked(part):
    """The questions and passages of a part's windows."""
    return tfeff.data.SpanExamples(part.questions)


def score_answers(model, dataset, dev, max_answer_tokens):
    """The official metrics, and the answers that they are of."""
    if not tfeff.training.is_finite(model):  # The training has diverged.
        return dict.fromkeys(dataset.metric_names, math.nan), ()
    answers = model.answers(dev, max_answer_tokens=max_answer_tokens)
    return dataset.metrics(asked(dev), answers), answers


def score_served(model, dataset, dev, max_answer_tokens):
    """The metrics and answers of a model as it is served, and the threshold there.

    The metrics of SQuAD 2.0 have one threshold for F1 and one for exact matches, but
    answers can be withheld by one only.
    """
    metrics, answers = score_answers(model, dataset, dev, max_answer_tokens)
    threshold = metrics.get("no_answer_threshold")
    if threshold is None:
        return metrics, answers, None
    answers = withhold(answers, threshold)
    metrics |= dataset.metrics(asked(dev), texts(answers))
    return metrics, answers, served_threshold(threshold, answers)


def texts(answers):
    """The text of each answer by the question's id."""
    return {answer.id: answer.text for answer in answers}


def served_threshold(threshold, answers):
    """The margin by which no answer must outscore the best answer to be returned.

    The best threshold is the probability of one of the questions, which rounding could
    put on either side of it. It is therefore moved half-way to the next probability.
    """
    probabilities = (answer.no_answer_probability for answer in answers)
    above = min((p for p in probabilities if p > threshold), default=1.0)
    probability = (threshold + above) / 2
    with np.errstate(divide="ignore"):
        return float(np.log(probability) - np.log1p(-probability))
