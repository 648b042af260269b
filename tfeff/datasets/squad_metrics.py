"""The scores of SQuAD 1.1 and 2.0, as the official scripts compute them.

Texts are compared without capitals, punctuation, articles and surplus white space. They
are equal (`exact`), or share words (`f1`): with `c` words in common, counted with
repetitions, of `p` predicted and `g` right ones,

    F1 = 2 c / (p + g)
"""

import collections
import re
import statistics
import string
from collections.abc import Mapping, Sequence

from tfeff.data.finetuning.examples import Question, SpanExamples, check_questions
from tfeff.datasets.checks import check_different
from tfeff.utils.checks import check_mapping, is_number

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")


def squad_v1_metrics(
    questions: SpanExamples | Sequence[Question], predictions: Mapping[str, str]
) -> dict[str, float]:
    """Exact match and F1 of SQuAD 1.1, which MRQA also uses.

        exact_match = 100/N Σ_q max_a [words(p_q) = words(a)]
        f1 = 100/N Σ_q max_a 2 c(p_q, a) / (|words(p_q)| + |words(a)|)

    over `N` questions, the best over all answers `a` of each. The words of a text are
    those without capitals, punctuation and articles; a prediction `p` has `c` of them
    in common with an answer, counted with repetitions.

    Args:
        questions: all with answers.
        predictions: the text of the answer for each question's id.

    Returns:
        `"f1"` and `"exact_match"`, in percent.

    Raises:
        ValueError: if a question lacks answers or a prediction, a prediction has an
            unknown id, or two questions have the same.
        TypeError: if `questions` are none, or a prediction is no string.

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
    exact, f1 = [], []
    for question in questions:
        found = _words(predictions[question.id])
        answers = [_words(answer) for answer in question.answers]
        exact.append(max(found == answer for answer in answers))
        # The script's first version gives 0 for two texts without words.
        f1.append(max(_f1(found, answer) for answer in answers) if found else 0)
    return {"f1": _percent(f1), "exact_match": _percent(exact)}


def squad_v2_metrics(
    questions: SpanExamples | Sequence[Question],
    predictions: Mapping[str, str],
    no_answer_probabilities: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """The metrics of SQuAD 2.0, in which "" means that a question has no answer.

        f1 = 100/N Σ_q f1_q
        best_f1 = max_θ 100/N Σ_q (f1_q if P_q ≤ θ else [q has no answer])
        pr_f1_ap = 100 Σ_k precision_k (recall_k − recall_{k−1})

    with `f1_q` of a question as of `squad_v1_metrics`, where a question without answers
    has the answer "", and the probability `P_q` that it has none; precision and recall
    are those of answering the questions with the `k` lowest `P_q`. `exact` is likewise.
    As in the script, the best of questions with equal probabilities is sought one by
    one, in their order, though no threshold lies between them.

    Args:
        questions: with and without answers.
        predictions: the text of the answer, or "", for each question's id.
        no_answer_probabilities: the probability that each has no answer; for the best
            threshold and the curves of precision and recall.

    Returns:
        The script's own names: `"f1"` and `"exact"` of the predictions as they are,
        with `"HasAns_…"` and `"NoAns_…"` for the questions with and without answers;
        `"best_f1"` and `"best_exact"` with the threshold on the probabilities that
        is best for these very questions; and more. Scores are in percent.

    Raises:
        ValueError: if a question lacks a prediction or a probability, an id is
            unknown, two questions have the same, or a probability is not from 0 to 1.
        TypeError: if `questions` are none, or a prediction is no string.

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
            if not is_number(value) or not 0 <= value <= 1:
                raise ValueError(
                    "`no_answer_probabilities` must be from 0 to 1. Received: "
                    f"{value!r} for {name!r}"
                )
    probabilities = no_answer_probabilities or dict.fromkeys(predictions, 0.0)
    exact, f1 = {}, {}
    for question in questions:
        found = _words(predictions[question.id])
        answers = [words for words in map(_words, question.answers) if words] or [[]]
        exact[question.id] = float(max(found == answer for answer in answers))
        f1[question.id] = max(_f1(found, answer) for answer in answers)
    has_answer = {question.id: bool(question.answers) for question in questions}
    groups = {
        "": list(has_answer),
        "HasAns_": [id for id, has in has_answer.items() if has],
        "NoAns_": [id for id, has in has_answer.items() if not has],
    }
    scores = {
        f"{group}{name}": value
        for group, ids in groups.items()
        if ids
        for name, value in (
            ("exact", _percent(exact[id] for id in ids)),
            ("f1", _percent(f1[id] for id in ids)),
            ("total", len(ids)),
        )
    }
    ranked = sorted(probabilities, key=probabilities.__getitem__)
    for name, values in (("exact", exact), ("f1", f1)):
        best, threshold = _with_threshold(
            predictions, values, probabilities, has_answer, ranked
        )
        scores |= {f"best_{name}": best, f"best_{name}_thresh": threshold}
    if groups["HasAns_"]:
        oracle = {id: float(has) for id, has in has_answer.items()}
        for name, values in (("exact", exact), ("f1", f1), ("oracle", oracle)):
            scores[f"pr_{name}_ap"] = _average_precision(
                values, probabilities, has_answer, ranked
            )
    return scores


