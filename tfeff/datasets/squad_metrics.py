"""The official scores of SQuAD, from the scripts in TensorFlow's Model Garden."""

import importlib
import numbers
import types
from collections.abc import Mapping, Sequence

from tfeff.data.finetuning.examples import Question, SpanExamples
from tfeff.datasets.checks import check_list
from tfeff.utils.checks import check_mapping


def squad_v1_metrics(
    questions: SpanExamples | Sequence[Question], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Exact match and F1 of SQuAD 1.1, which MRQA also uses.

    Both compare texts without capitals, punctuation and articles and take the best over
    all answers: `"exact_match"` is 1 if they are equal, `"f1"` compares their words.

    Args:
        questions: all with answers.
        predictions: the text of the answer for each question's id.

    Returns:
        `"f1"` and `"exact_match"`, in percent.

    Raises:
        ImportError: if Model Garden is not installed.
        ValueError: if a question lacks answers or a prediction, or a prediction has an
            unknown id.

    Example:
    ```python
    import tfeff

    question = tfeff.data.Question("q1", "Who?", "Ada wrote it.", ("Ada",), ((0, 3),))
    metrics = tfeff.datasets.squad_v1_metrics([question], {"q1": "the ADA."})
    assert metrics == {"f1": 100.0, "exact_match": 100.0}
    ```

    Reference:
        Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine Comprehension of
        Text", 2016, section 6.1.
    """
    questions = _checked(questions, predictions)
    for question in questions:
        if not question.answers:
            raise ValueError(
                "`questions` must have answers; those of SQuAD 2.0 that have none are "
                f"for `squad_v2_metrics`. Received: {question.id!r} without"
            )
    scores = official_script("squad_evaluate_v1_1").evaluate(
        _dataset(questions), predictions
    )
    return {
        "f1": 100 * scores["final_f1"],
        "exact_match": 100 * scores["exact_match"],
    }


def squad_v2_metrics(
    questions: SpanExamples | Sequence[Question],
    predictions: Mapping[str, str],
    no_answer_probabilities: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The metrics of SQuAD 2.0, in which "" means that a question has no answer.

    Args:
        questions: with and without answers.
        predictions: the text of the answer, or "", for each question's id.
        no_answer_probabilities: the probability that each has no answer; for the best
            threshold and the curves of precision and recall.

    Returns:
        The script's own names: `"f1"` and `"exact"` of the predictions as they are,
        with `"HasAns_…"` and `"NoAns_…"` for the questions with and without answers;
        `"final_f1"` and `"final_exact"` with the threshold on the probabilities that
        is best for these very questions; and more. Scores are in percent.

    Raises:
        ImportError: if Model Garden is not installed.
        ValueError: if a question lacks a prediction or a probability, an id is
            unknown, or a probability is not from 0 to 1.

    Example:
    ```python
    import tfeff

    question = tfeff.data.Question("q1", "Who?", "Somebody wrote it.")
    assert tfeff.datasets.squad_v2_metrics([question], {"q1": ""})["f1"] == 100.0
    ```

    Reference:
        Rajpurkar et al., "Know What You Don't Know: Unanswerable Questions for
        SQuAD", 2018, section 5.
    """
    questions = _checked(questions, predictions)
    if no_answer_probabilities is not None:
        check_mapping(
            "no_answer_probabilities", no_answer_probabilities, "ids to probabilities"
        )
        check_ids("no_answer_probabilities", questions, no_answer_probabilities)
        for name, value in no_answer_probabilities.items():
            if not isinstance(value, numbers.Real) or not 0 <= value <= 1:
                raise ValueError(
                    "`no_answer_probabilities` must be from 0 to 1. Received: "
                    f"{value!r} for {name!r}"
                )
    script = official_script("squad_evaluate_v2_0")
    return dict(
        script.evaluate(_dataset(questions), predictions, no_answer_probabilities)
    )


def official_script(name: str) -> types.ModuleType:
    """The module of Model Garden with one of the scripts, or raises ImportError."""
    try:
        return importlib.import_module(f"official.nlp.tools.{name}")
    except ImportError as error:
        raise ImportError(
            "the official scores of SQuAD need TensorFlow's Model Garden: "
            "pip install 'tfeff[garden]'"
        ) from error


def check_ids(name: str, questions: Sequence[Question], values: Mapping) -> None:
    """Raises unless `values` has one value for each question, and no others."""
    if not isinstance(values, Mapping):
        raise TypeError(f"`{name}` must be a mapping. Received: {name}={values!r}")
    # The script for 2.0 would ignore questions without a prediction.
    ids = {question.id for question in questions}
    for kind, names in (("lack", ids - set(values)), ("have", set(values) - ids)):
        if names:
            raise ValueError(
                f"`{name}` must be for the ids of `questions`. Received: they {kind} "
                f"{len(names)} {'of them' if kind == 'lack' else 'others'}, such as "
                f"{min(names)!r}"
            )


def _checked(questions, predictions):
    if isinstance(questions, SpanExamples):
        questions = questions.questions
    questions = check_list("questions", questions, Question)
    check_mapping("predictions", predictions, "ids to answers")
    if not questions:
        raise ValueError("`questions` must hold questions. Received: none")
    check_ids("predictions", questions, predictions)
    return questions


def _dataset(questions):
    """The part of SQuAD's file that the scripts read."""
    records = [
        {"id": question.id, "answers": [{"text": text} for text in question.answers]}
        for question in questions
    ]
    return [{"paragraphs": [{"qas": records}]}]
