"""A flag that several commands have is the same thing in each."""

import pytest

from tfeff.command import main
from tfeff.recipes.fields import fields_of

# What may differ from command to command beside the default, and why.
DIFFERENT = {
    "help": {
        "attention_dropout": "a new encoder has its preset's rate",
        "memory_efficient": "a new encoder recomputes nothing",
        "batch_size": "evaluate has one device",
        "batch_sizes": "of windows",
        "cache_dir": "what is written, or read",
        "dropout": "a new encoder has its preset's rate",
        "epochs": "over windows, or the training part",
        "eval_every": "chosen for few steps; with checkpoints",
        "learning_rate": "of layers, with another for predictions",
        "metric": "of the data set",
        "output": "metrics, or tables",
        "pooler_activation": "begins as the preset's, or the teacher's",
        "pooling": "of one text, or what a head reads",
        "patience": "by the loss, by the metric; a stage",
        "predict_split": "the parts that there are",
        "preset": "where none is named, a stack has a depth of its own",
        "pretrained": "with the heads, or without",
        "run_dir": "of what evaluate may take in its place",
        "seed": "of what is drawn",
        "sequence_length": "of what is read, and its default",
        "steps": "in place of epochs; on layers",
        "strategy": "multi_worker",
        "task": "the kinds that there are",
        "temperature": "of cosines, or of predictions",
        "train_examples": "a sample, or the first ones",
        "weight_decay": "one, or those of a grid",
    },
    "choices": {
        "pooling": "embeddings need no head, and heads may read pairs",
        "strategy": "what a recipe can train on",
    },
    "kind": {"epochs": "parts of an epoch are for texts alone"},
    "is_tuple": {"weight_decay": "one, or those of a grid"},
    "fixed": {"cache_dir": "what is written, or read"},
}


def shared():
    """Fields by name and then by command, of names that several commands have."""
    found = {}
    for name, command in main.COMMANDS.items():
        for field in fields_of(main._load(command.settings)):
            found.setdefault(field.name, {})[name] = field
    return {name: fields for name, fields in found.items() if len(fields) > 1}


def plain(help):
    """Help without the stage that alone has the setting."""
    return help.removeprefix("general: ").removeprefix("task: ").casefold()


@pytest.mark.parametrize("name", shared())
def test_the_same_name_is_the_same_thing(name):
    fields = shared()[name]
    for attribute in ("kind", "is_tuple", "choices", "fixed", "help"):
        if name in DIFFERENT[attribute]:
            continue
        values = {}
        for command, field in fields.items():
            value = getattr(field, attribute)
            value = plain(value) if attribute == "help" else value
            values.setdefault(value, []).append(command)
        assert len(values) == 1, f"--{name} differs in {attribute}: {values}"


def test_what_may_differ_does():
    for attribute, names in DIFFERENT.items():
        for name in names:
            fields = shared()[name].values()
            values = {
                plain(field.help) if attribute == "help" else getattr(field, attribute)
                for field in fields
            }
            assert len(values) > 1, f"--{name} no more differs in {attribute}"


def test_grids_have_plurals():
    """A recipe has one rate, one batch size and one seed, or lists of them."""
    for name, command in main.COMMANDS.items():
        fields = {f.name: f for f in fields_of(main._load(command.settings))}
        for one in ("learning_rate", "batch_size", "seed"):
            assert not {one, f"{one}s"} <= set(fields), name
            if one in fields:
                assert not fields[one].is_tuple
            if f"{one}s" in fields:
                assert fields[f"{one}s"].is_tuple
