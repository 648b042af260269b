"""Steps between evaluations."""

import pytest

from tfeff.recipes.intervals import eval_every


@pytest.mark.parametrize(
    ("steps", "stages", "every"),
    [(1000, 1, 200), (60, 1, 60), (60, 3, 20), (250, 1, 125), (1, 1, 1), (7, 4, 1)],
)
def test_evaluations_divide_the_steps(steps, stages, every):
    assert eval_every(steps, None, stages) == every


@pytest.mark.parametrize(("steps", "stages"), [(1009, 1), (2, 3)])
def test_steps_without_a_good_divisor_are_named(steps, stages):
    with pytest.raises(ValueError, match=f"`eval_every` be given.*steps={steps}"):
        eval_every(steps, None, stages)


def test_without_a_step_there_is_no_near_divisor():
    with pytest.raises(ValueError, match="at least 3 and have a divisor, to evaluate"):
        eval_every(2, None, 3)


def test_steps_to_keep_are_at_evaluations():
    assert eval_every(1000, None, keep_steps=(500,)) == 125
    assert eval_every(600, None, keep_steps=(300, 450)) == 150
    with pytest.raises(ValueError, match=r"steps=1000, keep_steps=\(501,\)"):
        eval_every(1000, None, keep_steps=(501,))
    assert eval_every(1000, None, 2, keep_steps=(500,), switch_steps=[120]) == 20
    with pytest.raises(ValueError, match=r"steps=1000, switch_steps=\(50, 120\)$"):
        eval_every(1000, None, 3, keep_steps=(), switch_steps=(50, 120))


def test_evaluations_that_are_given_divide_the_steps():
    assert eval_every(60, 20) == 20
    with pytest.raises(ValueError, match="`steps` must be a multiple of `eval_every`"):
        eval_every(60, 50)
