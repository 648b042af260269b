"""What two models must have in common to be compared."""

import itertools
from collections.abc import Mapping, Sequence

import keras

from tfeff.data.finetuning.columns import are_reordered
from tfeff.data.text.tokenizers import check_tokenizer, tokenizer_fingerprint
from tfeff.encoders import Encoder
from tfeff.encoders.encoder import encoder_of
from tfeff.layers.attention import accepts, declares
from tfeff.layers.record_layers import PROBABILITIES, SCORES
from tfeff.objectives.distillation.losses import can_be_grouped
from tfeff.utils.naming import named_as


def check_maps(role: str, encoder: Encoder, kind: str) -> None:
    """Raises if a layer of the encoder has no attention map of this kind."""
    for index, block in enumerate(encoder.blocks):
        kinds = _map_kinds(block.attention)
        if kind in kinds:
            continue
        what, setting = "no attention map that can be compared", "None"
        if kinds:
            what = "no scores before a softmax"
            setting = " or ".join(f'"{other}"' for other in kinds)
        raise ValueError(
            f"`attention` must be {setting} here: "
            f"{type(block.attention).__name__} in layer {index + 1} of the {role} has "
            f'{what}. Received: attention="{kind}"'
        )


def check_heads(student: Encoder, teacher: Encoder, layer_map: Sequence[int]) -> None:
    """Raises if the heads of layers that are compared cannot be averaged in groups."""
    for m, n in enumerate(layer_map, start=1):
        one, other = _heads(student.blocks[m - 1]), _heads(teacher.blocks[n - 1])
        if not can_be_grouped(one, other):
            raise ValueError(
                "`attention` must be None where the number of heads of one model does "
                f"not divide that of the other. Received: {one} in layer {m} of the "
                f"student, {other} in layer {n} of the teacher"
            )


def _heads(block):
    """The heads of a layer's maps; 1 of an attention that does not tell."""
    return getattr(block.attention, "output_heads", 1)


def common_maps(student: keras.Model, teacher: keras.Model) -> str | None:
    """The attention maps that `Distillation` can compare of two models.

    Args:
        student, teacher: as for `Distillation`.

    Returns:
        `"scores"` if every layer of both has scores before a softmax, else
        `"probabilities"` if every layer has an attention map, else `None`; also where
        numbers of heads do not divide each other.

    Raises:
        TypeError, ValueError: as `Distillation`, of models that cannot be compared.

    Example:

    >>> import tfeff
    >>> sizes = {"vocabulary_size": 100, "num_layers": 1, "hidden_dim": 16}
    >>> bert = tfeff.encoders.build("bert_tiny", **sizes)
    >>> shatter = tfeff.encoders.build("shatter_tiny", **sizes)
    >>> common_maps(shatter, bert)
    'probabilities'
    """
    one, other = (encoder.blocks for encoder in paired_encoders(student, teacher))
    heads = ({*map(_heads, blocks)} for blocks in (one, other))
    if not all(can_be_grouped(*pair) for pair in itertools.product(*heads)):
        return None
    kinds = [_map_kinds(block.attention) for block in (*one, *other)]
    for kind in (SCORES, PROBABILITIES):
        if all(kind in of_block for of_block in kinds):
            return kind
    return None


def _map_kinds(attention: keras.layers.Layer) -> tuple[str, ...]:
    comparable = declares(attention, "has_comparable_scores", undeclared=True)
    if not comparable or not accepts(attention, "return_attention_scores"):
        return ()
    if declares(attention, "has_softmax_scores"):
        return (SCORES, PROBABILITIES)
    return (PROBABILITIES,)


def paired_encoders(student, teacher) -> tuple[Encoder, Encoder]:
    """The encoders of student and teacher; raises if they cannot be compared."""
    encoders = []
    for name, model in (("student", student), ("teacher", teacher)):
        encoder = encoder_of(model)
        if not isinstance(model, keras.Model) or encoder is None:
            raise TypeError(
                f"`{name}` must be a `tfeff.encoders.Encoder`, or a task's model with "
                f"one as `.encoder`. Received: {name}={model!r:.80}"
            )
        if not getattr(model, "calls_encoder", True):
            raise TypeError(
                f"`{name}` must call its encoder, whose layers are compared. A "
                f"{type(model).__name__} runs its blocks on two streams. "
                f"Received: {name}={model!r:.80}"
            )
        encoders.append(encoder)
    received = f"Received: student={student!r:.80}, teacher={teacher!r:.80}"
    if isinstance(student, Encoder) != isinstance(teacher, Encoder):
        raise TypeError(
            "`student` and `teacher` must both be encoders or both tasks' models. "
            + received
        )
    if encoders[0] is encoders[1]:
        raise ValueError(
            "`student` and `teacher` must not share an encoder. " + received
        )
    sizes = [encoder.vocabulary_size for encoder in encoders]
    if sizes[0] != sizes[1]:
        raise ValueError(
            "`student` and `teacher` must have the same vocabulary. Received: "
            f"{sizes[0]} ids in the student, {sizes[1]} in the teacher"
        )
    return encoders[0], encoders[1]


def check_inputs(student, teacher) -> None:
    """Raises unless the student's inputs have all that the teacher reads by name."""
    if not isinstance(student.input, Mapping):
        raise TypeError(
            "`student` must have a dict of inputs by name, such as `token_ids`. "
            f"Received: student={student!r:.80}, inputs {student.input!r:.80}"
        )
    if not isinstance(teacher.input, Mapping):
        return
    ranks = [
        {name: len(x.shape) for name, x in model.input.items()}
        for model in (student, teacher)
    ]
    if not ranks[1].items() <= ranks[0].items():
        raise TypeError(
            "`teacher` must have no other inputs than the student. Received, with the "
            f"numbers of their axes: {ranks[1]} of the teacher, {ranks[0]} of the "
            "student"
        )


def check_names_of_classes(student, teacher) -> None:
    """Raises if a name is that of another class in each model."""
    names = [getattr(model, "label_names", None) or () for model in (student, teacher)]
    if are_reordered(*names):
        raise ValueError(
            "`student` and `teacher` must have their `label_names` in one order where "
            f"`prediction` is compared. Received: {names[0]!r:.80} of the student, "
            f"{names[1]!r:.80} of the teacher"
        )


def check_tokenizers(tokenizers) -> None:
    """Raises unless student's and teacher's tokenizers give the same ids."""
    if not isinstance(tokenizers, Sequence) or len(tokenizers) != 2:
        raise TypeError(
            "`tokenizers` must be those of student and teacher. "
            f"Received: tokenizers={tokenizers!r:.80}"
        )
    with named_as(tokenizer="tokenizers"):
        for tokenizer in tokenizers:
            check_tokenizer(tokenizer)
    student, teacher = (tokenizer_fingerprint(tokenizer) for tokenizer in tokenizers)
    if student != teacher:
        raise ValueError(
            "`tokenizers` of student and teacher must be the same. Received: "
            f"tokenizers with hashes {student} and {teacher}"
        )
