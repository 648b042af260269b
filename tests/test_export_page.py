"""The code of the pages on exports, LoRA and backends runs as it stands."""

import importlib.util
import re

import keras
import pytest

import tfeff
from tests.checks.pages import printed_by, python_blocks, text_of
from tests.subjects.encoders import tiny
from tfeff.objectives.objective import Objective

# One after another in one folder, in names of their own.
PAGES = ("docs/EXPORT.md", "docs/LORA.md", "docs/BACKENDS.md")


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None,
    reason="onnxruntime is not installed (extra onnx)",
)
def test_code_of_the_pages(tmp_path):
    blocks = [block for page in PAGES for block in python_blocks(page)]
    again = [block for block in blocks for _ in range(2)]  # As cells of a notebook.
    printed = printed_by(again, tmp_path)
    assert printed.count("(2, 9, 128)") == 4, printed


def table_of(header):
    """The names in the first cells of the page's table with the header."""
    _, _, rows = text_of("docs/EXPORT.md").partition(header)
    cells = [row.split("|")[1] for row in rows.partition("\n\n")[0].splitlines()[2:]]
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


def test_the_table_of_outputs_has_every_model():
    modules = (tfeff.tasks, tfeff.objectives)
    public = {name: getattr(m, name) for m in modules for name in dir(m)}
    models = {
        name
        for name, kind in public.items()
        if isinstance(kind, type) and issubclass(kind, Objective)
    } - {"Objective", "Task"}  # Bases of a user's classes.
    assert table_of("| model | inputs, int32 |") == models | {"Encoder"}


def test_precisions_of_a_saved_model_are_those_of_the_page():
    encoder = tiny("bert_base", num_layers=1, dtype="mixed_bfloat16")
    tasks = tfeff.tasks
    models = {
        "Classifier": tasks.Classifier(encoder, 3),
        "Regressor": tasks.Regressor(encoder),
        "SpanQA": tasks.SpanQA(encoder),
        "MultipleChoice": tasks.MultipleChoice(encoder),
        "SentenceEmbedding": tasks.SentenceEmbedding(encoder),
        "unit": tasks.SentenceEmbedding(encoder, normalize=True),
        "TokenClassifier": tasks.TokenClassifier(encoder, 3),
    }
    rounded = []
    for name, model in models.items():
        inputs, outputs = model.exported()
        ids = keras.ops.ones([2] * len(inputs["token_ids"].shape), "int32")
        found = keras.Model(inputs, outputs)({name: ids for name in inputs})
        (dtype,) = {x.dtype.name for x in found.values()}
        assert dtype in ("float32", "bfloat16")
        rounded += [name] * (dtype == "bfloat16")
    assert rounded == ["SentenceEmbedding"]
    said = (
        "Those of tasks are float32 there, too, but for a `SentenceEmbedding` without "
        "`normalize=True`."
    )
    assert said in " ".join(text_of("docs/EXPORT.md").split())
