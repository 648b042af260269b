"""The map between the layers of student and teacher."""

from collections.abc import Sequence

from tfeff.utils.checks import check_integer

LAYER_MAPS = ("uniform", "top", "bottom")


def make_layer_map(
    layer_map: str | Sequence[int], student_layers: int, teacher_layers: int
) -> list[int]:
    """The teacher's layer for each layer of the student, both counted from 1.

    With M and N layers: `"uniform"` g(m) = m N / M, `"top"` g(m) = m + N - M,
    `"bottom"` g(m) = m; a list is checked and returned.

    Raises:
        ValueError: if the teacher has too few layers, M does not divide N for
            `"uniform"`, or the list has another length.
        TypeError: if an entry of the list is not an integer.
    """
    sizes = f"student's layers={student_layers}, teacher's layers={teacher_layers}"
    if not isinstance(layer_map, str):
        layers = list(layer_map) if isinstance(layer_map, Sequence) else None
        if layers is None or len(layers) != student_layers:
            raise ValueError(
                "`layer_map` as a list must have one entry a layer of the student. "
                f"Received: layer_map={layer_map!r:.80}, {sizes}"
            )
        return [check_integer("layer_map", n, 1, teacher_layers) for n in layers]
    if layer_map not in LAYER_MAPS:
        raise ValueError(
            f"`layer_map` must be a list or one of {list(LAYER_MAPS)}. "
            f"Received: layer_map={layer_map!r:.80}"
        )
    if layer_map == "uniform" and teacher_layers % student_layers:
        raise ValueError(
            "The student's layers must divide the teacher's for "
            f'`layer_map="uniform"`. Received: {sizes}'
        )
    if student_layers > teacher_layers:
        raise ValueError(
            f"The student must not have more layers than the teacher. Received: {sizes}"
        )
    if layer_map == "uniform":
        step = teacher_layers // student_layers
        return [step * (m + 1) for m in range(student_layers)]
    first = teacher_layers - student_layers if layer_map == "top" else 0
    return [first + m + 1 for m in range(student_layers)]
