"""Distances between student and teacher, for each example or target."""

from keras import backend, ops

from tfeff.utils.checks import shapes_agree


def state_squares(student, teacher, real, average: bool):
    """Σ_i |student_i - teacher_i|² over real positions i.

    Args:
        student, teacher: float tensors `[B, T, D]`, which may differ in dtype.
        real: tensor `[B, T]`, 1 at real tokens and 0 at padding.
        average: whether to average over the `D` features, not sum.

    Returns:
        Tensor `[B]` in the more precise dtype of the two, at least float32. All
        functions here return this dtype.
    """
    student, teacher = _precise(student, teacher)
    squares = ops.square(student - teacher)
    reduce = ops.mean if average else ops.sum
    real = ops.cast(real, squares.dtype)
    return ops.sum(reduce(squares, axis=-1) * real, axis=-1)


def map_squares(student, teacher, real):
    """Σ_ij 1/h Σ_n (student_nij - teacher_nij)² over real i and j.

    Args:
        student, teacher: attention maps `[B, h, T, T]`; if the numbers of heads differ,
            equal groups of heads are averaged in the model with more heads.
        real: as in `state_squares`.

    Raises:
        ValueError: if neither number of heads divides the other.
    """
    heads = student.shape[1], teacher.shape[1]
    if not can_be_grouped(*heads):
        raise ValueError(
            "The number of heads of one model must divide that of the other, or "
            "`attention` must be None. Received: "
            f"{heads[0]} heads in the student, {heads[1]} in the teacher"
        )
    student, teacher = (
        _average_heads(scores, min(heads)) for scores in _precise(student, teacher)
    )
    squares = ops.mean(ops.square(student - teacher), axis=1)
    real = ops.cast(real, squares.dtype)
    return ops.einsum("bts,bt,bs->b", squares, real, real)


def can_be_grouped(one: int, other: int) -> bool:
    """Whether heads of one model can be averaged in groups, one a head of the other."""
    return max(one, other) % min(one, other) == 0


def _average_heads(scores, groups):
    heads = scores.shape[1]
    if heads == groups:
        return scores
    batch, _, length, _ = ops.shape(scores)
    grouped = (batch, groups, heads // groups, length, length)
    return ops.mean(ops.reshape(scores, grouped), axis=2)


def cosine_distances(student, teacher, real):
    """Σ_i (1 - cos(student_i, teacher_i)) over real positions i.

        cos(x, y) = Σ_d x_d y_d / sqrt((Σ_d x_d² + ε) (Σ_d y_d² + ε)),   ε = 1e-12

    Args:
        student, teacher, real: as in `state_squares`, of equal widths.
    """
    student, teacher = _precise(student, teacher)
    squares = (ops.sum(ops.square(x), axis=-1) + 1e-12 for x in (student, teacher))
    norms = ops.sqrt(ops.multiply(*squares))
    distances = 1 - ops.sum(student * teacher, axis=-1) / norms
    return ops.sum(distances * ops.cast(real, distances.dtype), axis=-1)


def prediction_divergence(
    student, teacher, temperature: float, soften: str, scale: float = 1.0
):
    """Σ_c p_c (log p_c - log q_c) of softmaxes p and q; for ratings, ((y - ŷ) / s)².

    Args:
        student, teacher: logits `[B, C]` of classes, `[B, M, V]` of masked tokens, or
            `[B, T, C]` of the classes of tokens; ratings `[B]`; or a dict of logits
            `[B, T]`, such as those of the start and the end of a span.
        temperature: divisor of the logits.
        soften: whose logits are divided: `"both"` or the `"student"`'s.
        scale: float s, the unit of ratings.

    Returns:
        Tensor with a number for each target: `[B]`, `[B, M]`, `[B, T]`, or `[B, K]` of
        a dict of K outputs, in their order.

    Raises:
        ValueError: as `check_comparable`.
    """
    shapes = check_comparable(student, teacher)
    if None not in shapes:
        pairs = ((student[name], teacher[name]) for name in student)
        divergences = [_divergence(*pair, temperature, soften) for pair in pairs]
        return ops.stack(divergences, axis=-1)
    if len(shapes[None]) == 1:
        return ops.square(ops.subtract(*_precise(student, teacher)) / scale)
    return _divergence(student, teacher, temperature, soften)


def check_comparable(student, teacher) -> dict:
    """Returns the shapes of the student's outputs, as `output_shapes` does.

    Raises:
        ValueError: if the shapes are not of what `prediction_divergence` compares, or
            differ.
    """
    shapes, others = (output_shapes(x) for x in (student, teacher))
    ranks = {len(shape) for shape in shapes.values()}
    are_alike = shapes.keys() == others.keys() and all(
        shapes_agree(shape, others[name]) for name, shape in shapes.items()
    )
    if not are_alike or not ranks <= ({1, 2, 3} if None in shapes else {2}):
        raise ValueError(
            "`student` and `teacher` must have logits [B, C] of as many classes, "
            "[B, M, V] or [B, T, C] of the same tokens, logits [B, T] of the same "
            "outputs by name, or ratings [B], where `prediction` is compared. "
            f"Received: {student!r} and {teacher!r}"
        )
    return shapes


def output_shapes(outputs) -> dict:
    """Shapes of a model's outputs by name, `None` in place of the batch.

    The name is `None` where there is one output alone. An output that is no tensor gets
    a shape that no output may have.
    """
    named = outputs if isinstance(outputs, dict) else {None: outputs}
    return {
        name: (None, *getattr(output, "shape", [None] * 4)[1:])
        for name, output in named.items()
    }


def _divergence(student, teacher, temperature, soften):
    student, teacher = _precise(student, teacher)
    if soften == "both":
        teacher = teacher / temperature
    teacher = ops.log_softmax(teacher)
    student = ops.log_softmax(student / temperature)
    return ops.sum(ops.exp(teacher) * (teacher - student), axis=-1)


def _precise(student, teacher):
    """Casts both to the more precise dtype of the two, at least float32."""
    dtype = backend.result_type(student.dtype, teacher.dtype, "float32")
    return ops.cast(student, dtype), ops.cast(teacher, dtype)
