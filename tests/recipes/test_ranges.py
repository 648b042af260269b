"""Numbers that a setting cannot have are refused where the settings are made."""

import re

import pytest

from tfeff.command import flags, main
from tfeff.recipes.fields import fields_of

# What all commands mean by a name, and values outside of it. A flag that several
# commands have is of the same kind in each, which `command/test_shared_flags.py` tests.
RATES = ("1", "-0.1", "nan")
OUTSIDE = {
    "accumulation_steps": ("0",),
    "attention_dropout": RATES,
    "beta_1": RATES,
    "beta_2": RATES,
    "dropout": RATES,
    "epochs": ("0", "-1"),
    "epsilon": ("-1e-9",),
    "generator_ratio": ("0", "1.5", "-1"),
    "global_clipnorm": ("0", "-1", "inf"),
    "head_dropout": RATES,
    "layer_decay": ("0", "2", "-1"),
    "learning_rate": ("0", "-1e-3", "inf"),
    "learning_rates": ("1e-3,0", "-1", "nan"),
    "mask_share": ("-0.1", "1.1"),
    "prediction_rate": ("0", "-1"),
    "random_share": ("-0.1", "1.1"),
    "seed": ("-1", "4294967296", "5000000000"),
    "seeds": ("0,-1", "0,5000000000"),
    "temperature": ("0", "-1"),
    "validation_fraction": ("0", "1"),
    "warmup": RATES,
    "weight_decay": ("-1", "nan"),
}


def numbers():
    """All settings of all commands that are numbers."""
    for name, command in main.COMMANDS.items():
        cls = main._load(command.settings)
        for field in fields_of(cls):
            if field.kind in (int, float):
                yield pytest.param(cls, field, id=f"{name}-{field.name}")


@pytest.mark.parametrize(("cls", "field"), numbers())
def test_numbers_out_of_range_are_refused_with_the_command_line(cls, field):
    given = [f"--{f.name}=x" for f in fields_of(cls) if f.required]
    for value in OUTSIDE.get(field.name, ("-1",)):
        with pytest.raises(ValueError, match=f"`{field.name}` must") as error:
            flags.parse(cls, [*given, f"--{field.name}={value}"])
        assert re.search(rf"Received: {field.name}=\S+$", str(error.value))
