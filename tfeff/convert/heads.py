"""The heads of a checkpoint: of pretraining, and of a fine-tuned model."""

import dataclasses
import re
import warnings

import numpy as np

from tfeff.convert.config import Config
from tfeff.convert.sentence_modules import find_sentence_embedding
from tfeff.convert.sources import Source
from tfeff.convert.weights import NotKept, Weight
from tfeff.data.finetuning.columns import check_label_names
from tfeff.encoders import Encoder
from tfeff.objectives.heads import Head
from tfeff.objectives.objective import Objective
from tfeff.tasks import (
    Classifier,
    MultipleChoice,
    Regressor,
    SpanQA,
    TokenClassifier,
)

# The words after "For" in the names of Hugging Face's pretraining models.
_PRETRAINING = ("", "MaskedLM", "PreTraining", "NextSentencePrediction")


@dataclasses.dataclass(frozen=True)
class Heads:
    """The heads of a checkpoint.

    Args:
        task: the fine-tuned model that they make with the encoder, or `None`.
        heads: by name.
        weights: their weights with the tensors' names.
        left_out: why heads of the checkpoint are not among them.
    """

    task: Objective | None
    heads: dict[str, Head]
    weights: list[Weight]
    left_out: list[str]


def find_heads(found: Source, encoder: Encoder, must_be_task: bool = False) -> Heads:
    """The heads of a checkpoint, not yet assigned.

    Args:
        found: the checkpoint.
        encoder: its encoder.
        must_be_task: whether to raise if it is a fine-tuned model that tfeff does not
            have.

    Raises:
        ValueError: if a fine-tuned model's configuration is damaged, or has no task.
    """
    task, describe, errors = None, {}, []
    try:
        task, describe = _find_task(found, encoder)
    except NotKept as error:
        errors.append(error)
    try:
        task = task or find_sentence_embedding(found, encoder)
    except NotKept as error:
        errors.append(error)
    if task is None and errors and must_be_task:
        raise errors[0]
    heads, weights, left_out = {}, [], list(map(str, errors))
    if task is not None and found.family == "xlnet":
        warnings.warn(
            f"XLNet's {type(task).__name__} was trained on rows that end in <sep> "
            "<cls>. Those of tfeff's features are <cls> … <sep>, of which it computes "
            "other numbers than the original of its own",
            stacklevel=1,
        )
    if task is not None:
        heads = task.heads()
        for name, head in heads.items():
            weights += describe[name](head.weights)
    is_tied = found.config.get("tie_word_embeddings", True)
    expected = found.format.heads_of(_kind(found))
    for name, head in found.format.pretraining_heads(encoder).items():
        if name in heads or name not in found.format.heads:
            continue
        own = list(found.format.heads[name](head.weights))
        names = {weight.name for weight in own}
        if lacking := sorted(names - set(found.tensors)):
            # Weights that every encoder has are no sign of a head.
            signs = set(found.tensors) - set(found.format.unused(encoder))
            if name in expected or names & signs:
                left_out.append(f"{name} lacks {lacking}")
            continue
        if name in ("masked_lm", "permutation_lm"):
            if not is_tied:
                left_out.append(
                    f"{name} has a table of its own: tie_word_embeddings=False"
                )
                continue
            if others := _untied(found, encoder, own):
                left_out.append(f"{name} has values of its own: {', '.join(others)}")
                continue
        heads[name] = head
        weights += own
    return Heads(task, heads, weights, left_out)


def _untied(found, encoder, own):
    """Names of a head's tensors that must equal those that are used, and do not.

    Formats have the table of the output, and its bias, once more. The configuration
    need not say that they were trained apart, and Hugging Face's version 5 uses them.
    """
    weights = [*found.format.weights(encoder), *own]
    of_heads = _tensors_of(found, "language model head")
    copies = sorted(set(of_heads) - {weight.name for weight in weights})
    table = encoder.embedding.token_embedding.embeddings
    origins = [
        found.tensors[weight.name]
        for weight in weights
        if weight.name in found.tensors  # What is missing is an error of `assign`.
        and (weight.variable is table or weight.name.endswith("bias"))
    ]
    return [
        name
        for name in copies
        if not any(_equal(found.tensors[name], origin) for origin in origins)
    ]


