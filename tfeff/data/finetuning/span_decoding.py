"""From a model's logits for windows to one answer a question."""

import math

import numpy as np

from tfeff.data.finetuning.examples import SpanAnswer
from tfeff.data.finetuning.span_features import SpanFeatures
from tfeff.utils.checks import check_integer


def best_spans(
    features: SpanFeatures,
    start_logits: np.ndarray,
    end_logits: np.ndarray,
    max_answer_tokens: int = 30,
    no_answer_threshold: float | None = None,
) -> tuple[SpanAnswer, ...]:
    """The best answer to each question over all its windows.

    A span i … j of a window's passage, i ≤ j < i + max_answer_tokens, scores
    s_i + e_j; no answer scores the least s_0 + e_0 of the question's windows, 0 being
    `[CLS]`. The answer is the span with the highest score, or none where no answer
    scores higher by more than the threshold. The text is cut out of the passage.

    Args:
        features: from `make_span_features`.
        start_logits: `[N, T]`, s for each row.
        end_logits: `[N, T]`, e for each row.
        max_answer_tokens: most tokens of an answer.
        no_answer_threshold: None if all questions have answers.

    Returns:
        One answer for each of `features.questions`.

    Raises:
        ValueError: if logits have another shape than `features.token_ids`, or are not
            numbers.

    Example:
    ```python
    import numpy as np
    import tfeff

    question = tfeff.data.Question("q1", "Who?", "Ada wrote it.", spans=((0, 3),))
    tokenizer = tfeff.data.train_tokenizer(["Who wrote it? Ada."], 18)
    features = tfeff.data.make_span_features([question], tokenizer, sequence_length=40)
    positions = np.arange(40)
    starts = positions == features.start_positions[:, None]
    ends = positions == features.end_positions[:, None]
    (answer,) = tfeff.data.best_spans(features, 5.0 * starts, 5.0 * ends)
    assert (answer.text, answer.start, answer.end) == ("Ada", 0, 3)
    ```

    Reference:
        Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers for
        Language Understanding", 2019, sections 4.2 and 4.3.
    """
    max_answer_tokens = check_integer("max_answer_tokens", max_answer_tokens)
    starts = _logits("start_logits", start_logits, features)
    ends = _logits("end_logits", end_logits, features)
    count = len(features.questions)
    best, none = [(-math.inf, 0, 0)] * count, np.full(count, math.inf)
    for row, index in enumerate(features.question_indices):
        none[index] = min(none[index], starts[row, 0] + ends[row, 0])
        found = _best_in_window(
            features.window_offsets(row),
            starts[row, features.passage_positions[row] :],
            ends[row, features.passage_positions[row] :],
            max_answer_tokens,
        )
        if found[0] > best[index][0]:
            best[index] = found
    answers = []
    for question, (score, start, end), no_answer in zip(features.questions, best, none):
        if no_answer_threshold is not None and no_answer - score > no_answer_threshold:
            start = end = 0
        answers.append(
            SpanAnswer(
                id=question.id,
                text=question.passage[start:end],
                start=start,
                end=end,
                score=float(score),
                no_answer_probability=float(
                    0.5 + 0.5 * np.tanh((no_answer - score) / 2)
                ),
            )
        )
    return tuple(answers)


def _logits(name, logits, features):
    logits = np.asarray(logits, np.float64)
    if logits.shape != features.token_ids.shape:
        raise ValueError(
            f"`{name}` must have the shape {features.token_ids.shape} of the features. "
            f"Received: {logits.shape}"
        )
    if not np.isfinite(logits).all():
        raise ValueError(f"`{name}` must be finite. Received: NaN or infinity")
    return logits


def _best_in_window(offsets, starts, ends, max_tokens):
    """(score, first character, character behind the last) of a window's best span."""
    visible = offsets[:, 0] < offsets[:, 1]
    starts = np.where(visible, starts[: len(offsets)], -math.inf)
    ends = np.where(visible, ends[: len(offsets)], -math.inf)
    best = -math.inf, 0, 0
    for more in range(min(max_tokens, len(offsets))):
        scores = starts[: len(offsets) - more] + ends[more:]
        first = int(scores.argmax())
        if scores[first] > best[0]:
            span = offsets[first, 0], offsets[first + more, 1]
            best = float(scores[first]), int(span[0]), int(span[1])
    return best
