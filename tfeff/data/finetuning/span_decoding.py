"""From a model's logits for windows to one answer a question."""

import math
from typing import Any

import numpy as np
import tensorflow as tf

from tfeff.data.arrays import as_array
from tfeff.data.finetuning.examples import SpanAnswer
from tfeff.data.finetuning.span_features import SpanFeatures
from tfeff.data.text.flat import rows_of
from tfeff.utils.checks import check_integer, is_number

_WINDOWS_AT_ONCE = 1024  # They bound the memory for scores of all spans.


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
        no_answer_threshold: number, by how many logits the score of no answer must
            exceed that of the best span for no answer to be given; None if all
            questions have answers. For a probability p, as
            `tfeff.datasets.Dataset.metrics` gives it under this name, it is
            log(p / (1 - p)), −∞ for 0 and ∞ for 1: but for rounding, by which the
            answer that has this very probability may fall on either side.

    Returns:
        One answer for each of `features.questions`.

    Raises:
        TypeError: if `features` are others, logits no numbers, or `max_answer_tokens`
            no integer.
        ValueError: if `max_answer_tokens` is below 1; if logits have another shape than
            `features.token_ids`, or are NaN or infinite; if the threshold is no number.

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
    check_features(features)
    max_answer_tokens = check_integer("max_answer_tokens", max_answer_tokens)
    no_answer_threshold = check_threshold(no_answer_threshold)
    starts = _logits("start_logits", start_logits, features)
    ends = _logits("end_logits", end_logits, features)
    longest = min(max_answer_tokens, features.token_ids.shape[1])
    with tf.device("CPU"):
        found = [
            best_in_windows(
                starts[part], ends[part], _answerable(features, part), longest
            )
            for row in range(0, len(features), _WINDOWS_AT_ONCE)
            for part in [slice(row, row + _WINDOWS_AT_ONCE)]
        ]
        scores, first, last = (np.concatenate(parts) for parts in zip(*found))
        counts = np.bincount(
            features.question_indices, minlength=len(features.questions)
        )
        windows, best, none = best_of_questions(
            scores, starts[:, 0] + ends[:, 0], counts
        )
    answers = []
    rows = zip(features.questions, windows.numpy(), best.numpy(), none.numpy())
    for question, row, score, no_answer in rows:
        offsets = features.window_offsets(row)
        start, end = (
            int(offsets[position[row] - features.passage_positions[row], side])
            for side, position in enumerate((first, last))
        )
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


def check_features(features: SpanFeatures) -> None:
    """Raises unless they are windows of questions."""
    if not isinstance(features, SpanFeatures):
        raise TypeError(
            "`features` must be from `tfeff.data.make_span_features`. "
            f"Received: features={features!r:.80}"
        )


def check_threshold(no_answer_threshold: float | None) -> float | None:
    """Returns a number, infinity included, or None; else raises."""
    if no_answer_threshold is None:
        return None
    # NumPy and TensorFlow have numbers that are arrays without an axis.
    value: Any = no_answer_threshold
    if getattr(value, "shape", None) == ():
        number = value.numpy() if hasattr(value, "numpy") else value
        value = as_array("no_answer_threshold", number, "a number or None")[()]
    if not is_number(value) or math.isnan(value):
        raise ValueError(
            "`no_answer_threshold` must be a number or None. Received: "
            f"no_answer_threshold={no_answer_threshold!r}"
        )
    return float(value)


def _logits(name, logits, features):
    logits = as_array(name, logits, "an array of numbers", np.float64)
    if logits.shape != features.token_ids.shape:
        raise ValueError(
            f"`{name}` must have the shape {features.token_ids.shape} of the features. "
            f"Received: {logits.shape}"
        )
    if not np.isfinite(logits).all():
        raise ValueError(f"`{name}` must be finite. Received: NaN or infinity")
    return logits


def _answerable(features, part):
    """Whether each token belongs to the passage and is not white space alone."""
    tokens = np.zeros(features.token_ids[part].shape, bool)
    for row, position in enumerate(features.passage_positions[part]):
        offsets = features.window_offsets(part.start + row)
        tokens[row, position : position + len(offsets)] = offsets[:, 0] < offsets[:, 1]
    return tokens


def best_in_windows(
    start: tf.Tensor, end: tf.Tensor, answerable: tf.Tensor, max_answer_tokens: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The spans of the highest s_i + e_j, i ≤ j < i + max_answer_tokens; in graphs too.

    Of equal ones, the shortest counts, and of these the first. NaN and infinity are
    no logits of an answer.

    Args:
        start: `[W, T]`, s for each row. In float32 other spans could be equally good
            as in float64.
        end: `[W, T]`, e for each row.
        answerable: bool `[W, T]`, where spans may begin and end.
        max_answer_tokens: most tokens of a span.

    Returns:
        `[W]` each: the score, minus infinity where nothing is answerable, and the
        span's first and last position, int64.
    """
    never = tf.constant(-math.inf, start.dtype)
    start, end = (
        tf.where(answerable & tf.math.is_finite(logits), logits, never)
        for logits in (start, end)
    )
    count, width = (tf.shape(start, tf.int64)[axis] for axis in (0, 1))
    end = tf.pad(end, [[0, 0], [0, max_answer_tokens - 1]], constant_values=never)
    scores = start + _highest_of(end, max_answer_tokens)
    best = tf.reduce_max(scores, axis=1)
    # The equally good spans, few, by where they begin: of these the shortest ones.
    row, first = tf.unstack(tf.where(scores == best[:, tf.newaxis]), axis=1)
    ends = first[:, tf.newaxis] + tf.range(max_answer_tokens, dtype=tf.int64)
    ends = tf.gather(tf.gather(end, row), ends, batch_dims=1)
    spans = tf.gather(tf.gather(start, row), first[:, tf.newaxis], batch_dims=1) + ends
    is_best = spans == tf.gather(best, row)[:, tf.newaxis]
    more = tf.argmax(tf.cast(is_best, tf.int32), axis=1)
    span = tf.math.unsorted_segment_min(more * width + first, row, count)
    return best, span % width, span % width + span // width


def _highest_of(values, size):
    """The maximum over each `size` consecutive values of a row."""
    done = 1
    while done < size:
        step = min(done, size - done)
        values = tf.maximum(values[:, :-step], values[:, step:])
        done += step
    return values


def best_of_questions(
    scores: tf.Tensor, none: tf.Tensor, counts: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The best of each question's windows; in graphs too.

    Args:
        scores: `[W]`, of each window's best span, those of a question together.
        none: `[W]`, of no answer.
        counts: `[N]`, windows of each question, 1 at least.

    Returns:
        `[N]` each: the window of the best span, of equal ones the first, int64; its
        score; and the least score of no answer.
    """
    scores = tf.convert_to_tensor(scores)
    question, size = rows_of(counts), tf.size(counts)
    finite = tf.maximum(scores, scores.dtype.min)  # The operation's lowest.
    best = tf.math.unsorted_segment_max(finite, question, size)
    window = tf.range(tf.size(scores, tf.int64))
    window = tf.where(finite == tf.gather(best, question), window, tf.int64.max)
    window = tf.math.unsorted_segment_min(window, question, size)
    none = tf.math.unsorted_segment_min(none, question, size)
    return window, tf.gather(scores, window), none