def check_predictions(questions: Sequence[Question], predictions: Mapping) -> None:
    """Raises unless `predictions` has one text for each question, and no others."""
    check_mapping("predictions", predictions, "ids to answers")
    check_ids("predictions", questions, predictions)
    for id, text in predictions.items():
        if not isinstance(text, str):
            raise TypeError(
                "`predictions` must be texts, strings. Received: "
                f"{text!r:.80} for {id!r}"
            )


def check_ids(name: str, questions: Sequence[Question], values: Mapping) -> None:
    """Raises unless `values` has one value for each question, and no others."""
    check_different("questions", (q.id for q in questions), "have different ids")
    # The script for 2.0 would ignore questions without a prediction.
    ids = {question.id for question in questions}
    for kind, names in (("lack", ids - set(values)), ("have", set(values) - ids)):
        if names:
            raise ValueError(
                f"`{name}` must be for the ids of `questions`. Received: they {kind} "
                f"{len(names)} {'of them' if kind == 'lack' else 'others'}, such as "
                f"{min(map(repr, names))}"
            )


def _checked(questions, predictions) -> Sequence[Question]:
    questions = check_questions(questions)
    check_predictions(questions, predictions)
    return questions


def _words(text):
    """The words of a text that are compared."""
    return _ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def _f1(found, right):
    if not found or not right:
        return float(found == right)
    common = collections.Counter(found) & collections.Counter(right)
    return 2 * common.total() / (len(found) + len(right))


def _percent(values):
    return 100.0 * statistics.fmean(values)


def _with_threshold(predictions, scores, probabilities, has_answer, ranked):
    """The highest mean score, and the highest probability that is still an answer.

    All answers above a threshold are withheld. At first that is all of them; then they
    are given one by one, the surest first.
    """
    total = best = sum(not has for has in has_answer.values())
    threshold = 0.0
    for id in ranked:
        total += scores[id] if has_answer[id] else -bool(predictions[id])
        if total > best:
            best, threshold = total, probabilities[id]
    return 100.0 * best / len(scores), threshold


def _average_precision(scores, probabilities, has_answer, ranked):
    """The area below the steps of precision over recall, from one threshold on."""
    area = right = recall = 0.0
    for rank, id in enumerate(ranked, 1):
        right += scores[id] * has_answer[id]
        following = ranked[rank] if rank < len(ranked) else None
        if following is None or probabilities[following] != probabilities[id]:
            reached = right / sum(has_answer.values())
            area += right / rank * (reached - recall)
            recall = reached
    return 100.0 * area
