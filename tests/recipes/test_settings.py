"""One dataclass is the source of flags, help and `config.json`."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.subjects.settings import Example
from tfeff.recipes import (
    AnswerSettings,
    EmbedSettings,
    FinetuneSettings,
    PretrainSettings,
    ReportSettings,
    StackSettings,
)
from tfeff.recipes.fields import fields_of, parse_argument, setting
from tfeff.recipes.settings import settings


def test_values_have_the_types_of_their_fields():
    values = Example(folder="x", rate=1, sizes=[4], override={"a": 1})
    assert isinstance(values.rate, float) and values.sizes == (4,)
    assert values.override == {"a": 1} and values.every is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        values.rate = 0.1
    with pytest.raises(TypeError, match="folder"):
        Example()


@pytest.mark.parametrize(
    ("error", "message", "arguments"),
    [
        (ValueError, r"`kind` must be one of \['a', 'b'\].*kind='c'", {"kind": "c"}),
        (TypeError, "`steps` must be an integer.*steps=2.5", {"steps": 2.5}),
        (TypeError, "`steps` must be an integer.*steps=True", {"steps": True}),
        (ValueError, "`steps` must be an integer of at least 1", {"steps": 0}),
        (ValueError, "`every` must be an integer of at least 1", {"every": 0}),
        (ValueError, "`rate` must be a finite number of at least 0", {"rate": -0.1}),
        (ValueError, "`rate` must .* of at most 1. Received: rate=2", {"rate": 2}),
        (ValueError, "`rate` must be a finite number", {"rate": float("nan")}),
        (TypeError, "`rate` must be a finite number", {"rate": "fast"}),
        (ValueError, "`share` must .* above 0 and below 1. .*=0$", {"share": 0}),
        (ValueError, "`share` must .* above 0 and below 1. .*=1.0", {"share": 1.0}),
        (TypeError, "`sizes` must be a list of `int`. .*'3'", {"sizes": "3"}),
        (TypeError, "`sizes` must be an integer .*sizes=True", {"sizes": True}),
        (TypeError, "`sizes` must be an integer .*sizes=3.5", {"sizes": 3.5}),
        (TypeError, "`sizes` must be an integer", {"sizes": np.ones((1, 2), int)}),
        (ValueError, "`sizes` must be an integer of at least 1", {"sizes": [4, 0]}),
        (TypeError, "`names` must be a list of `str`.*names=b'ab'", {"names": b"ab"}),
        (TypeError, "`names` must be a string .* not empty.*names=''", {"names": ""}),
        (TypeError, "`names` must be a string .*names=3", {"names": [3]}),
        (TypeError, "`names` must be a string .* not empty", {"names": ["a", ""]}),
        (TypeError, "`folder` must be a string .*folder=''", {"folder": ""}),
        (ValueError, "`sizes` must be a list of at least one", {"sizes": []}),
        (TypeError, "`exact` must be a bool. Received: exact=1", {"exact": 1}),
        (TypeError, "`override` must be a mapping", {"override": ["a=1"]}),
        (TypeError, "`override` must .* JSON .*{1: 2}", {"override": {1: 2}}),
        (TypeError, "`override` must .* JSON", {"override": {"a": {"full"}}}),
        (TypeError, "`override` .*int64", {"override": {"a": np.int64(1)}}),
    ],
)
def test_wrong_values_are_named(error, message, arguments):
    with pytest.raises(error, match=message):
        Example(**{"folder": "x"} | arguments)


def test_a_number_and_a_string_stand_for_a_tuple_of_one():
    assert Example(folder="x", sizes=3) == Example(folder="x", sizes=(3,))
    assert Example.upgraded({"sizes": 3})["sizes"] == [3]
    for sizes in (np.array([3, 4]), np.array(3), range(3, 5)):
        expected = (3, 4)[: np.size(sizes)]
        found = Example(folder="x", sizes=sizes).sizes
        assert found == expected and all(type(size) is int for size in found)
    for names in ("ab", Path("ab")):
        assert Example(folder="x", names=names) == Example(folder="x", names=("ab",))
    assert PretrainSettings(run_dir="x", corpus="a/*.txt").corpus == ("a/*.txt",)


def test_the_docstring_lists_the_settings():
    assert "    rate: How fast." in Example.__doc__
    assert Example.__doc__.startswith("An example of all kinds of settings.")


def test_own_settings_stand_before_those_of_bases():
    @settings
    class Further(Example):
        """Has a setting more, and another default."""

        more: int = setting("More.", 0)
        steps: int = setting("How many.", 20, minimum=1)

    names = [field.name for field in fields_of(Further)]
    others = [field.name for field in fields_of(Example) if field.name != "steps"]
    assert names == ["more", "steps", *others]
    assert Further(folder="x").config() == Example(folder="x").config() | {
        "more": 0,
        "steps": 20,
    }


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (AnswerSettings, "tpu"),
        (EmbedSettings, "accumulation_steps"),
        (EmbedSettings, "plots"),
        (StackSettings, "pretrained"),
        (StackSettings, "swap_positions"),
    ],
)
def test_a_setting_that_a_class_hides_is_none_of_its_own(cls, name):
    fields = fields_of(cls)
    assert name not in {field.name for field in fields}
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
        cls(**{field.name: "x" for field in fields if field.required}, **{name: "x"})


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers(-100, 100)
            | st.text()
            | st.floats(allow_nan=False, allow_infinity=False),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=4,
        ),
    )
)
def test_a_configuration_is_read_back(override):
    values = Example(folder="x", steps=3, sizes=(1, 2), override=override)
    config = json.loads(json.dumps(values.config()))
    assert "folder" not in config
    assert Example.from_config(config, folder="x") == values


@pytest.mark.parametrize(
    ("cls", "given", "message"),
    [
        (FinetuneSettings, {"batch_sizes": (4, 4)}, r"`batch_sizes` .*\[4, 4\]"),
        (FinetuneSettings, {"pretrained_steps": (2, 3, 2)}, "`pretrained_steps` must"),
        (AnswerSettings, {"learning_rates": (1, 1.0)}, r"`learning_rates` .*1.0, 1.0"),
        (EmbedSettings, {"seeds": (0, 0)}, "`seeds` must have each value once"),
        (FinetuneSettings, {"tpu": "x"}, "`tpu` can be given .*strategy='default'$"),
        (PretrainSettings, {"tpu": "x", "strategy": "mirrored"}, "`tpu` can be given"),
    ],
)
def test_values_that_are_tried_once_and_tpus_that_are_not_used(cls, given, message):
    needed = {field.name: "x" for field in fields_of(cls) if field.required}
    with pytest.raises(ValueError, match=message):
        cls(**needed, **given)


def test_the_order_of_overrides_is_none_of_the_configuration():
    texts = ["b=1", "a=2"]
    wanted = Example.upgraded({"command": "example", "override": texts})
    assert wanted == Example.upgraded({"command": "example", "override": texts[::-1]})
    for override in ({"a": 2, "b": 1}, {"b": 1, "a": 2}):
        assert Example(folder="x", override=override).config() == wanted


def test_a_configuration_may_lack_settings_but_not_have_others():
    assert Example.from_config({"steps": 3}, folder="x") == Example(folder="x", steps=3)
    with pytest.raises(ValueError, match="settings of Example. Received: stepps"):
        Example.from_config({"stepps": 3}, folder="x")
    with pytest.raises(ValueError, match="settings of Example. .*command='cache'"):
        Example.from_config({"command": "cache"}, folder="x")
    kept = ReportSettings(runs=("a",)).config()  # Of a command that keeps none.
    assert ReportSettings.from_config(kept).runs == ("a",)
    with pytest.raises(TypeError, match="`config` must be a mapping"):
        Example.from_config([1], folder="x")


def test_a_configuration_of_an_older_version_is_upgraded():
    assert Example.upgraded({"command": "example"}) == Example(folder="x").config()
    older = {"sizes": ["1", "2"], "override": ["a=0.10"], "gone": 3, "rate": 1}
    older["command"] = "example"
    newer = Example(folder="x", sizes=(1, 2), override={"a": 0.1}, rate=1.0)
    assert Example.upgraded(older) == newer.config() | {"gone": 3}
    assert [field.name for field in fields_of(Example) if field.required] == ["folder"]


def test_values_of_overrides():
    assert parse_argument("override", "num_layers=4") == ("num_layers", 4)
    assert parse_argument("override", "attention=one_head") == ("attention", "one_head")
    assert parse_argument("override", "a=b=c") == ("a", "b=c")
    with pytest.raises(ValueError, match="`override` must be NAME=VALUE. .*'layers'"):
        parse_argument("override", "layers")