def _equal(tensor, other):
    """Whether two tensors of a checkpoint have the same values."""
    is_alike = tuple(tensor.shape) == tuple(other.shape)
    return is_alike and np.array_equal(tensor.read(), other.read())


def _find_task(found, encoder):
    """The fine-tuned model and the descriptions of its heads; `None, {}` for others."""
    config, kind = found.config, _kind(found)
    if kind in _PRETRAINING:
        if own := _task_tensors(found):
            raise NotKept(
                f"{config.path!r} names no fine-tuned model that has {own}. Write its "
                "class into 'architectures'"
            )
        return None, {}
    if kind not in found.format.tasks:
        raise NotKept(
            f"tfeff has no model like {_architecture(config)}. Of this family it has "
            f"those for {', '.join(found.format.tasks) or 'nothing'}"
        )
    describe = found.format.tasks[kind]
    try:
        arguments = found.format.task_arguments(config, kind)
    except ValueError as error:
        raise NotKept(f"{_architecture(config)}: {error}") from error
    task = _make_task(kind, encoder, config, arguments)
    names = [w.name for n, h in task.heads().items() for w in describe[n](h.weights)]
    if not any(name in found.tensors for name in names):
        raise NotKept(f"{found.directory!r} has none of its tensors: {names}")
    return task, describe


def _kind(found):
    """The kind of the model by the name of its class."""
    return found.format.kind_of(_architecture(found.config))


def _architecture(config):
    """The name of the first of the model's classes; empty if there is none."""
    names = config.get("architectures", None)
    names = [names] if isinstance(names, str) else names
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if names is not None and not is_list:
        raise ValueError(
            f"In {config.path!r}: `architectures` must be a list of strings. "
            f"Received: architectures={names!r}"
        )
    return names[0] if names else ""


def _task_tensors(found):
    """The names of the tensors that a fine-tuned model's head has in the format."""
    if not found.format.tasks:
        return []
    return _tensors_of(found, "task head")


def _tensors_of(found, ending):
    """The names of the tensors of kinds that end so, among those without a weight."""
    kinds = found.format.left_out.items()
    patterns = [pattern for pattern, kind in kinds if kind.endswith(ending)]
    return sorted(n for n in found.tensors if any(re.match(p, n) for p in patterns))


def _make_task(kind, encoder, config, arguments):
    """The task for a kind of fine-tuned model."""
    if kind == "MultipleChoice":
        return MultipleChoice(encoder, **arguments)
    if kind.startswith("QuestionAnswering"):
        return SpanQA(encoder)
    count, names = _labels(config)
    make = TokenClassifier
    if kind == "SequenceClassification":
        make = Classifier
        problem = config.get("problem_type", None)
        if problem == "regression" or (problem is None and count == 1):
            if count == 1:
                return Regressor(encoder, **arguments)
            raise NotKept(
                f"{config.path!r} asks for problem_type={problem!r} of {count} "
                "numbers. A `Regressor` of tfeff gives one"
            )
        if problem not in (None, "single_label_classification"):
            raise NotKept(
                f"{config.path!r} asks for problem_type={problem!r}. A `Classifier` of "
                "tfeff gives one label"
            )
    if count == 1:
        raise NotKept(
            f"{config.path!r} has one label. A `{make.__name__}` of tfeff has 2 or more"
        )
    return make(encoder, count, label_names=names, **arguments)


def _labels(config: Config) -> tuple[int, tuple[str, ...] | None]:
    """The number of labels, and their names if there are any."""
    names = config.get("id2label", None)
    if names is None:
        for key in ("num_labels", "_num_labels"):
            if config.get(key, None) is not None:
                return config.integer(key), None
        return 2, None
    is_dict = isinstance(names, dict)
    keys = [str(index) for index in range(len(names))] if is_dict else []
    if not is_dict or set(names) != set(keys) or not keys:
        raise ValueError(
            f"In {config.path!r}: `id2label` must name the labels 0, 1, and so on. "
            f"Received: id2label={names!r}"
        )
    names = [names[key] for key in keys]
    try:
        return len(names), check_label_names(names)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"In {config.path!r}: `id2label` must have different strings as names. "
            f"Received: {names!r}"
        ) from error
