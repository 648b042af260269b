"""The Hugging Face class that has a model's heads, and their tensors and settings."""

import dataclasses
from collections.abc import Mapping

import keras
import numpy as np

from tfeff.convert.config import Config
from tfeff.convert.format import Format
from tfeff.encoders import Encoder

# The words after "For" in the names of classes, by the classes of tfeff.
_KINDS = {
    "Classifier": ("SequenceClassification",),
    "Regressor": ("SequenceClassification",),
    "TokenClassifier": ("TokenClassification",),
    "SpanQA": ("QuestionAnswering", "QuestionAnsweringSimple"),
    "MultipleChoice": ("MultipleChoice",),
}
# Prefixes of tensors of heads that Hugging Face stores in the base model.
_INNER = ("pooler.", "mask_emb")


@dataclasses.dataclass(frozen=True)
class WrittenHeads:
    """The heads of a model in a format.

    Args:
        model: the name of Hugging Face's class.
        prefix: what precedes the names of the encoder's tensors in it.
        tensors: the heads' tensors by their names.
        configuration: what the heads add to the configuration.
        names: the names of the heads.
        left_out: the heads that it has no place for, and why, as a sentence; empty if
            there are none.
    """

    model: str
    prefix: str
    tensors: dict[str, np.ndarray]
    configuration: dict
    names: tuple[str, ...]
    left_out: str


def write_heads(
    form: Format,
    encoder: Encoder,
    heads: Mapping[str, Mapping[str, np.ndarray]],
    task: Mapping | None,
) -> WrittenHeads:
    """The heads of a model in a format.

    Args:
        form: the format, such as that of BERT.
        encoder: the encoder.
        heads: the arrays of each head by its name, as presets keep them.
        task: the model's configuration, as presets keep it, or `None`.

    Raises:
        ValueError: if the format has no model for the task, or not with its arguments.
    """
    different = {}
    kinds = _KINDS.get((task or {}).get("class_name", ""))
    if kinds is None:
        different = _differences(form, encoder, heads)
        kept = {name for name in different if not different[name]}
        describe = form.heads
        suffix, used = next(model for model in form.models if model[1] <= kept)
        configuration = {}
    else:
        kind = _kind(form, kinds, task)
        suffix, describe = f"For{kind}", form.tasks[kind]
        used = set(describe)
        configuration = _task_configuration(form, encoder, kind, task)
    if task is not None and task["class_name"] == "Regressor":
        heads = {**heads, "logits": _in_one_layer(heads["logits"])}
    prefix = "" if suffix == "Model" else form.prefix
    tensors = {}
    for name in sorted(used):
        variables = {
            key: keras.Variable(array)
            for key, array in heads[name].items()
            if np.ndim(array)
        }
        for weight in describe[name](variables):
            inner = weight.name.startswith(_INNER)
            # Heads of presets may be of half precision, and ratings' of double.
            tensors[prefix * inner + weight.name] = weight.tensor().astype("float32")
    return WrittenHeads(
        model=f"{form.name}{suffix}",
        prefix=prefix,
        tensors=tensors,
        configuration=configuration,
        names=tuple(sorted(used)),
        left_out=_left_out(f"{form.name}{suffix}", set(heads) - used, different),
    )


def _left_out(model, names, different):
    """The sentence about heads that a class has no place for."""
    if not names:
        return ""
    reasons = [
        f"{name} has {', '.join(different[name])}"
        for name in sorted(names)
        if different.get(name)
    ]
    return (
        f"{model} has no place for the heads {sorted(names)}, which are left out"
        f"{': ' if reasons else ''}{'; '.join(reasons)}"
    )


def _in_one_layer(logits):
    """A head of ratings s (v w + c) + m as v (s w) + (s c + m), which formats have."""
    if not {"scale", "offset"} & {*logits}:
        return logits
    # Large offsets do not fit into float16.
    kernel, bias = (
        logits[name].astype(np.result_type(logits[name].dtype, "float32"))
        for name in ("kernel", "bias")
    )
    scale, offset = logits.get("scale", 1.0), logits.get("offset", 0.0)
    return {"kernel": kernel * scale, "bias": bias * scale + offset}


def _differences(form, encoder, heads):
    """How each head differs from that of the format; none of heads that it lacks."""
    return {
        name: head.differences(heads[name])
        for name, head in form.pretraining_heads(encoder).items()
        if name in heads and name in form.heads
    }


def _kind(form, kinds, task):
    """The kind of model that the task is in the format."""
    found = [kind for kind in kinds if kind in form.tasks]
    if not found:
        raise ValueError(
            f"`source` must be a model that {form.name} of transformers has: for "
            f"{', '.join(form.tasks)}. Received: a {task['class_name']}"
        )
    return found[0]


def _task_configuration(form, encoder, kind, task):
    """The values that a task adds to the configuration.

    Raises:
        ValueError: if it cannot say all of the task's arguments.
    """
    arguments = {"pooling": "cls", "pooler_activation": "tanh"} | task["config"]
    configuration = form.task_configuration(arguments, kind) | _labels(task)
    whole = form.configuration(encoder) | configuration
    try:
        read = form.task_arguments(Config(whole, "config.json"), kind)
    except ValueError as error:
        raise ValueError(
            f"`source` must be a task that {form.name} of transformers has. {error}"
        ) from error
    read = {"pooling": "cls", "pooler_activation": "tanh"} | read
    for name in ("pooling", "pooler_activation"):
        if name in task["config"] and arguments[name] != read[name]:
            advice = ""
            if name == "pooler_activation":
                advice = (
                    f". Trained with `--{name}={read[name]}` of `tfeff finetune`, or "
                    "of `tfeff distill` on a task, it is one"
                )
            raise ValueError(
                f"`source` must be a task that {form.name} of transformers has, with "
                f"{name}={read[name]!r}. Received: {name}={arguments[name]!r}{advice}"
            )
    return configuration


def _labels(task):
    """The configuration of a task's labels."""
    kind, arguments = task["class_name"], task["config"]
    if kind == "Regressor":
        return {"num_labels": 1, "problem_type": "regression"}
    if kind not in ("Classifier", "TokenClassifier"):
        return {}
    names = arguments.get("label_names")
    labels = {"num_labels": arguments["num_classes"]}
    if names is not None:
        labels = {
            "id2label": {str(index): name for index, name in enumerate(names)},
            "label2id": {name: index for index, name in enumerate(names)},
        }
    if kind == "Classifier":
        labels["problem_type"] = "single_label_classification"
    return labels
