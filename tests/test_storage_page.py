"""The commands and the code of docs/STORAGE.md run as they stand, on another scheme."""

import json
import os
import pathlib
import re
import shlex

import pytest

import tfeff
from tests.checks.pages import code_blocks, python_blocks, text_of
from tests.subjects.modules import import_all
from tests.subjects.sentences import DOCUMENTS, tokenizer
from tests.subjects.stores import make_store
from tfeff.command import main
from tfeff.recipes.fields import fields_of
from tfeff.storage import arguments

PAGE = "docs/STORAGE.md"
# In place of the defaults, which take minutes.
SMALL = (
    "--vocabulary_size=60 --sequence_length=12 --batch_size=2 --steps=2 --eval_every=1 "
    "--preset=bert_tiny --override=hidden_dim=8 --override=num_heads=2 "
    "--override=intermediate_dim=8"
)


@pytest.mark.slow
def test_commands_and_code(tmp_path, monkeypatch, capsys):
    store = make_store(tmp_path / "store", monkeypatch)
    monkeypatch.setattr(store, "lag", 0)
    monkeypatch.chdir(tmp_path)
    corpus = pathlib.Path(store.root, "bucket", "corpus")
    corpus.mkdir(parents=True)
    (corpus / "a.txt").write_text("\n\n".join(DOCUMENTS * 4))
    encoder = tfeff.encoders.build("bert_tiny", vocabulary_size=60, num_layers=1)
    tfeff.tasks.save_pretrained(encoder, tokenizer(), "presets/mine")
    texts = [x.replace("s3://", "store://") for x in code_blocks(PAGE, "sh")[1:]]
    for text in texts:
        command, *given = shlex.split(text.replace("\\\n", ""))[1:]
        small = SMALL.split() if command == "pretrain" else []
        assert main.main([command, *given, *small]) == 0
    out = capsys.readouterr().out
    assert "to fine-tune: store://bucket/runs/first\n" in out
    metrics = json.loads(pathlib.Path(store.root, "bucket", "first.json").read_text())
    assert metrics["step"] == 2
    # Of the run, the model alone was downloaded.
    copies = {p.name for p in (tmp_path / "copies" / "fetched").glob("**/first/*")}
    assert "checkpoints" in copies and not {"cache", "export"} & copies
    for block in python_blocks(PAGE):
        exec(block.replace("s3://", "store://"), {})
    assert len(tfeff.data.open_cache("store://bucket/caches/first").directory) > 0
    assert tfeff.tasks.load_pretrained("store://bucket/presets/mine")[0].num_layers == 1
    assert tfeff.tasks.load_pretrained("store://bucket/runs/first@1")[0].num_layers
    assert not os.path.exists("s3:") and not os.path.exists("store:")


def test_the_table_has_all_arguments():
    import_all()
    public = {
        "tfeff.datasets.dataset.Dataset.read": "tfeff.datasets.Dataset.read",
        "tfeff.datasets.dataset.Dataset.write_predictions": (
            "tfeff.datasets.Dataset.write_predictions"
        ),
        "tfeff.encoders.preset_mixins.EncoderFiles.from_preset": (
            "tfeff.encoders.Encoder.from_preset"
        ),
        "tfeff.encoders.preset_mixins.EncoderFiles.save_to_preset": (
            "tfeff.encoders.Encoder.save_to_preset"
        ),
    }
    page = text_of(PAGE)
    for package in set(tfeff.__all__) - {"__version__"}:
        for name in getattr(tfeff, package).__all__:
            value = getattr(getattr(tfeff, package), name)
            if hasattr(value, "__qualname__"):
                key = f"{value.__module__}.{value.__qualname__}"
                if f"`tfeff.{package}.{name}(" in page or key not in public:
                    public[key] = f"tfeff.{package}.{name}"
    table = page.partition("Of the commands:")[0]
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE))
    for key, ways in arguments.TABLE.items():
        for argument, way in ways.items() if key in public else ():
            names = f"`{public[key]}(", f"`{public[key].rpartition('.')[2]}("
            found = [x for x in rows[way.text].split("`, ") if x.startswith(names)]
            listed = [x for x in found if argument in re.split(r"\W+", x)]
            assert listed, f"{public[key]}({argument}): {way.text}"


def test_flags_are_of_commands():
    known = set()
    for command in main.COMMANDS.values():
        known |= {field.name for field in fields_of(main._load(command.settings))}
    named = {x for x in re.findall(r"`(?:\w+ )?--(\w+)", text_of(PAGE))}
    assert named and named <= known
