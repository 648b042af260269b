"""A damaged `config.json` is named with the setting that cannot be."""

import json

import pytest

from tfeff import recipes
from tfeff.recipes.evaluating import read_settings
from tfeff.recipes.fields import fields_of
from tfeff.recipes.runs import open_run, upgraded

CLASSES = [
    recipes.AnswerSettings,
    recipes.CacheSettings,
    recipes.DistillSettings,
    recipes.EmbedSettings,
    recipes.FinetuneSettings,
    recipes.PretrainSettings,
    recipes.StackSettings,
]
# Of each setting, or one of its choices, at least one is right.
VALUES = (
    *(None, True, 5, -5.5, 0.5, "", "x"),
    *([], [None], [[1]], ["a"], [3], {"a": 1}, [{}]),
)


def fits(field, value):
    """Whether JSON may stand for the field's type; its bounds are tested elsewhere."""
    kinds = {float: (int, float)}.get(field.kind, field.kind)

    def is_one(item):
        return isinstance(item, kinds) and isinstance(item, bool) == (kinds is bool)

    if value is None:
        return field.optional
    if field.kind is dict and isinstance(value, list):
        return all(isinstance(item, str) and "=" in item for item in value)
    if field.is_tuple and isinstance(value, list):
        return all(map(is_one, value))
    return is_one(value)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_damaged_value_is_named_or_right(cls):
    whole = {"command": cls.command}
    for field in fields_of(cls):
        if not field.fixed:
            continue
        accepted = []
        for value in (*VALUES, *field.choices):
            try:
                config = upgraded(cls, "runs/first", {**whole, field.name: value})
            except ValueError as error:
                assert str(error).startswith("runs/first/config.json must hold")
                assert f"`{field.name}` must" in str(error)
            else:
                assert fits(field, value), f"{field.name}={value!r}"
                accepted.append(value)
                kept = config[field.name] in (value, [value], ["a=1"])
                assert kept, f"{field.name}={value!r}"
        assert accepted, field.name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("corpus", 5),
        ("override", 3),
        ("override", [3]),
        ("keep_steps", [[1]]),
        ("seed", -1),
        ("objective", None),
    ],
)
def test_an_unfinished_run_names_its_file(tmp_path, name, value):
    settings = recipes.PretrainSettings(run_dir=str(tmp_path))
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**settings.config(), name: value}))
    (tmp_path / "metrics.csv").write_text("step\n")
    for open_it in (
        lambda: open_run(settings).__enter__(),
        lambda: read_settings(tmp_path),
    ):
        with pytest.raises(ValueError) as error:
            open_it()
        assert str(path) in str(error.value) and f"`{name}` must" in str(error.value)
