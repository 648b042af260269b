"""What the example scripts share: errors in one line, and numbers from flags."""

import sys

import pytest

import tfeff
from tests.recipes.test_pretraining import REPOSITORY


@pytest.fixture
def command(monkeypatch):
    """The module beside the scripts."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples"))
    import command

    return command


def run(command, main, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script"])
    with pytest.raises(SystemExit) as end:
        command.run(main)
    return end.value.code


@pytest.mark.parametrize(
    "main",
    [
        lambda _: tfeff.encoders.build("bert_tini", vocabulary_size=9),
        lambda _: tfeff.data.load_tokenizer("nowhere.spm"),
        lambda _: sys.modules["command"].numbers("rates", ["fast"]),
    ],
)
def test_an_error_of_input_takes_one_line(command, main, monkeypatch, capsys):
    assert run(command, main, monkeypatch) == 1
    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    assert line.startswith("error: ") and not output.out


def test_an_error_from_below_keeps_its_trace(command, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script"])
    with pytest.raises(ValueError, match="unpack|shape|json|Expecting"):
        command.run(lambda _: __import__("json").loads("{"))


def test_a_script_that_ends_well_exits_with_0(command, monkeypatch):
    assert run(command, lambda _: None, monkeypatch) in (None, 0)


def test_weights_that_are_not_finite_are_an_error(command, monkeypatch, capsys):
    import keras

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    command.check_finite(model)
    model.weights[0].assign([[float("inf")]])
    assert run(command, lambda _: command.check_finite(model), monkeypatch) == 1
    assert "has diverged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("steps", "least", "every"),
    [(1000, 1, 200), (60, 1, 60), (60, 3, 20), (250, 1, 125), (1, 1, 1), (7, 4, 1)],
)
def test_evaluations_divide_the_steps(command, steps, least, every):
    assert command.eval_every(steps, least) == every


@pytest.mark.parametrize(("steps", "least"), [(1009, 1), (2, 3)])
def test_steps_without_a_good_divisor_are_named(command, steps, least):
    with pytest.raises(ValueError, match=f"--eval_every be given.*--steps={steps}"):
        command.eval_every(steps, least)


def test_values_of_overrides(command):
    assert command.override("num_layers=4") == ("num_layers", 4)
    assert command.override("attention=one_head") == ("attention", "one_head")
    with pytest.raises(ValueError, match="NAME=VALUE"):
        command.override("num_layers")


def test_a_missing_package_takes_one_line(command, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "official.nlp.tools.squad_evaluate_v1_1", None)
    squad = tfeff.datasets.get("SQuAD1.1")
    assert run(command, lambda _: squad.check_installed(), monkeypatch) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and line.endswith("pip install 'tfeff[garden]'")


def test_data_sets_of_other_kinds_are_refused_by_name(command):
    kinds = tfeff.data.TextExamples, tfeff.data.ChoiceExamples
    assert command.dataset("RACE", *kinds) is tfeff.datasets.get("RACE")
    with pytest.raises(ValueError, match=r"one of \['CoLA'.*'MultiRC'\] here.*=RACE, "):
        command.dataset("RACE", tfeff.data.TextExamples)
    with pytest.raises(ValueError, match=r"Did you mean 'RACE'\?"):
        command.dataset("rac", *kinds)
